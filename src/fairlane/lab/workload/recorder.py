"""Append records to a ledger file, and read what others have appended. Judges nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fairlane.lab.ledger import Record, decode_lines, encode_line


class Recorder:
    """One process's ledger file. Appends with a single write, so that no line is interleaved."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *records: Record) -> None:
        """Append these records in one write."""
        os.write(self._file, b"".join(encode_line(record) for record in records))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class LedgerReader:
    """Reads what workers have appended since the last call, whole lines only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def read_new(self) -> Iterator[Record]:
        """Return the new records."""
        for path in sorted(self._folder.glob("worker-*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            yield from decode_lines(whole.splitlines(keepends=True))


def read_all(folder: Path) -> Iterator[Record]:
    """Return every record of a run, file by file."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            yield from decode_lines(file)
