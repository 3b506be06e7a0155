"""Add up what dead letters have in common: groups by cause, statistics, counts. Reads tallies only."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from fairlane.app.admin.read_once import once
from fairlane.app.client import Client
from fairlane.app.dead.filters import REVIEWS
from fairlane.app.dead.views import DeadGroup, DeadStatistics
from fairlane.app.redaction import secret_names
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.job import JobRecord
from fairlane.model.journal.facts import last_failure
from fairlane.model.payload.sensitive import redact_text
from fairlane.model.review import Review
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadCountRequest, DeadTally, DeadTallyRequest
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.request import MAX_COUNTS

_NO_CLASS: Final = "none"

Cause: TypeAlias = tuple[str, str, ErrorClass | None]
"""Fingerprint, task and error class."""


async def tallies(store: Store, request: DeadTallyRequest) -> AsyncIterator[DeadTally]:
    """Yield what all matching letters have in common, page after page; the same tally may come again."""
    while True:
        page = await store.dead.tally(request)
        for tally in page.tallies:
            yield tally
        if page.cursor is None:
            return
        request = msgspec.structs.replace(request, cursor=page.cursor)


async def count_matches(store: Store, request: DeadTallyRequest) -> int:
    """Count the letters that match."""
    return sum([tally.letters async for tally in tallies(store, request)])


async def count_reviews(store: Store, request: DeadTallyRequest) -> dict[Review, int]:
    """Count the letters that match by review; counters answer if only tenant, queue and review are given."""
    counts: dict[Review, int] = dict.fromkeys(REVIEWS, 0)
    plain = DeadTallyRequest(scope=request.scope, queue=request.queue, review=request.review)
    if request != plain:
        async for tally in tallies(store, request):
            counts[tally.review] += tally.letters
        return counts
    by_queue = await once(("reviews", request.scope), lambda: _count_by_queue(store, request.scope))
    for (queue, review), letters in by_queue.items():
        if request.queue in {None, queue} and request.review in {None, review}:
            counts[review] += letters
    return counts


async def _count_by_queue(store: Store, scope: Scope) -> Counter[tuple[str, Review]]:
    found: Counter[tuple[str, Review]] = Counter()
    asked = DeadCountRequest(scope=scope, limit=MAX_COUNTS)
    while True:
        page = await store.dead.count(asked)
        for count in page.counts:
            found[count.queue, count.review] += count.letters
        if page.cursor is None:
            return found
        asked = msgspec.structs.replace(asked, cursor=page.cursor)


async def statistics_of(store: Store, request: DeadTallyRequest) -> DeadStatistics:
    """Count the letters that match by each of their properties."""
    queues, tasks, tenants = Counter[str](), Counter[str](), Counter[str]()
    classes, reviews = Counter[str](), Counter[str]()
    async for one in tallies(store, request):
        queues[one.queue] += one.letters
        tasks[one.task] += one.letters
        tenants[one.tenant] += one.letters
        classes[_NO_CLASS if one.error_class is None else one.error_class.value] += one.letters
        reviews[one.review] += one.letters
    return DeadStatistics(
        letters=tasks.total(),
        by_queue=_ordered(queues),
        by_task=_ordered(tasks),
        by_tenant=_ordered(tenants),
        by_error_class=_ordered(classes),
        by_review=_ordered(reviews),
    )


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


_NONE: Final = (0, UUID(int=0))


class _Cause:
    """Letters with one cause, so far."""

    __slots__ = ("first_at", "last", "letters", "tenants")

    def __init__(self) -> None:
        self.letters = 0
        self.tenants: set[str] = set()
        self.first_at: Instant | None = None
        self.last: tuple[Instant, UUID] = _NONE

    def add(self, tally: DeadTally) -> None:
        """Add letters."""
        self.letters += tally.letters
        self.tenants.add(tally.tenant)
        self.first_at = min(tally.first_at, tally.first_at if self.first_at is None else self.first_at)
        self.last = max(self.last, (tally.last_at, tally.sample))


async def groups_of(client: Client, request: DeadTallyRequest, limit: int) -> list[DeadGroup]:
    """Group the letters that match by cause, most letters first; only as many groups as asked for.

    Messages are read for these groups alone, in one call. A sample that was deleted meanwhile has none.
    """
    store, causes = client.store, dict[Cause, _Cause]()
    async for tally in tallies(store, request):
        key = (tally.fingerprint, tally.task, tally.error_class)
        cause = causes.get(key)
        if cause is None:
            causes[key] = cause = _Cause()
        cause.add(tally)
    most = sorted(causes.items(), key=lambda item: (-item[1].letters, item[0][1], item[0][0]))[:limit]
    samples = tuple(cause.last[1] for _, cause in most)
    jobs = await store.jobs.get(GetRequest(scope=request.scope, ids=samples))
    names = await secret_names(client, [task for (_, task, _), _ in most], request.scope)
    return [_group(key, cause, jobs.get(cause.last[1]), names[key[1]]) for key, cause in most]


def _group(key: Cause, cause: _Cause, sample: JobRecord | None, names: tuple[str, ...]) -> DeadGroup:
    fingerprint, task, error_class = key
    failure = None if sample is None else last_failure(sample)
    return DeadGroup(
        fingerprint=fingerprint,
        task=task,
        error_class=error_class,
        error_type="" if failure is None else failure.error_type,
        message="" if failure is None else redact_text(failure.message, names=names),
        letters=cause.letters,
        tenants=tuple(sorted(cause.tenants)),
        first_at=to_datetime(cause.first_at or 0),
        last_at=to_datetime(cause.last[0]),
        sample=cause.last[1],
    )
