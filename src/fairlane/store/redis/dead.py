"""The dead-letter facet: read what will not run again without a person."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State
from fairlane.store.contract.dead import (
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
)
from fairlane.store.contract.reading import is_wanted
from fairlane.store.contract.request import READ_MOST, Place, check_page, from_cursor, to_cursor
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.counting import count_letters
from fairlane.store.redis.homes import PAGE, Homes
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.rows import NUMBERS


class RedisDead:
    """Dead letters, stored and read."""

    def __init__(self, wire: Wire) -> None:
        """Share the connections with the other facets."""
        self._wire = wire
        self._homes = Homes(wire)

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        """See the contract."""
        _, found = await self._homes.get((request.id,))
        kept = found.get(request.id)
        if kept is None or kept.job.state is not State.DEAD or not request.scope.covers(kept.job.tenant):
            return None
        return _letter(kept.job)

    async def find(self, request: DeadRequest) -> DeadPage:
        """See the contract."""
        start = None if request.cursor is None else from_cursor(request.cursor)
        place = None if start is None else (start.enqueued_at, start.id.bytes)
        key = f"{NAMES['finished']}{NUMBERS[State.DEAD]}"
        found: list[DeadLetter] = []
        last: tuple[int, bytes] | None = None
        read = 0
        while True:
            _, page = await self._homes.walk(key, up=False, start=place, most=PAGE)
            for where, kept in page:
                if kept is None or not request.scope.covers(kept.job.tenant):
                    continue
                if last is not None and (len(found) == request.limit or read == READ_MOST):
                    return DeadPage(tuple(found), to_cursor(Place(last[0], UUID(bytes=last[1]))))
                read, last = read + 1, where
                letter = _letter(kept.job)
                found += [letter] if is_wanted(letter, request) else []
            if len(page) < PAGE:
                return DeadPage(tuple(found), None)
            place = page[-1][0]

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        """See the contract."""
        check_page(request.limit)
        return await count_letters(self._wire, request)


def _letter(job: JobRecord) -> DeadLetter:
    failures = [attempt.failure for attempt in job.attempts if attempt.failure is not None]
    return DeadLetter(job, failures[-1].error_class if failures else None)
