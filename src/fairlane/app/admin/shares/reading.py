"""Read the counters and policies of all tenants, and work out their shares of each queue (S93, S94).

All numbers come from counters, all waits from the first job of a line: no job is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final, Literal
from uuid import UUID

import msgspec

from fairlane.app.admin.paging import count_all
from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import EVERY, QueueRules, Subject, SubjectKind, TenantRules, limits_of
from fairlane.model.scheduling.fair_share import Claimant, contention, fair_shares, guaranteed_shares
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.line import MAX_LINES, FirstRequest, JobLine
from fairlane.store.contract.policies import ListRequest, PolicyView, RatesRequest, ReadRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE

MOST_TENANTS: Final = 20_000
"""How many tenants are read: twice as many as the goals speak of."""

_EVERYONE: Final = Subject(SubjectKind.TENANT, EVERY)


class Place(msgspec.Struct):
    """One tenant in one queue: its unfinished jobs, its share, its first ready job."""

    ready: int = 0
    delayed: int = 0
    running: int = 0
    fair: float = 0.0
    guaranteed: float = 0.0
    is_over: bool = False
    is_slowed: bool = False
    first_id: UUID | None = None
    since: Instant | None = None


class Row(msgspec.Struct):
    """One tenant: its policy, its places by queue, how many of its jobs are dead."""

    policy: PolicyView
    places: dict[str, Place] = {}
    dead: int = 0

    @property
    def name(self) -> str:
        """Its name."""
        return self.policy.subject.name

    @property
    def rules(self) -> TenantRules:
        """Its effective rules."""
        rules = self.policy.effective
        return rules if isinstance(rules, TenantRules) else TenantRules()

    @property
    def is_over(self) -> bool:
        """Whether it slows others in some queue."""
        return any(place.is_over for place in self.places.values())

    @property
    def is_slowed(self) -> bool:
        """Whether it is slowed in some queue."""
        return any(place.is_slowed for place in self.places.values())

    def total(self, *fields: Literal["ready", "delayed", "running"]) -> int:
        """Return how many jobs it has in these states, in all queues."""
        return sum(getattr(place, field) for place in self.places.values() for field in fields)


class Standings(msgspec.Struct):
    """All tenants by name, and the policies of the queues in which they have unfinished jobs."""

    rows: dict[str, Row]
    queues: dict[str, PolicyView]
    is_complete: bool = True

    def of_queue(self, queue: str) -> list[tuple[Row, Place]]:
        """Return those with ready or running jobs in a queue."""
        found = ((row, row.places.get(queue)) for row in self.rows.values())
        return [(row, place) for row, place in found if place is not None and (place.ready or place.running)]


async def read_standings(
    store: Store, queues: Sequence[str] | None = None, also: Sequence[str] = ()
) -> Standings:
    """Read all tenants, or only these and those that have jobs in these queues, with their shares."""
    counted, is_complete = await _counted(store, queues)
    named = {*counted, *also}
    if queues is not None and len(named) < MAX_PAGE_SIZE:
        policies = await _named(store, named)
    else:
        policies = await _with_policy(store)
        policies |= await _without_policy(store, named - policies.keys())
    everyone = policies.pop(EVERY)
    wanted = policies if queues is None else named
    rows = {name: Row(policies[name]) for name in sorted({*sorted(wanted)[:MOST_TENANTS], *also})}
    for name, (places, dead) in counted.items():
        if name in rows:
            rows[name].places, rows[name].dead = places, dead
    is_complete = is_complete and len(policies) <= MOST_TENANTS
    names = sorted({queue for row in rows.values() for queue in row.places})
    standings = Standings(rows, await _queues(store, names), is_complete)
    for name in names:
        await _share(store, standings, name, everyone)
    return standings


async def read_first(store: Store, places: Iterable[tuple[Row, str]]) -> None:
    """Read who is first in the lines of these tenants in these queues."""
    wanted = {JobLine(row.name, queue): row.places[queue] for row, queue in places if row.places[queue].ready}
    lines = list(wanted)
    for at in range(0, len(lines), MAX_LINES):
        request = FirstRequest(scope=Scope.all(), lines=tuple(lines[at : at + MAX_LINES]))
        for one in await store.jobs.first_in_line(request):
            wanted[one.line].first_id, wanted[one.line].since = one.id, one.ready_at


_Counted = dict[str, tuple[dict[str, Place], int]]


async def _counted(store: Store, queues: Sequence[str] | None) -> tuple[_Counted, bool]:
    """Return the places and the dead jobs of each tenant, and whether that is all."""
    found: _Counted = {}
    for queue in [None] if queues is None else queues:
        async for one in count_all(store, Scope.all(), queue):
            if one.tenant not in found and len(found) == MOST_TENANTS:
                return found, False
            places, dead = found.get(one.tenant, ({}, 0))
            if one.state is State.DEAD:
                dead += one.jobs
            elif one.state in _FIELDS:
                setattr(places.setdefault(one.queue, Place()), _FIELDS[one.state], one.jobs)
            found[one.tenant] = (places, dead)
    return found, True


_FIELDS: Final[Mapping[State, str]] = {
    State.READY: "ready",
    State.DELAYED: "delayed",
    State.RUNNING: "running",
}


async def _named(store: Store, names: Iterable[str]) -> dict[str, PolicyView]:
    """Return the policies of these tenants, and of everyone."""
    subjects = (_EVERYONE, *(Subject(SubjectKind.TENANT, name) for name in names))
    views = await store.policies.read(ReadRequest(scope=Scope.all(), subjects=subjects))
    return {subject.name: view for subject, view in views.items()}


async def _with_policy(store: Store) -> dict[str, PolicyView]:
    """Return the tenants that have a policy of their own."""
    found: dict[str, PolicyView] = {}
    request = ListRequest(scope=Scope.all(), kind=SubjectKind.TENANT, with_jobs=False, limit=MAX_PAGE_SIZE)
    while len(found) <= MOST_TENANTS:
        page = await store.policies.list(request)
        found |= {view.subject.name: view for view in page}
        if len(page) < MAX_PAGE_SIZE:
            break
        request = msgspec.structs.replace(request, after=page[-1].subject.name)
    return found


async def _without_policy(store: Store, names: Iterable[str]) -> dict[str, PolicyView]:
    """Return what holds for tenants without a policy, which is the same for all, and for everyone."""
    rest = sorted(names)
    found = await _named(store, rest[:1])
    return found | {
        name: msgspec.structs.replace(found[rest[0]], subject=Subject(SubjectKind.TENANT, name))
        for name in rest
    }


async def _queues(store: Store, names: Sequence[str]) -> dict[str, PolicyView]:
    subjects = tuple(Subject(SubjectKind.QUEUE, name) for name in names)
    views = await store.policies.read(ReadRequest(scope=Scope.all(), subjects=subjects))
    return {subject.name: view for subject, view in views.items()}


async def _share(store: Store, standings: Standings, queue: str, everyone: PolicyView) -> None:
    """Work out the shares in one queue."""
    found = standings.of_queue(queue)
    if not found:
        return
    view = standings.queues[queue]
    rules = view.effective if isinstance(view.effective, QueueRules) else QueueRules()
    shared = everyone.effective if isinstance(everyone.effective, TenantRules) else TenantRules()
    limits = [limits_of(queue, row.rules, shared, rules) for row, _ in found]
    claimants = [
        Claimant(
            weight=row.rules.weight,
            held=place.running,
            # What is paused cannot take a slot, so it is due none.
            ready=0 if view.paused is not None or row.policy.paused is not None else place.ready,
            room=inf if limit.running is None else max(0, limit.running - place.running),
        )
        for (row, place), limit in zip(found, limits, strict=True)
    ]
    who = contention(claimants)
    if who.slowed:
        rates = {found[at][0].policy.subject: limits[at].rate for at in who.slowed}
        held_back = await _held_back(store, queue, rules.rate, rates)
        for at in who.slowed:
            if found[at][0].policy.subject in held_back:
                claimants[at] = msgspec.structs.replace(claimants[at], room=0)
        who = contention(claimants)
    fair, guaranteed = fair_shares(claimants), guaranteed_shares(claimants)
    for at, (_, place) in enumerate(found):
        place.fair, place.guaranteed = fair[at], guaranteed[at]
        place.is_over, place.is_slowed = at in who.over, at in who.slowed


async def _held_back(
    store: Store, queue: str, of_queue: Rate | None, of_tenants: Mapping[Subject, Rate | None]
) -> set[Subject]:
    """Return which of these tenants a rate keeps from starting now; all if it is that of the queue."""
    whole = Subject(SubjectKind.QUEUE, queue)
    rates = {one: rate for one, rate in {whole: of_queue, **of_tenants}.items() if rate is not None}
    if not rates:
        return set()
    reply = await store.policies.rates(RatesRequest(scope=Scope.all(), subjects=tuple(rates), queue=queue))
    used_up = set[Subject]()
    for one, rate in rates.items():
        use = reply.uses[one]
        counted = rate.next_allowed_from(use.rate_id, use.next_allowed_at)
        if not rate.allowed_starts(counted, reply.now):
            used_up.add(one)
    return set(of_tenants) if whole in used_up else used_up
