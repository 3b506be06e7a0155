"""Read jobs, decide in Python what becomes of them, and write it if they are still as they were read.

For what is rare or needs the whole record: cancel, edit, reclaim, expire, purge, forget, prune. Each job
stands alone, and a job that changed between reading and writing is read and decided anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State
from fairlane.model.scope import Scope
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.rows import NUMBERS, Kept, pack, read_all, to_head
from fairlane.store.redis.scripts import CLAIM_MOST

PAGE: Final = 100
"""How many jobs one script reads."""


class Change(msgspec.Struct, frozen=True):
    """What a job becomes (None: it is dropped), new parts of it, and whom to tell."""

    kept: Kept
    job: JobRecord | None
    body: bytes | None = None
    attempts: bytes | None = None
    result: bytes | None = None
    queues: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()

    def arguments(self) -> tuple[bytes, ...]:
        """Give what `move.lua` takes."""
        parts = (self.body, self.attempts, self.result)
        return (
            self.kept.job.id.bytes,
            self.kept.raw,
            b"" if self.job is None else to_head(self.kept, self.job),
            *(b"" if part is None else b"=" + part for part in parts),
        )


Place: TypeAlias = tuple[int, bytes]
"""Where a job stands in a sorted set: its score there, and its id."""

Decide: TypeAlias = Callable[[Instant, Kept], Change | None]


class Homes:
    """Jobs by id, in whatever home they are."""

    def __init__(self, wire: Wire) -> None:
        """Know where the server is."""
        self._wire = wire

    async def get(self, ids: Iterable[UUID]) -> tuple[Instant, dict[UUID, Kept]]:
        """Give the jobs that are there, and the server's instant."""
        wanted = list(dict.fromkeys(ids))
        found: dict[UUID, Kept] = {}
        now = 0
        for start in range(0, max(1, len(wanted)), PAGE):
            page = [id.bytes for id in wanted[start : start + PAGE]]
            now, *parts = await self._wire.run("get", b"".join(page))
            found |= {kept.job.id: kept for kept in read_all(page, *parts) if kept is not None}
        return now, found

    async def walk(
        self,
        key: str,
        *,
        up: bool,
        start: Place | None,
        most: int,
        stop: Instant | str = "",
        states: Iterable[State] = (),
    ) -> tuple[Instant, list[tuple[Place, Kept | None]]]:
        """Give the next jobs of a sorted set, and the server's instant, at which `stop` may be ("now").

        Of jobs that are in none of the states, if any are named, only their places.
        """
        score, id = ("", b"") if start is None else start
        wanted = bytes(NUMBERS[state] for state in states)
        words = (key, "up" if up else "down", score, id, most, stop, wanted)
        now, places, *parts = await self._wire.run("walk", *words)
        ids = places[::2]
        return now, list(zip(zip(places[1::2], ids, strict=True), read_all(ids, *parts), strict=True))

    async def change(self, scope: Scope, ids: Iterable[UUID], decide: Decide) -> tuple[UUID, ...]:
        """Change those jobs of the scope for which a change is decided; name them in the order given."""
        wanted = list(ids)
        changed: set[UUID] = set()
        for start in range(0, len(wanted), PAGE):
            left: Sequence[UUID] = wanted[start : start + PAGE]
            while left:
                now, found = await self.get(left)
                mine = (found[id] for id in left if id in found and scope.covers(found[id].job.tenant))
                decided = [change for change in (decide(now, kept) for kept in mine) if change is not None]
                done = await self.write(decided, now)
                changed.update(done)
                left = [one.kept.job.id for one in decided if one.kept.job.id not in done]
        return tuple(id for id in wanted if id in changed)

    async def write(self, changes: Sequence[Change], now: Instant) -> list[UUID]:
        """Write changes at the instant at which they were decided; name those whose jobs had not changed."""
        done: list[UUID] = []
        for start in range(0, len(changes), CLAIM_MOST):
            page = changes[start : start + CLAIM_MOST]
            queues = {queue for change in page for queue in change.queues}
            workers = {worker for change in page for worker in change.workers}
            items: list[Any] = [part for change in page for part in change.arguments()]
            written = await self._wire.run("move", pack((sorted(queues), sorted(workers))), *items, at=now)
            done += [change.kept.job.id for change, is_done in zip(page, written, strict=True) if is_done]
        return done
