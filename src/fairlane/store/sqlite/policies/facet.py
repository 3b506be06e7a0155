"""The policies facet: declared rules, overrides, pause and resume, close and reopen.

Most verbs are in `PolicyVerbs`, which all stores share; they end in `_change` here.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import Subject, SubjectKind
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
from fairlane.store.policy_records import EVERYONE, NO_POLICY, StoredPolicy, view
from fairlane.store.policy_verbs import MakePart, PolicyPart, PolicyRequest, PolicyVerbs, is_only_for_new_jobs
from fairlane.store.sqlite.claims.parking import mark_blocked
from fairlane.store.sqlite.query import one_row, one_value
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.budgets import write_periods
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("policies")


class SqlitePolicies(PolicyVerbs):
    """Declare, read and change policies; override, pause, close and their opposites are inherited."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        check_subject(request, *request.rules)
        return await self._writer.run(lambda tx: _put(tx, request))

    async def remove(self, request: SubjectRequest) -> int:
        check_remove(request)
        return await self._writer.run(lambda tx: _remove(tx, request))

    async def rates(self, request: RatesRequest) -> RatesReply:
        check_subject(request, *request.subjects)
        return await self._reader.run(lambda tx: _rates(tx, request))

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        check_subject(request, *request.subjects)
        return await self._reader.run(lambda tx: {one: _view(tx, one) for one in request.subjects})

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        check_list(request)
        return await self._reader.run(lambda tx: _list(tx, request))

    async def _change(self, request: PolicyRequest, part: PolicyPart, make: MakePart) -> PolicyView:
        """Replace one part of a policy; claims then see the new one, and what it blocked may be unparked."""
        return await self._writer.run(lambda tx: _change(tx, request, part, make(tx.now)))


def _put(tx: Transaction, request: PutRequest) -> tuple[Difference, ...]:
    differences = []
    for subject, rules in sorted(request.rules.items()):
        before = tx.policies.policy(subject).declared
        if before != rules:
            differences.append(Difference(subject, before, rules))
            _replace(tx, subject, "declared", rules)
        if isinstance(rules, BudgetRules):
            write_periods(tx.db, subject.name, coming_periods(rules.per, rules.timezone, tx.now))
    return tuple(differences)


def _change(tx: Transaction, request: PolicyRequest, part: PolicyPart, value: object) -> PolicyView:
    before = getattr(tx.policies.policy(request.subject), part)
    tx.append("audit", policy_entries(request.operation, request.subject, part, before, value))
    return _replace(tx, request.subject, part, value)


def _remove(tx: Transaction, request: SubjectRequest) -> int:
    unfinished: int = one_value(tx.db, _SQL.unfinished, (request.subject.name,)) or 0
    before = tx.policies.policy(request.subject)
    if not unfinished and before != NO_POLICY:
        tx.append("audit", removal_entries(request.operation, request.subject, before))
        tx.policies.write(request.subject, NO_POLICY)
    return min(unfinished, MAX_ROWS_READ)


def _rates(tx: Transaction, request: RatesRequest) -> RatesReply:
    uses: dict[Subject, RateUse] = {}
    for subject in request.subjects:
        is_tenant = subject.kind is SubjectKind.TENANT
        values = (request.queue, subject.name) if is_tenant else (subject.name,)
        row = one_row(tx.db, getattr(_SQL, f"{subject.kind.value}_rate"), values)
        uses[subject] = RateUse() if row is None else RateUse(*row)
    return RatesReply(tx.now, uses)


def _replace(tx: Transaction, subject: Subject, part: PolicyPart, value: object) -> PolicyView:
    policy: StoredPolicy = msgspec.structs.replace(tx.policies.policy(subject), **{part: value})
    tx.policies.write(subject, policy)
    if not is_only_for_new_jobs(part):
        mark_blocked(tx, subject)
    return _view(tx, subject)


def _view(tx: Transaction, subject: Subject) -> PolicyView:
    return view(subject, tx.policies.policy(subject), tx.policies.policy(EVERYONE), tx.now)


def _list(tx: Transaction, request: ListRequest) -> tuple[PolicyView, ...]:
    found: list[PolicyView] = []
    after = request.after
    while len(found) < request.limit:
        names = _names(tx, request, after)
        if not names:
            break
        views = (_view(tx, Subject(request.kind, name)) for name in names)
        found += [view for view in views if is_listed(view, request)]
        after = names[-1]
    return tuple(found[: request.limit])


def _names(tx: Transaction, request: ListRequest, after: str) -> list[str]:
    """Return the next names, of subjects with a policy and, if asked for, of those with jobs."""
    kind, limit = request.kind, request.limit
    names = {name for (name,) in tx.db.execute(_SQL.named, (kind.value, after, limit))}
    with_jobs = {
        SubjectKind.TENANT: _SQL.tenants,
        SubjectKind.QUEUE: _SQL.queues,
    }
    if kind in with_jobs and request.with_jobs:
        names |= {name for (name,) in tx.db.execute(with_jobs[kind], (after, limit))}
    return sorted(names)[:limit]
