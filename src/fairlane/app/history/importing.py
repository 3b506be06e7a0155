"""Take finished jobs back from lines, in batches. Checks the whole file before it stores anything."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from fairlane.app.enqueue.checks import kind_of
from fairlane.app.history import parquet
from fairlane.model.finished_job import FinishedJob
from fairlane.model.history_line import BadLineError, read_line
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.history import MAX_RESTORED, RestoreRequest
from fairlane.store.contract.jobs import MAX_BATCH_BYTES

MAX_LINE: Final = 64 * 2**20
"""The longest line that is read, in bytes: more than any job that a store has written."""

_GZIP: Final = b"\x1f\x8b"
_START: Final = 4
"""So many bytes say what a file is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """How many jobs are back, and how many the store knew already."""

    restored: int
    known: int


async def take_jobs(store: Store, source: object, scope: Scope) -> ImportResult:
    """Check a file, then bring its jobs back."""
    with ExitStack() as stack:
        file = _opened(source, stack)
        for _ in _jobs(file):
            pass
        file.seek(0)
        restored = read = 0
        for batch in _batches(file):
            one_each = {one.job.id: one for one in batch}
            request = RestoreRequest(scope=scope, jobs=tuple(one_each.values()))
            restored += len(await store.history.restore(request))
            read += len(batch)
    return ImportResult(restored=restored, known=read - restored)


def _opened(source: object, stack: ExitStack) -> IO[bytes]:
    if isinstance(source, str | Path):
        file: BinaryIO = stack.enter_context(Path(source).open("rb"))  # noqa: SIM115 (the stack closes it)
    elif hasattr(source, "read") and hasattr(source, "seek"):
        file = cast("BinaryIO", source)
    else:
        message = f"source: is of type {kind_of(source)}; give a path, or a file that is open for bytes"
        raise ValueError(message)
    start = file.read(len(_GZIP))
    if not isinstance(cast("Any", start), bytes):
        message = "source: is open for text; open it for bytes, with mode 'rb'"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    file.seek(0)
    if start != _GZIP:
        return file
    return cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=file)))


def _jobs(file: IO[bytes]) -> Iterator[FinishedJob]:
    """Yield the jobs of a file; ValueError names the line, or the row, and what is wrong with it."""
    number = 0
    try:
        for line in _lines(file):
            number += 1
            if line.strip():
                yield _read(line)
    except BadLineError as error:
        message = f"line {number}: {error}"
        raise ValueError(message) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"after line {number}: the file is damaged: {error}"
        raise ValueError(message) from None


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    start = file.read(_START)
    file.seek(0)
    if start == parquet.MAGIC:
        yield from parquet.read_lines(file)
        return
    while line := file.readline(MAX_LINE + 1):
        yield line


def _read(line: bytes) -> FinishedJob:
    if len(line) > MAX_LINE:
        message = f"is longer than {MAX_LINE:,} bytes"
        raise BadLineError(message)
    return read_line(line)


def _batches(file: IO[bytes]) -> Iterator[list[FinishedJob]]:
    """Yield the jobs in parts that are not too large for one request."""
    batch: list[FinishedJob] = []
    size = 0
    for one in _jobs(file):
        size += len(one.job.payload) + len(one.job.result or b"")
        if batch and (len(batch) == MAX_RESTORED or size > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], len(one.job.payload) + len(one.job.result or b"")
        batch.append(one)
    if batch:
        yield batch
