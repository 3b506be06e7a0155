"""Move batches of removed jobs out of the store and into files (S105).

A batch never changes, and its file is named after it. So it does not matter who writes it, how often, or who
is killed at it: the file has each of its jobs once, and the store has them until the file is safe.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable
from logging import getLogger
from typing import IO, Any, Final

from fairlane.app.archive_settings import ArchiveSettings
from fairlane.app.config.value_kinds import PLACE
from fairlane.duties.archive.target import Target, open_target
from fairlane.model.finished_job import FinishedJob
from fairlane.model.history_line import write_line
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.history import ArchiveBatch, BatchDoneRequest, BatchRequest

_GZIP: Final = 16 + zlib.MAX_WBITS
_ALL: Final = Scope.all()

_log: Final = getLogger("fairlane.duties")


class ArchiveError(Exception):
    """The archive cannot be written. Nothing was lost: the store keeps what is to go there."""


class Archive:
    """Writes batches to a target, one file each."""

    def __init__(self, settings: ArchiveSettings) -> None:
        self._settings = settings
        self._target: Target | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is one."""
        return self._settings.to is not None

    async def ship(self, store: Store) -> int:
        """Move all batches that there are into files; return how many jobs. ArchiveError if one cannot be."""
        shipped = 0
        while self.is_on:
            batch = await store.history.next_batch(BatchRequest(scope=_ALL))
            if batch is None:
                break
            shipped += await self._ship(store, batch)
        return shipped

    async def _ship(self, store: Store, batch: ArchiveBatch) -> int:
        lines = await _read(store, batch, self._settings)
        if lines is None:
            return 0  # another leader has just finished it
        name = file_name(batch.number, batch.closed_at, self._settings)
        if lines.jobs:
            try:
                await asyncio.to_thread(self._write, name, lines)
            except (OSError, ValueError) as error:
                place = PLACE.show(self._settings.to)
                message = f"archive.to = {place} cannot be written: {error}"
                raise ArchiveError(message) from error
        await store.history.batch_done(BatchDoneRequest(scope=_ALL, number=batch.number))
        if lines.jobs:
            text, extra = "archived %d jobs in %s", {"event": "archived", "file": name, "jobs": lines.jobs}
            _log.info(text, lines.jobs, name, extra=extra)
        return lines.jobs

    def _write(self, name: str, lines: _Lines) -> None:
        self._target = self._target or open_target(str(self._settings.to))
        if not self._target.has(name):
            self._target.write(name, lines.write)


def file_name(number: int, closed_at: Instant, settings: ArchiveSettings) -> str:
    """Return the name of a batch's file, in a folder of its day.

    The instant makes it another one after the store was restored from a backup, when numbers come again.

    >>> file_name(7, 1_800_000_000_123_456, ArchiveSettings())
    '2027-01-15/20270115T080000.123456Z-00000007.jsonl.gz'
    """
    at = to_datetime(closed_at)
    end = ".jsonl.gz" if settings.compress == "gzip" else ".jsonl"
    return f"{at:%Y-%m-%d}/{at:%Y%m%dT%H%M%S.%f}Z-{number:08d}{end}"


async def _read(store: Store, batch: ArchiveBatch, settings: ArchiveSettings) -> _Lines | None:
    """Return the content of a batch, read page by page; None if it is gone before its end."""
    lines = _Lines(settings)
    page: ArchiveBatch | None = batch
    while page is not None and page.number == batch.number:
        lines.add(page.jobs)
        if page.is_last:
            return lines
        page = await store.history.next_batch(BatchRequest(scope=_ALL, after=page.jobs[-1].job.id))
    return None


class _Lines:
    """The content of a file, compressed as it comes."""

    def __init__(self, settings: ArchiveSettings) -> None:
        self.jobs = 0
        self._gzip: Any = zlib.compressobj(6, zlib.DEFLATED, _GZIP) if settings.compress == "gzip" else None
        self._parts: list[bytes] = []

    def add(self, jobs: Iterable[FinishedJob]) -> None:
        """Add a line for each."""
        for one in jobs:
            line = write_line(one)
            self._parts.append(line if self._gzip is None else self._gzip.compress(line))
            self.jobs += 1

    def write(self, file: IO[bytes]) -> None:
        """Write all lines."""
        file.writelines(self._parts)
        if self._gzip is not None:
            file.write(self._gzip.copy().flush())
