"""The dead-letter facet of the oracle."""

from __future__ import annotations

from collections import Counter

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.dead import (
    DeadCount,
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
    Review,
)
from fairlane.store.contract.filters import matches_dead
from fairlane.store.contract.request import (
    MAX_ROWS_READ,
    CountPosition,
    JobPosition,
    Request,
    check_page,
    from_cursor,
    to_cursor,
)
from tests.oracle.core import Core


class OracleDead:
    """Dead letters, stored and read."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    def _letters(self, request: Request) -> list[DeadLetter]:
        jobs = self._core.books.jobs.values()
        dead = [job for job in jobs if job.state is State.DEAD and request.scope.covers(job.tenant)]
        return [_letter(job) for job in sorted(dead, key=_place, reverse=True)]

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        return next((letter for letter in self._letters(request) if letter.job.id == request.id), None)

    async def find(self, request: DeadRequest) -> DeadPage:
        letters = self._letters(request)
        if request.cursor is not None:
            start = from_cursor(request.cursor)
            letters = [one for one in letters if _place(one.job) < (start.enqueued_at, start.id.bytes)]
        found: list[DeadLetter] = []
        for read, letter in enumerate(letters, 1):
            if matches_dead(letter, request):
                found.append(letter)
            if (len(found) == request.limit or read == MAX_ROWS_READ) and read < len(letters):
                return DeadPage(
                    tuple(found), to_cursor(JobPosition(letter.job.settled_at or 0, letter.job.id))
                )
        return DeadPage(tuple(found), None)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_page(request.limit)
        start = (
            CountPosition("", "", "")
            if request.cursor is None
            else from_cursor(request.cursor, CountPosition)
        )
        counts: Counter[tuple[str, str, Review]] = Counter(
            (one.job.tenant, one.job.queue, one.review) for one in self._letters(request)
        )
        after = (start.tenant, start.queue, start.label)
        found = sorted(DeadCount(*key, number) for key, number in counts.items() if key > after)
        page, rest = found[: request.limit], found[request.limit :]
        last = CountPosition(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
        return DeadCountPage(tuple(page), None if last is None else to_cursor(last))


def _place(job: JobRecord) -> tuple[Instant, bytes]:
    return job.settled_at or 0, job.id.bytes


def _letter(job: JobRecord) -> DeadLetter:
    failures = [attempt.failure for attempt in job.attempts if attempt.failure is not None]
    return DeadLetter(job, failures[-1].error_class if failures else None)
