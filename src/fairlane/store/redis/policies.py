"""The policies facet: rules, overrides, pauses and closes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.layers import EVERY, Hold, Kind, Override, Rules, Subject
from fairlane.store.contract.policies import (
    Difference,
    HoldRequest,
    ListRequest,
    OverrideRequest,
    PolicyView,
    PutRequest,
    ReadRequest,
    SubjectRequest,
    check_hold,
    check_list,
    check_override,
    check_subject,
    is_listed,
)
from fairlane.store.policy import EVERYONE, Policy, view
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.counting import ALL_QUEUES, books_in, queue_names, read_books
from fairlane.store.redis.rulebook import read_policy, write_policy, write_rules

_PAGE: Final = 500


class RedisPolicies:
    """What is allowed."""

    def __init__(self, wire: Wire) -> None:
        """Share the connections with the other facets."""
        self._wire = wire

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        """See the contract."""
        check_subject(request, *request.rules)
        differences = []
        for subject, rules in sorted(request.rules.items()):
            before = (await self._change(subject, declared=partial(_as_given, rules)))[0].declared
            if before != rules:
                differences.append(Difference(subject, before, rules))
        return tuple(differences)

    async def override(self, request: OverrideRequest) -> PolicyView:
        """See the contract."""
        check_override(request)

        def lay(now: Instant) -> Override:
            return Override(
                change=request.change, who=request.who, note=request.note, set_at=now, until=request.until
            )

        return (await self._change(request.subject, override=lay))[1]

    async def reset(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        check_subject(request, request.subject)
        return (await self._change(request.subject, override=_nothing))[1]

    async def pause(self, request: HoldRequest) -> PolicyView:
        """See the contract."""
        check_hold(request)
        return (await self._change(request.subject, paused=_hold(request)))[1]

    async def resume(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        check_subject(request, request.subject)
        return (await self._change(request.subject, paused=_nothing))[1]

    async def close(self, request: HoldRequest) -> PolicyView:
        """See the contract."""
        check_hold(request)
        return (await self._change(request.subject, closed=_hold(request)))[1]

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        check_subject(request, request.subject)
        return (await self._change(request.subject, closed=_nothing))[1]

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        """See the contract."""
        check_subject(request, *request.subjects)
        views = await _views(self._wire, request.subjects)
        return {one.subject: one for one in views}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        """See the contract."""
        check_list(request)
        found: list[PolicyView] = []
        after: str | None = request.after
        while after is not None and len(found) < request.limit:
            names, after = await _names(self._wire, request.kind, after)
            views = await _views(self._wire, (Subject(request.kind, name) for name in names))
            found += [one for one in views if is_listed(one, request)]
        return tuple(found[: request.limit])

    async def _change(
        self, subject: Subject, **values: Callable[[Instant], object]
    ) -> tuple[Policy, PolicyView]:
        """Change a policy whole; again if somebody else did meanwhile. Gives the one before, too."""
        # A close holds nobody who is in already.
        mark = "" if "closed" in values else "mark"
        while True:
            now, (raw, everyone) = await _stored(self._wire, (subject, EVERYONE))
            before = read_policy(subject.kind, raw)
            after: Policy = msgspec.structs.replace(
                before, **{name: make(now) for name, make in values.items()}
            )
            above = after if subject == EVERYONE else read_policy(Kind.TENANT, everyone)
            seen = view(subject, after, above, now)
            if "declared" in values and before.declared == after.declared:
                return before, seen  # declared as before: it changes and wakes nothing
            packed = (raw, write_policy(after), write_rules(after))
            if await self._wire.run("policy", subject.kind.value, subject.name, *packed, mark, at=now):
                return before, seen


async def _stored(wire: Wire, subjects: Iterable[Subject]) -> tuple[Instant, list[bytes]]:
    now, *stored = await wire.run("policies", *(str(subject) for subject in subjects))
    return now, stored


async def _views(wire: Wire, subjects: Iterable[Subject]) -> list[PolicyView]:
    wanted = list(subjects)
    now, stored = await _stored(wire, (EVERYONE, *wanted))
    everyone = read_policy(Kind.TENANT, stored[0])
    return [
        view(subject, read_policy(subject.kind, one), everyone, now)
        for subject, one in zip(wanted, stored[1:], strict=True)
    ]


async def _names(wire: Wire, kind: Kind, after: str) -> tuple[list[str], str | None]:
    """Give the next names, from both where policies and where jobs are, and where to go on."""
    first, last = f"({kind.value}\0{after}", f"({kind.value}\1"
    key = wire.keys("policies_named")
    stored = await wire.ask("ZRANGE", key, first, last, "BYLEX", "LIMIT", 0, _PAGE)
    named = [name.decode().partition("\0")[2] for name in stored]
    with_jobs, edge = await _names_with_jobs(wire, kind, after)
    edges = [*([named[-1]] if len(named) == _PAGE else []), *([] if edge is None else [edge])]
    end = min(edges, default=None)  # beyond it, one of the two may have more
    names = {*named, *with_jobs} - {EVERY}
    return sorted(name for name in names if end is None or name <= end), end


async def _names_with_jobs(wire: Wire, kind: Kind, after: str) -> tuple[set[str], str | None]:
    if kind is Kind.TASK:
        tasks = await wire.ask("HKEYS", wire.keys("task_jobs"))
        return {task.decode() for task in tasks if task.decode() > after}, None
    if kind is Kind.GATE:
        return set(), None
    if kind is Kind.QUEUE:
        queues = [queue for queue in await queue_names(wire) if queue > after]
        return {queue for queue in queues if await _has_jobs(wire, queue)}, None
    books, is_more = await read_books(wire, (after, ALL_QUEUES), is_after=True)
    edge = books[-1][0] if is_more else None
    return {tenant for tenant, _, counts, _ in books if any(counts)}, edge


async def _has_jobs(wire: Wire, queue: str) -> bool:
    async for _, _, counts, _ in books_in(wire, queue):
        if any(counts):
            return True
    return False


def _as_given(rules: Rules, _: Instant) -> Rules:
    return rules


def _nothing(_: Instant) -> None:
    return None


def _hold(request: HoldRequest) -> Callable[[Instant], Hold]:
    return lambda now: Hold(who=request.who, reason=request.reason, set_at=now, until=request.until)
