"""The policies facet: rules, overrides, pauses and closes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.states import WAITING, State
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import EVERY, Rules, Subject, SubjectKind
from fairlane.model.policy.periods import coming_periods
from fairlane.store.audit_entries import policy_entries, removal_entries
from fairlane.store.contract.policies import (
    Difference,
    ListRequest,
    PolicyView,
    PutRequest,
    RatesReply,
    RatesRequest,
    RateUse,
    ReadRequest,
    SubjectRequest,
    check_list,
    check_remove,
    check_subject,
    is_listed,
)
from fairlane.store.contract.request import MAX_ROWS_READ
from fairlane.store.policy_records import EVERYONE, StoredPolicy, view
from fairlane.store.policy_verbs import MakePart, PolicyPart, PolicyRequest, PolicyVerbs, is_only_for_new_jobs
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import ALL_QUEUES, queue_names, read_tenant_counts, tenant_counts_in
from fairlane.store.redis.policies.encoding import read_policy, write_policy, write_rules
from fairlane.store.redis.records.entries import encode_entries
from fairlane.store.redis.records.job import pack

_PAGE: Final = 500


class RedisPolicies(PolicyVerbs):
    """What is allowed. Pause, resume, close, reopen, override and reset are in `PolicyVerbs`."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        check_subject(request, *request.rules)
        differences = []
        for subject, rules in sorted(request.rules.items()):
            before, _ = await self._replace(subject, "declared", partial(_as_given, rules))
            if before.declared != rules:
                differences.append(Difference(subject, before.declared, rules))
            if isinstance(rules, BudgetRules):
                now, _ = await _stored(self._client, (subject,))
                coming = pack(coming_periods(rules.per, rules.timezone, now))
                await self._client.ask("HSET", self._client.keys("budget_periods"), subject.name, coming)
        return tuple(differences)

    async def remove(self, request: SubjectRequest) -> int:
        check_remove(request)
        subject = request.subject
        while True:
            now, (raw,) = await _stored(self._client, (subject,))
            unfinished = await _unfinished(self._client, subject.name)
            if unfinished or not raw:
                return min(unfinished, MAX_ROWS_READ)
            audit = removal_entries(request.operation, subject, read_policy(subject.kind, raw))
            entries = encode_entries("audit", audit)
            if await self._client.run(
                "policies/write", subject.kind.value, subject.name, raw, b"", b"", "", entries, at=now
            ):
                return 0

    async def rates(self, request: RatesRequest) -> RatesReply:
        check_subject(request, *request.subjects)
        names = [
            ("", str(one)) if one.kind is not SubjectKind.TENANT else (request.queue, one.name)
            for one in request.subjects
        ]
        now, *uses = await self._client.run("policies/rates", *(part for name in names for part in name))
        found = (RateUse(rate_id.decode(), next_allowed_at) for next_allowed_at, rate_id in uses)
        return RatesReply(now, dict(zip(request.subjects, found, strict=True)))

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        check_subject(request, *request.subjects)
        views = await _views(self._client, request.subjects)
        return {one.subject: one for one in views}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        check_list(request)
        found: list[PolicyView] = []
        after: str | None = request.after
        while after is not None and len(found) < request.limit:
            names, after = await _names(self._client, request, after)
            views = await _views(self._client, (Subject(request.kind, name) for name in names))
            found += [one for one in views if is_listed(one, request)]
        return tuple(found[: request.limit])

    async def _change(self, request: PolicyRequest, part: PolicyPart, make: MakePart) -> PolicyView:
        return (await self._replace(request.subject, part, make, request.operation))[1]

    async def _replace(
        self, subject: Subject, part: PolicyPart, make: MakePart, operation: Operation | None = None
    ) -> tuple[StoredPolicy, PolicyView]:
        """Replace one part of a policy; again if another client was faster. Return also the one before."""
        mark = "" if is_only_for_new_jobs(part) else "mark"
        while True:
            now, (raw, everyone) = await _stored(self._client, (subject, EVERYONE))
            before = read_policy(subject.kind, raw)
            after: StoredPolicy = msgspec.structs.replace(before, **{part: make(now)})
            above = after if subject == EVERYONE else read_policy(SubjectKind.TENANT, everyone)
            seen = view(subject, after, above, now)
            if part == "declared" and before.declared == after.declared:
                return before, seen  # declared as before: nothing changes, nothing wakes
            packed = (raw, write_policy(after), write_rules(after))
            audit = policy_entries(operation, subject, part, getattr(before, part), getattr(after, part))
            entries = encode_entries("audit", audit)
            if await self._client.run(
                "policies/write", subject.kind.value, subject.name, *packed, mark, entries, at=now
            ):
                return before, seen


async def _stored(client: RedisClient, subjects: Iterable[Subject]) -> tuple[Instant, list[bytes]]:
    now, *stored = await client.run("policies/read", *(str(subject) for subject in subjects))
    return now, stored


async def _views(client: RedisClient, subjects: Iterable[Subject]) -> list[PolicyView]:
    wanted = list(subjects)
    now, stored = await _stored(client, (EVERYONE, *wanted))
    everyone = read_policy(SubjectKind.TENANT, stored[0])
    return [
        view(subject, read_policy(subject.kind, one), everyone, now)
        for subject, one in zip(wanted, stored[1:], strict=True)
    ]


async def _names(client: RedisClient, request: ListRequest, after: str) -> tuple[list[str], str | None]:
    """Return the next names that have a policy or, if asked for, jobs, and where to go on."""
    kind = request.kind
    first, last = f"({kind.value}\0{after}", f"({kind.value}\1"
    key = client.keys("policies_named")
    stored = await client.ask("ZRANGE", key, first, last, "BYLEX", "LIMIT", 0, _PAGE)
    named = [name.decode().partition("\0")[2] for name in stored]
    with_jobs, edge = await _names_with_jobs(client, kind, after) if request.with_jobs else (set(), None)
    edges = [*([named[-1]] if len(named) == _PAGE else []), *([] if edge is None else [edge])]
    end = min(edges, default=None)  # beyond it, one of the two may have more
    names = {*named, *with_jobs} - {EVERY}
    return sorted(name for name in names if end is None or name <= end), end


async def _names_with_jobs(client: RedisClient, kind: SubjectKind, after: str) -> tuple[set[str], str | None]:
    if kind in {SubjectKind.TASK, SubjectKind.GATE, SubjectKind.BREAKER, SubjectKind.BUDGET}:
        return set(), None
    if kind is SubjectKind.QUEUE:
        queues = [queue for queue in await queue_names(client) if queue > after]
        return {queue for queue in queues if await _has_jobs(client, queue)}, None
    rows, is_more = await read_tenant_counts(client, (after, ALL_QUEUES), is_after=True)
    edge = rows[-1].tenant if is_more else None
    return {row.tenant for row in rows if row.has_jobs}, edge


async def _has_jobs(client: RedisClient, queue: str) -> bool:
    async for row in tenant_counts_in(client, queue):
        if row.has_jobs:
            return True
    return False


async def _unfinished(client: RedisClient, queue: str) -> int:
    """Return how many jobs wait or run in a queue."""
    states = (*WAITING, State.RUNNING)
    return sum([one.by_state[state] async for one in tenant_counts_in(client, queue) for state in states])


def _as_given(rules: Rules, _: Instant) -> Rules:
    return rules
