"""Move batches of removed jobs out of the store and into files (S105).

A batch never changes, and its file is named after it. So it does not matter who writes it, how often, or who
is killed at it: the file has each of its jobs once, and the store has them until the file is safe.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import Final

from fairlane.app.archive_settings import ArchiveSettings
from fairlane.app.config.value_kinds import PLACE
from fairlane.duties.archive.contents import ENDS, Content, end_of, new_content
from fairlane.duties.archive.target import Target, open_target
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.history import ArchiveBatch, BatchDoneRequest, BatchRequest

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
        content = await asyncio.to_thread(new_content, self._settings)
        jobs = await _read(store, batch, content)
        if jobs is None:
            return 0  # another leader has just finished it
        name = file_name(batch.number, batch.closed_at)
        if jobs:
            try:
                await asyncio.to_thread(self._write, name, content)
            except (OSError, ValueError) as error:
                place = PLACE.show(self._settings.to)
                message = f"archive.to = {place} cannot be written: {error}"
                raise ArchiveError(message) from error
        await store.history.batch_done(BatchDoneRequest(scope=_ALL, number=batch.number))
        if jobs:
            text, extra = "archived %d jobs in %s", {"event": "archived", "file": name, "jobs": jobs}
            _log.info(text, jobs, name, extra=extra)
        return jobs

    def _write(self, name: str, content: Content) -> None:
        self._target = self._target or open_target(str(self._settings.to))
        # A leader with other settings may have written it, and been killed before the store knew.
        if not any(self._target.has(name + end) for end in ENDS):
            self._target.write(name + end_of(self._settings), content.write)


def file_name(number: int, closed_at: Instant) -> str:
    """Return the name of a batch's file, in a folder of its day, without its end.

    The instant makes it another one after the store was restored from a backup, when numbers come again.

    >>> file_name(7, 1_800_000_000_123_456)
    '2027-01-15/20270115T080000.123456Z-00000007'
    """
    at = to_datetime(closed_at)
    return f"{at:%Y-%m-%d}/{at:%Y%m%dT%H%M%S.%f}Z-{number:08d}"


async def _read(store: Store, batch: ArchiveBatch, content: Content) -> int | None:
    """Read a batch into a content, page by page; return how many jobs, None if it is gone before its end."""
    jobs = 0
    page: ArchiveBatch | None = batch
    while page is not None and page.number == batch.number:
        if page.jobs:
            content.add(page.jobs)
        jobs += len(page.jobs)
        if page.is_last:
            return jobs
        page = await store.history.next_batch(BatchRequest(scope=_ALL, after=page.jobs[-1].job.id))
    return None
