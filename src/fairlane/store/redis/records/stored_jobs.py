"""Read jobs, decide in Python what becomes of them, and write it if they are still as they were read.

For verbs that are rare or need the whole record: cancel, edit, reclaim, expire, purge, forget, prune, review.
Each job stands alone. A job that changed between reading and writing is not written; `update` reads it again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.lifecycle.states import State
from fairlane.model.review import ReviewRecord
from fairlane.model.scope import Scope
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.entries import encode_entries
from fairlane.store.redis.records.job import NUMBERS, StoredJob, pack, read_all, to_head
from fairlane.store.redis.records.letter import read_review, write_change, write_review
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT

PAGE: Final = 100
"""How many jobs one script reads."""


class JobUpdate(msgspec.Struct, frozen=True):
    """What a job becomes (None: it is deleted), its new parts, whom to wake, and what the journals get.

    A part of None stays as it is. If the job is dead, its letter is written as well. `archived` is what the
    open batch of the archive gets of a job that is deleted.
    """

    stored: StoredJob
    job: JobRecord | None
    body: bytes | None = None
    attempts: bytes | None = None
    result: bytes | None = None
    review: ReviewRecord | None = None
    queues: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    audit: tuple[NewEntry, ...] = ()
    events: tuple[NewEntry, ...] = ()
    archived: bytes = b""

    def arguments(self) -> tuple[bytes, ...]:
        """Return what `jobs/update.lua` takes for a job."""
        review = None if self.review is None else write_review(self.review)
        parts = (self.body, self.attempts, self.result, review)
        return (
            self.stored.job.id.bytes,
            self.stored.raw,
            b"" if self.job is None else to_head(self.stored, self.job),
            *(b"" if part is None else b"=" + part for part in parts),
            self.stored.review,
            self._letter(),
            encode_entries("audit", self.audit) + encode_entries("events", self.events),
            self.archived,
        )

    def _letter(self) -> bytes:
        if self.job is None or self.job.state is not State.DEAD:
            return b""
        return write_change(self.job, self.review or read_review(self.stored.review))


Position: TypeAlias = tuple[int, bytes]
"""Where a job stands in a sorted set: its score there, and its id."""

Decide: TypeAlias = Callable[[Instant, StoredJob], JobUpdate | None]


class StoredJobs:
    """Jobs by id and by sorted set, whatever their state."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections."""
        self._client = client

    async def get(self, ids: Iterable[UUID]) -> tuple[Instant, dict[UUID, StoredJob]]:
        """Return the server's instant and the jobs that exist."""
        wanted = list(dict.fromkeys(ids))
        found: dict[UUID, StoredJob] = {}
        now = 0
        for start in range(0, max(1, len(wanted)), PAGE):
            page = [id.bytes for id in wanted[start : start + PAGE]]
            now, *parts = await self._client.run("jobs/get", b"".join(page))
            found |= {stored.job.id: stored for stored in read_all(page, *parts) if stored is not None}
        return now, found

    async def page(
        self,
        key: str,
        *,
        up: bool,
        start: Position | None,
        limit: int,
        stop: Instant | str = "",
        states: Iterable[State] = (),
    ) -> tuple[Instant, list[tuple[Position, StoredJob | None]]]:
        """Return the server's instant and the next jobs of a sorted set, up to the score `stop` ("now").

        If states are named, jobs in other states are returned as their positions only.
        """
        score, id = ("", b"") if start is None else start
        wanted = bytes(NUMBERS[state] for state in states)
        arguments = (key, "up" if up else "down", score, id, limit, stop, wanted)
        now, places, *parts = await self._client.run("jobs/page", *arguments)
        ids = places[::2]
        return now, list(zip(zip(places[1::2], ids, strict=True), read_all(ids, *parts), strict=True))

    async def scan(self, key: str) -> AsyncIterator[tuple[Position, StoredJob]]:
        """Yield all jobs of a sorted set in its order, read page by page."""
        position: Position | None = None
        while True:
            _, page = await self.page(key, up=True, start=position, limit=PAGE)
            for where, stored in page:
                if stored is not None:
                    yield where, stored
            if len(page) < PAGE:
                return
            position = page[-1][0]

    async def count(self, key: str) -> int:
        """Return the size of a sorted set."""
        return int(await self._client.ask("ZCARD", self._client.keys.base + key))

    async def update(self, scope: Scope, ids: Iterable[UUID], decide: Decide) -> tuple[UUID, ...]:
        """Update the jobs of the scope for which `decide` returns an update; return their ids in order."""
        wanted = list(ids)
        updated: set[UUID] = set()
        for start in range(0, len(wanted), PAGE):
            left: Sequence[UUID] = wanted[start : start + PAGE]
            while left:
                now, found = await self.get(left)
                own = (found[id] for id in left if id in found and scope.covers(found[id].job.tenant))
                decided = [update for update in (decide(now, stored) for stored in own) if update is not None]
                written = await self.write(decided, now)
                updated.update(written)
                left = [one.stored.job.id for one in decided if one.stored.job.id not in written]
        return tuple(id for id in wanted if id in updated)

    async def update_due(
        self,
        key: str,
        limit: int,
        decide: Callable[[Instant, StoredJob], JobUpdate],
        by: Instant | None = None,
    ) -> tuple[list[UUID], bool]:
        """Update what is due in a sorted set, earliest first, at most `limit`.

        Return the updated ids and whether there is more. A job that changed since it was read is
        left to the next pass.
        """
        done: list[UUID] = []
        position: Position | None = None
        seen = 0
        while seen <= limit:
            wanted = min(PAGE, limit - seen) or 1
            now, page = await self.page(key, up=True, start=position, limit=wanted, stop="now")
            page = [(at, stored) for at, stored in page if by is None or at[0] <= by]
            if seen == limit:
                return done, bool(page)
            seen += len(page)
            updates = [decide(now, stored) for _, stored in page if stored is not None]
            done += await self.write(updates, now)
            if len(page) < wanted:
                break
            position = page[-1][0]
        return done, False

    async def write(self, updates: Sequence[JobUpdate], now: Instant) -> list[UUID]:
        """Write updates at the instant at which they were decided; return the ids that were written."""
        written: list[UUID] = []
        for start in range(0, len(updates), MAX_JOBS_PER_SCRIPT):
            page = updates[start : start + MAX_JOBS_PER_SCRIPT]
            queues = {queue for update in page for queue in update.queues}
            workers = {worker for update in page for worker in update.workers}
            items: list[Any] = [part for update in page for part in update.arguments()]
            to_wake = pack((sorted(queues), sorted(workers)))
            replies = await self._client.run("jobs/update", to_wake, *items, at=now)
            written += [
                update.stored.job.id for update, is_done in zip(page, replies, strict=True) if is_done
            ]
        return written
