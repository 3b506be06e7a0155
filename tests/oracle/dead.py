"""The dead-letter facet of the oracle."""

from __future__ import annotations

from collections import Counter

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import State
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
from fairlane.store.contract.reading import is_wanted
from fairlane.store.contract.request import (
    READ_MOST,
    CountPlace,
    Place,
    Request,
    check_page,
    from_cursor,
    to_cursor,
)
from tests.oracle.core import Core


class OracleDead:
    """Dead letters, stored and read."""

    def __init__(self, core: Core) -> None:
        """Share the books with the other facets."""
        self._core = core

    def _letters(self, request: Request) -> list[DeadLetter]:
        jobs = self._core.books.jobs.values()
        dead = [job for job in jobs if job.state is State.DEAD and request.scope.covers(job.tenant)]
        return [_letter(job) for job in sorted(dead, key=_place, reverse=True)]

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        """See the contract."""
        return next((letter for letter in self._letters(request) if letter.job.id == request.id), None)

    async def find(self, request: DeadRequest) -> DeadPage:
        """See the contract."""
        letters = self._letters(request)
        if request.cursor is not None:
            start = from_cursor(request.cursor)
            letters = [one for one in letters if _place(one.job) < (start.enqueued_at, start.id.bytes)]
        found: list[DeadLetter] = []
        for read, letter in enumerate(letters, 1):
            if is_wanted(letter, request):
                found.append(letter)
            if (len(found) == request.limit or read == READ_MOST) and read < len(letters):
                return DeadPage(tuple(found), to_cursor(Place(letter.job.settled_at or 0, letter.job.id)))
        return DeadPage(tuple(found), None)

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        """See the contract."""
        check_page(request.limit)
        start = CountPlace("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPlace)
        counts: Counter[tuple[str, str, Review]] = Counter(
            (one.job.tenant, one.job.queue, one.review) for one in self._letters(request)
        )
        after = (start.tenant, start.queue, start.word)
        found = sorted(DeadCount(*key, number) for key, number in counts.items() if key > after)
        page, rest = found[: request.limit], found[request.limit :]
        last = CountPlace(page[-1].tenant, page[-1].queue, page[-1].review) if page and rest else None
        return DeadCountPage(tuple(page), None if last is None else to_cursor(last))


def _place(job: JobRecord) -> tuple[Instant, bytes]:
    return job.settled_at or 0, job.id.bytes


def _letter(job: JobRecord) -> DeadLetter:
    failures = [attempt.failure for attempt in job.attempts if attempt.failure is not None]
    return DeadLetter(job, failures[-1].error_class if failures else None)
