"""The policies facet: rules, overrides, pause, close. What claims read of them is written along."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.operations import Operation
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import Hold, Subject, SubjectKind
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
from fairlane.store.policy_records import EVERYONE, NO_POLICY, StoredPolicy, pack_policy, unpack_policy
from fairlane.store.policy_verbs import MakePart, PolicyPart, PolicyRequest, PolicyVerbs, is_only_for_new_jobs
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.policies.effective_rules import FOREVER, effective_rules
from fairlane.store.postgres.policies.policy_snapshot import PolicySnapshot, read_policy_snapshot
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load, quoted


class PostgresPolicies(PolicyVerbs):
    """What is allowed."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("policies", server.schema)

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        check_subject(request, *request.rules)
        differences = []
        async with self._changing(request.rules) as changing:
            for subject, rules in sorted(request.rules.items()):
                before = changing.policy(subject).declared
                if before != rules:
                    differences.append(Difference(subject, before, rules))
                    changing.set(subject, "declared", rules)
                if isinstance(rules, BudgetRules):
                    coming = coming_periods(rules.per, rules.timezone, changing.now)
                    await changing.write_periods(subject.name, coming)
        return tuple(differences)

    async def remove(self, request: SubjectRequest) -> int:
        check_remove(request)
        async with self._changing((request.subject,)) as changing:
            unfinished = await changing.unfinished(request.subject.name)
            if not unfinished:
                changing.remove(request.subject, request.operation)
        return unfinished

    async def rates(self, request: RatesRequest) -> RatesReply:
        check_subject(request, *request.subjects)
        names = [one.kind.value for one in request.subjects], [one.name for one in request.subjects]
        async with read_transaction(self._server) as connection:
            now = await connection.fetchval(self._sql.now, self._server.now())
            rows = await connection.fetch(self._sql.rates, request.queue, *names)
        uses = {one: RateUse() for one in request.subjects}
        uses |= {Subject(SubjectKind(kind), name): RateUse(*use) for kind, name, *use in rows}
        return RatesReply(now, uses)

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        check_subject(request, *request.subjects)
        async with self._server.transaction() as connection:
            snapshot = await read_policy_snapshot(self._server, connection, request.subjects)
        return {subject: snapshot.view(subject) for subject in request.subjects}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        check_list(request)
        found: list[PolicyView] = []
        after = request.after
        async with read_transaction(self._server, in_order=True) as connection:
            while len(found) < request.limit:
                names = await self._names(connection, request, after)
                if not names:
                    break
                subjects = [Subject(request.kind, name) for name in names]
                snapshot = await read_policy_snapshot(self._server, connection, subjects)
                found += [one for one in map(snapshot.view, subjects) if is_listed(one, request)]
                after = names[-1]
        return tuple(found[: request.limit])

    async def _names(self, connection: Connection, request: ListRequest, after: str) -> Sequence[str]:
        """Return the next names, at most `limit`: of subjects that have a policy, and that have jobs."""
        kind, limit = request.kind, request.limit
        rows = await connection.fetch(self._sql.named, kind.value, after, limit)
        with_jobs = {SubjectKind.TENANT: self._sql.tenants, SubjectKind.QUEUE: self._sql.queues}
        if kind in with_jobs and request.with_jobs:
            rows += await connection.fetch(with_jobs[kind], after, limit)
        return sorted({row[0] for row in rows})[:limit]

    async def _change(self, request: PolicyRequest, part: PolicyPart, make: MakePart) -> PolicyView:
        async with self._changing((request.subject,)) as changing:
            before, after = getattr(changing.policy(request.subject), part), make(changing.now)
            changing.set(request.subject, part, after)
            changing.audit = policy_entries(request.operation, request.subject, part, before, after)
        return changing.view(request.subject)

    @asynccontextmanager
    async def _changing(self, subjects: Iterable[Subject]) -> AsyncIterator[_Changing]:
        """Change policies in one step; one at a time, so that changes are numbered as they commit."""
        async with self._server.transaction() as connection:
            await connection.execute(self._sql.lock, f"{quoted(self._server.schema)} policies")
            snapshot = await read_policy_snapshot(self._server, connection, subjects)
            changing = _Changing(connection, self._sql, snapshot)
            yield changing
            await changing.write()
            await append_entries(connection, self._server.schema, changing.now, "audit", changing.audit)
        self._server.hint(changing.queues)


