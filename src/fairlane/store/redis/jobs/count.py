"""Count jobs per tenant, queue and state, a page at a time, from the six counters of each tenant queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeVar

from fairlane.model.lifecycle.states import State
from fairlane.model.review import Review
from fairlane.store.contract.dead import DeadCount, DeadCountPage, DeadCountRequest
from fairlane.store.contract.jobs import Count, CountPage, CountRequest
from fairlane.store.contract.request import MAX_ROWS_READ, CountPosition, from_cursor, to_cursor
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.letter import REVIEWS, read_counts

Counted = TypeVar("Counted")

_PAGE: Final = 200
_STATES: Final = tuple(State)  # an enum is slow to iterate, and this is done for each tenant
_BY_NAME: Final = sorted(State, key=lambda state: state.value)
_REVIEWS: Final = sorted(REVIEWS)

ALL_QUEUES: Final = "\U0010ffff"
"""In a position: after every queue of its tenant."""


class TenantCounts(NamedTuple):
    """The jobs of one tenant in one queue: how many in each state, and the tasks of unfinished ones.

    `reviews`: how many dead letters have each review but the first.
    """

    tenant: str
    queue: str
    by_state: dict[State, int]
    tasks: list[str]
    reviews: dict[Review, int]

    @property
    def position(self) -> tuple[str, str]:
        """Return where it stands in the order of counts."""
        return self.tenant, self.queue

    @property
    def has_jobs(self) -> bool:
        """Whether there is any job."""
        return any(self.by_state.values())


async def read_tenant_counts(
    client: RedisClient,
    position: tuple[str, str] = ("", ""),
    *,
    is_after: bool = False,
    tenant: str | None = None,
    queue: str | None = None,
    more: Literal["tasks", "reviews", ""] = "",
) -> tuple[list[TenantCounts], bool]:
    """Return the next counts in the order of tenant and queue from a position on, and whether there are more.

    The server has them in the order of queue and tenant only: a second index would take 75 bytes per
    tenant. So all queues are read at once, and what lies beyond the end of one of their pages is left to
    the next call.
    """
    bracket = "(" if is_after else "["
    reply: list[tuple[bytes, int, list[Any]]] = await client.run(
        "jobs/count", queue or "", *position, bracket, tenant or "", _PAGE, more
    )
    found: list[TenantCounts] = []
    ends: list[tuple[str, str]] = []
    for raw_queue, is_cut, rows in reply:
        name = raw_queue.decode()
        for raw_tenant, counts, some, reviews in rows:
            who = raw_tenant.decode()
            own = await tasks_of(client, name, who) if more == "tasks" and some is None else some or ()
            by_state = dict(zip(_STATES, counts, strict=True))
            by_review = read_counts(reviews) if reviews else {}
            found.append(TenantCounts(who, name, by_state, [task.decode() for task in own], by_review))
        ends += [found[-1].position] if is_cut else []
    end = min(ends, default=None)
    ordered = sorted(found, key=lambda one: one.position)
    return [one for one in ordered if end is None or one.position <= end], end is not None


async def tasks_of(client: RedisClient, queue: str, tenant: str) -> list[bytes]:
    """Return the tasks of unfinished jobs of a tenant with too many of them for its record."""
    found: list[bytes] = await client.ask("HKEYS", client.keys("strands", queue, tenant))
    return found


async def queue_names(client: RedisClient) -> list[str]:
    """Return the names of all queues, in order."""
    return sorted(name.decode() for name in await client.ask("HKEYS", client.keys("queues")))


async def tenant_counts_in(
    client: RedisClient, queue: str, after: str = "", tenant: str | None = None
) -> AsyncIterator[TenantCounts]:
    """Yield the counts of a queue in the order of tenants, after one."""
    position, is_more = (after, queue), True
    while is_more:
        found, is_more = await read_tenant_counts(client, position, is_after=True, tenant=tenant, queue=queue)
        for one in found:
            if one.tenant > after:
                yield one
            position = one.position


async def count(client: RedisClient, request: CountRequest) -> CountPage:
    """Return the counts after a position; zeros are left out."""

    def counts_of(one: TenantCounts) -> Iterator[tuple[str, Count]]:
        for state in _BY_NAME:
            number = one.by_state[state]
            if number:
                yield state.value, Count(one.tenant, one.queue, state, number)

    return CountPage(*await _page(client, request, counts_of, request.queue))


async def count_letters(client: RedisClient, request: DeadCountRequest) -> DeadCountPage:
    """Return the numbers of dead letters after a position."""

    def letters_of(one: TenantCounts) -> Iterator[tuple[str, DeadCount]]:
        # Whatever is dead and counted nowhere else is pending.
        by_review = {**one.reviews, "pending": one.by_state[State.DEAD] - sum(one.reviews.values())}
        for review in _REVIEWS:
            letters = by_review.get(review, 0)
            if letters > 0:
                yield review, DeadCount(one.tenant, one.queue, review, letters)

    return DeadCountPage(*await _page(client, request, letters_of, more="reviews"))


async def _page(
    client: RedisClient,
    request: CountRequest | DeadCountRequest,
    counted: Callable[[TenantCounts], Iterable[tuple[str, Counted]]],
    queue: str | None = None,
    more: Literal["reviews", ""] = "",
) -> tuple[tuple[Counted, ...], str | None]:
    """Return what `counted` makes of the counts after a position, and a cursor if there may be more."""
    start = (
        CountPosition("", "", "") if request.cursor is None else from_cursor(request.cursor, CountPosition)
    )
    after = (start.tenant, start.queue, start.label)
    position, is_after = after[:2], False
    found: list[Counted] = []
    read = 0
    while True:
        rows, is_more = await read_tenant_counts(
            client, position, is_after=is_after, tenant=request.scope.tenant, queue=queue, more=more
        )
        for row in rows:
            for label, one in counted(row):
                here = (*row.position, label)
                if here <= after:
                    continue
                if len(found) == request.limit:
                    return tuple(found), to_cursor(CountPosition(*after))
                found.append(one)
                after = here
        if not is_more:
            return tuple(found), None
        read += len(rows)
        position, is_after = rows[-1].position, True
        if read >= MAX_ROWS_READ:
            return tuple(found), to_cursor(CountPosition(*position, "~"))
