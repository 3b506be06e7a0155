"""Find and tally dead letters, latest death first, a bounded number per call (S51).

A script compares a page of records (records/letter.py); the jobs of the letters that were found are read
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.dead import (
    DeadFiltered,
    DeadLetter,
    DeadPage,
    DeadRequest,
    DeadTally,
    DeadTallyPage,
    DeadTallyRequest,
)
from fairlane.store.contract.filters import matches_dead
from fairlane.store.contract.request import (
    MAX_ROWS_READ,
    JobPosition,
    check_reading,
    from_cursor,
    to_cursor,
)
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.letter import (
    REVIEWS,
    LetterRecord,
    read_letter,
    read_review,
    to_dead_letter,
)
from fairlane.store.redis.records.stored_jobs import JobUpdate, Position, StoredJobs

_PAGE: Final = 1_000
"""How many letters one script looks at."""


async def find(client: RedisClient, request: DeadRequest) -> DeadPage:
    """Return a page, and a cursor if there are more."""
    reading = _Reading(client, "dead/find", request, request.cursor, MAX_ROWS_READ)
    ids: list[UUID] = []
    while not reading.is_done:
        ids += [UUID(bytes=id) for id in await reading.next(max(1, request.limit) - len(ids))]
    letters = await _letters(StoredJobs(client), ids)
    # One that has changed since is not what was asked for.
    found = (one for one in letters if request.scope.covers(one.job.tenant) and matches_dead(one, request))
    return DeadPage(tuple(found), reading.cursor)


async def tally(client: RedisClient, request: DeadTallyRequest) -> DeadTallyPage:
    """Return what the next letters have in common, and a cursor if there are more."""
    check_reading(request.limit)
    reading = _Reading(client, "dead/tally", request, request.cursor, request.limit)
    groups: dict[bytes, _Group] = {}
    while not reading.is_done:
        for record, letters, first_at, last_at, sample in await reading.next(_PAGE):
            group = groups.get(record)
            if group is None:
                groups[record] = _Group(letters, first_at, last_at, sample)
            else:  # of a later page, so these have died before
                group.letters += letters
                group.first_at = first_at
    return DeadTallyPage(_tallies(groups), reading.looked_at, reading.cursor)


class _Group(msgspec.Struct):
    """Letters that have the same record."""

    letters: int
    first_at: Instant
    last_at: Instant
    sample: bytes


def _tallies(groups: Mapping[bytes, _Group]) -> tuple[DeadTally, ...]:
    """Return the tallies; acknowledged letters have records of their own, and count with the others."""
    found: dict[LetterRecord, _Group] = {}
    for stored, group in groups.items():
        record = read_letter(stored)
        if record.is_acknowledged:
            record = record._replace(is_acknowledged=False)
        found[record] = _joined(found[record], group) if record in found else group
    return tuple(_tally(record, group) for record, group in found.items())


def _joined(one: _Group, other: _Group) -> _Group:
    last = max(one, other, key=lambda group: (group.last_at, group.sample))
    first_at = min(one.first_at, other.first_at)
    return _Group(one.letters + other.letters, first_at, last.last_at, last.sample)


async def _letters(stored_jobs: StoredJobs, ids: Sequence[UUID]) -> list[DeadLetter]:
    _, found = await stored_jobs.get(ids)
    stored = [found[id] for id in ids if id in found]
    return [to_dead_letter(one.job, read_review(one.review)) for one in stored if one.job.state is State.DEAD]


def _tally(record: LetterRecord, group: _Group) -> DeadTally:
    return DeadTally(
        fingerprint=record.fingerprint,
        error_class=record.error_class,
        tenant=record.tenant,
        queue=record.queue,
        task=record.task,
        review=record.review,
        letters=group.letters,
        first_at=group.first_at,
        last_at=group.last_at,
        sample=UUID(bytes=group.sample),
    )


class _Reading:
    """The way of one call through the dead letters, a script a page."""

    def __init__(
        self,
        client: RedisClient,
        script: Literal["dead/find", "dead/tally"],
        request: DeadFiltered,
        cursor: str | None,
        limit: int,
    ) -> None:
        """Begin after the cursor; look at a bounded number of letters of the scope."""
        self._client = client
        self._stored_jobs = StoredJobs(client)
        self._script = script
        self._request = request
        self._limit = limit
        self._position = _start(request, cursor)
        self._last: Position | None = None
        self._is_over = False
        self.looked_at = 0
        self.is_done = False

    @property
    def cursor(self) -> str | None:
        """Return where to go on; None at the end."""
        if self._is_over or self._last is None:
            return None
        # Other tenants' letters lie between: not even a position of them is told.
        return to_cursor(JobPosition(self._last[0], UUID(bytes=self._last[1])))

    async def next(self, most: int) -> list[Any]:
        """Run one script, and return the letters that it found, at most `most`."""
        score, id = ("", b"") if self._position is None else self._position
        arguments = (score, id, _PAGE, self._limit - self.looked_at, most, *_filters(self._request))
        unknown, *reply = await self._client.run(self._script, *arguments)
        if unknown:
            await self._note(unknown)
            return []
        is_over, is_cut, end, end_id, own, own_end, own_id, found = reply
        self._position = end, end_id
        self._last = (own_end, own_id) if own else self._last
        self._is_over, self.is_done = bool(is_over), bool(is_over or is_cut)
        self.looked_at += own
        return list(found)

    async def _note(self, ids: Iterable[bytes]) -> None:
        """Note what filters compare of letters that an older version has left."""
        now, found = await self._stored_jobs.get(UUID(bytes=id) for id in ids)
        dead = [stored for stored in found.values() if stored.job.state is State.DEAD]
        await self._stored_jobs.write([JobUpdate(stored, stored.job) for stored in dead], now)


def _start(request: DeadFiltered, cursor: str | None) -> Position | None:
    """Return the position below which to read."""
    position = None if cursor is None else from_cursor(cursor)
    starts = [(position.enqueued_at, position.id.bytes)] if position is not None else []
    starts += [(request.until, b"")] if request.until is not None else []
    return min(starts, default=None)


def _filters(request: DeadFiltered) -> tuple[Any, ...]:
    is_acknowledged = request.is_acknowledged
    return (
        "" if request.since is None else request.since,
        request.scope.tenant or "",
        request.queue or "",
        request.task or "",
        "" if request.error_class is None else request.error_class.value,
        "" if request.fingerprint is None else f"={request.fingerprint}",
        "" if request.review is None else REVIEWS[request.review],
        "" if is_acknowledged is None else int(is_acknowledged),
    )