class _Changing:
    """One change of policies: what is stored, what is new, and what follows from it."""

    def __init__(self, connection: Connection, sql: Any, snapshot: PolicySnapshot) -> None:
        self._connection = connection
        self._sql = sql
        self._snapshot = snapshot
        self._changed: set[Subject] = set()
        self._freeing: set[Subject] = set()
        self.queues: tuple[str, ...] = ()
        self.audit: tuple[NewEntry, ...] = ()

    @property
    def now(self) -> Instant:
        return self._snapshot.now

    def policy(self, subject: Subject) -> StoredPolicy:
        return self._snapshot.policy(subject)

    def view(self, subject: Subject) -> PolicyView:
        return self._snapshot.view(subject)

    def set(self, subject: Subject, part: PolicyPart, value: object) -> None:
        """Replace one part of a policy."""
        self._snapshot.known[subject] = msgspec.structs.replace(self.policy(subject), **{part: value})
        self._changed.add(subject)
        if not is_only_for_new_jobs(part):
            self._freeing.add(subject)

    async def unfinished(self, queue: str) -> int:
        """Return how many jobs wait or run in a queue."""
        found: int = await self._connection.fetchval(self._sql.unfinished, queue, MAX_ROWS_READ)
        return found

    def remove(self, subject: Subject, operation: Operation | None) -> None:
        """Remove a whole policy. Wakes nobody: it held nobody back."""
        self.audit = removal_entries(operation, subject, self.policy(subject))
        self._snapshot.known[subject] = NO_POLICY
        self._changed.add(subject)

    async def write_periods(self, budget: str, starts: Sequence[Instant]) -> None:
        """Write when the periods of a budget begin, in place of what was known."""
        await self._connection.execute(self._sql.drop_periods, budget)
        await self._connection.execute(self._sql.add_periods, budget, starts)

    async def write(self) -> None:
        """Store policies, rules and holds, and the change that lets queues wake what was held back."""
        if not self._changed:
            return
        run, sql = self._connection.execute, self._sql
        names = _columns(self._changed)
        blobs = zip(*(pack_policy(self.policy(one)) for one in sorted(self._changed)), strict=True)
        await run(sql.write, *names, *map(list, blobs))
        await run(sql.delete_holds, *names)
        await run(sql.insert_holds, *self._holds())
        await self._write_rules()
        freeing = _columns(self._freeing)
        await run(sql.record_change, self.now, *freeing)
        self.queues = tuple(row[0] for row in await self._connection.fetch(sql.concerned, *freeing))

    def _holds(self) -> list[list[Any]]:
        held = [
            (verb, one.kind.value, one.name, _end_of(hold), hold.reason.replace("\0", ""))
            for one in sorted(self._changed)
            for verb in ("paused", "closed")
            if (hold := getattr(self.policy(one), verb)) is not None
        ]
        return [list(column) for column in zip(*held, strict=True)] or [[], [], [], [], []]

    async def _write_rules(self) -> None:
        """Replace the rules of what has changed, and of tenants whose rules rest on those of everyone."""
        stale = {subject: self.policy(subject) for subject in self._changed}
        if EVERYONE in stale:
            for name, *row in await self._connection.fetch(self._sql.tenants_above_everyone):
                stale[Subject(SubjectKind.TENANT, name)] = unpack_policy(SubjectKind.TENANT, row)
        everyone = self.policy(EVERYONE)
        rows = [
            row for subject, policy in stale.items() for row in effective_rules(subject, policy, everyone)
        ]
        await self._connection.execute(self._sql.delete_rules, *_columns(stale))
        await self._connection.execute(self._sql.insert_rules, msgspec.json.encode(rows).decode())


def _columns(subjects: Iterable[Subject]) -> tuple[list[str], list[str]]:
    ordered = sorted(subjects)
    return [one.kind.value for one in ordered], [one.name for one in ordered]


def _end_of(hold: Hold) -> Instant:
    return FOREVER if hold.until is None else hold.until
