"""The dead-letter facet: read what will not run again without a person."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.dead import (
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
)
from fairlane.store.contract.filters import matches_dead
from fairlane.store.contract.request import MAX_ROWS_READ, JobPosition, check_page, from_cursor, to_cursor
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import count_letters
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.job import NUMBERS
from fairlane.store.redis.records.stored_jobs import PAGE, StoredJobs


class RedisDead:
    """Dead letters, as they are stored."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client
        self._stored_jobs = StoredJobs(client)

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        _, found = await self._stored_jobs.get((request.id,))
        stored = found.get(request.id)
        if (
            stored is None
            or stored.job.state is not State.DEAD
            or not request.scope.covers(stored.job.tenant)
        ):
            return None
        return _letter(stored.job)

    async def find(self, request: DeadRequest) -> DeadPage:
        start = None if request.cursor is None else from_cursor(request.cursor)
        position = None if start is None else (start.enqueued_at, start.id.bytes)
        key = f"{NAMES['finished']}{NUMBERS[State.DEAD]}"
        found: list[DeadLetter] = []
        last: tuple[int, bytes] | None = None
        read = 0
        while True:
            _, page = await self._stored_jobs.page(key, up=False, start=position, limit=PAGE)
            for where, stored in page:
                if stored is None or not request.scope.covers(stored.job.tenant):
                    continue
                if last is not None and (len(found) == request.limit or read == MAX_ROWS_READ):
                    return DeadPage(tuple(found), to_cursor(JobPosition(last[0], UUID(bytes=last[1]))))
                read, last = read + 1, where
                letter = _letter(stored.job)
                found += [letter] if matches_dead(letter, request) else []
            if len(page) < PAGE:
                return DeadPage(tuple(found), None)
            position = page[-1][0]

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_page(request.limit)
        return await count_letters(self._client, request)


def _letter(job: JobRecord) -> DeadLetter:
    failures = [attempt.failure for attempt in job.attempts if attempt.failure is not None]
    return DeadLetter(job, failures[-1].error_class if failures else None)
