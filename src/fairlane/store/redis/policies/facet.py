"""The policies facet: rules, overrides, pauses and closes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import EVERY, Rules, Subject, SubjectKind
from fairlane.store.contract.policies import (
    Difference,
    ListRequest,
    PolicyView,
    PutRequest,
    ReadRequest,
    check_list,
    check_subject,
    is_listed,
)
from fairlane.store.policy_records import EVERYONE, StoredPolicy, view
from fairlane.store.policy_verbs import MakePart, PolicyPart, PolicyVerbs, is_only_for_new_jobs
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import ALL_QUEUES, queue_names, read_tenant_counts, tenant_counts_in
from fairlane.store.redis.policies.encoding import read_policy, write_policy, write_rules

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
        return tuple(differences)

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        check_subject(request, *request.subjects)
        views = await _views(self._client, request.subjects)
        return {one.subject: one for one in views}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        check_list(request)
        found: list[PolicyView] = []
        after: str | None = request.after
        while after is not None and len(found) < request.limit:
            names, after = await _names(self._client, request.kind, after)
            views = await _views(self._client, (Subject(request.kind, name) for name in names))
            found += [one for one in views if is_listed(one, request)]
        return tuple(found[: request.limit])

    async def _change(self, subject: Subject, part: PolicyPart, make: MakePart) -> PolicyView:
        return (await self._replace(subject, part, make))[1]

    async def _replace(
        self, subject: Subject, part: PolicyPart, make: MakePart
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
            if await self._client.run(
                "policies/write", subject.kind.value, subject.name, *packed, mark, at=now
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


async def _names(client: RedisClient, kind: SubjectKind, after: str) -> tuple[list[str], str | None]:
    """Return the next names that have a policy or jobs, and where to go on."""
    first, last = f"({kind.value}\0{after}", f"({kind.value}\1"
    key = client.keys("policies_named")
    stored = await client.ask("ZRANGE", key, first, last, "BYLEX", "LIMIT", 0, _PAGE)
    named = [name.decode().partition("\0")[2] for name in stored]
    with_jobs, edge = await _names_with_jobs(client, kind, after)
    edges = [*([named[-1]] if len(named) == _PAGE else []), *([] if edge is None else [edge])]
    end = min(edges, default=None)  # beyond it, one of the two may have more
    names = {*named, *with_jobs} - {EVERY}
    return sorted(name for name in names if end is None or name <= end), end


async def _names_with_jobs(client: RedisClient, kind: SubjectKind, after: str) -> tuple[set[str], str | None]:
    if kind is SubjectKind.TASK:
        tasks = await client.ask("HKEYS", client.keys("task_jobs"))
        return {task.decode() for task in tasks if task.decode() > after}, None
    if kind is SubjectKind.GATE:
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


def _as_given(rules: Rules, _: Instant) -> Rules:
    return rules
