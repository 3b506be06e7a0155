"""Write JSON lines into a file, or into one that is open. Knows nothing of what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TextIO

import msgspec

from fairlane.app.enqueue.checks import kind_of


class JsonLines:
    """A file of JSON objects, one per line. A path is opened for its owner alone, and replaced."""

    def __init__(self, to: object) -> None:
        self.written = 0
        self._path = Path(to) if isinstance(to, str | Path) else None
        if self._path is None and not hasattr(to, "write"):
            message = f"to: is of type {kind_of(to)}; give a path, or a text file that is open"
            raise ValueError(message)
        self._file: Any = to

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = _opened(self._path)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._path is not None:
            self._file.close()

    def write(self, values: Mapping[str, Any]) -> None:
        """Write one line."""
        self._file.write(msgspec.json.encode(values, enc_hook=str).decode() + "\n")
        self.written += 1


def _opened(path: Path) -> TextIO:
    path.touch(mode=0o600)  # what is exported is nobody else's
    return path.open("w", encoding="utf-8")
