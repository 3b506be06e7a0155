"""The policies facet of the oracle."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.model.lifecycle.states import HOT
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import EVERY, Hold, Override, Subject, SubjectKind, is_active
from fairlane.model.policy.periods import coming_periods
from fairlane.store.contract.policies import (
    Difference,
    HoldRequest,
    ListRequest,
    OverrideRequest,
    PolicyView,
    PutRequest,
    RatesReply,
    RatesRequest,
    RateUse,
    ReadRequest,
    SubjectRequest,
    check_hold,
    check_list,
    check_override,
    check_remove,
    check_subject,
    is_listed,
)
from fairlane.store.contract.request import MAX_ROWS_READ, OperatorRequest
from tests.oracle.audit import Audit
from tests.oracle.core import Core
from tests.oracle.waking import mark, queues_at_gate


class OraclePolicies:
    """Policies in plain dictionaries."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        books = self._core.books
        check_subject(request, *request.rules)
        differences = []
        for subject, rules in sorted(request.rules.items()):
            before = books.declared.get(subject)
            if before != rules:
                differences.append(Difference(subject, before, rules))
                books.declared[subject] = rules
                self._changed(subject)
            if isinstance(rules, BudgetRules):
                coming = coming_periods(rules.per, rules.timezone, self._core.now())
                books.budgets.calendars[subject.name] = coming
        return tuple(differences)

    async def override(self, request: OverrideRequest) -> PolicyView:
        check_override(request)
        subject, overrides = request.subject, self._core.books.overrides
        override = Override(
            change=request.change,
            who=request.who,
            note=request.note,
            set_at=self._core.now(),
            until=request.until,
        )
        self._audit(request).policy(subject, "override", overrides.get(subject), override)
        overrides[subject] = override
        self._changed(subject)
        return self._view(subject)

    async def reset(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        subject = request.subject
        before = self._core.books.overrides.pop(subject, None)
        self._audit(request).policy(subject, "override", before, None)
        self._changed(subject)
        return self._view(subject)

    async def pause(self, request: HoldRequest) -> PolicyView:
        view = self._hold("paused", self._core.books.paused, request)
        self._changed(request.subject)
        return view

    async def resume(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        subject = request.subject
        before = self._core.books.paused.pop(subject, None)
        self._audit(request).policy(subject, "paused", before, None)
        self._changed(subject)
        return self._view(subject)

    async def close(self, request: HoldRequest) -> PolicyView:
        return self._hold("closed", self._core.books.closed, request)

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        subject = request.subject
        before = self._core.books.closed.pop(subject, None)
        self._audit(request).policy(subject, "closed", before, None)
        return self._view(subject)

    async def remove(self, request: SubjectRequest) -> int:
        check_remove(request)
        subject, books = request.subject, self._core.books
        unfinished = sum(job.queue == subject.name and job.state in HOT for job in books.jobs.values())
        if not unfinished:
            before = {
                "declared": books.declared.pop(subject, None),
                "override": books.overrides.pop(subject, None),
                "paused": books.paused.pop(subject, None),
                "closed": books.closed.pop(subject, None),
            }
            self._audit(request).removal(subject, before)
        return min(unfinished, MAX_ROWS_READ)

    async def rates(self, request: RatesRequest) -> RatesReply:
        check_subject(request, *request.subjects)
        known = self._core.books.next_allowed
        uses = {}
        for one in request.subjects:
            name = (request.queue, one.name) if one.kind is SubjectKind.TENANT else one
            uses[one] = RateUse(*known.get(name, ()))
        return RatesReply(self._core.now(), uses)

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        check_subject(request, *request.subjects)
        return {subject: self._view(subject) for subject in request.subjects}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        check_list(request)
        names = sorted(name for name in self._names(request) if name > request.after)
        views = (self._view(Subject(request.kind, name)) for name in names)
        return tuple(view for view in views if is_listed(view, request))[: request.limit]

    def _names(self, request: ListRequest) -> set[str]:
        books, kind = self._core.books, request.kind
        known = [*books.declared, *books.overrides, *books.paused, *books.closed]
        names = {subject.name for subject in known if subject.kind is kind and subject.name != EVERY}
        columns = {SubjectKind.TENANT: 0, SubjectKind.QUEUE: 1}
        if kind in columns and request.with_jobs:
            names |= {str(key[columns[kind]]) for key in books.counts}
        return names

    def _audit(self, request: OperatorRequest) -> Audit:
        return Audit(self._core, request.operation)

    def _hold(self, part: str, holds: dict[Subject, Hold], request: HoldRequest) -> PolicyView:
        check_hold(request)
        subject = request.subject
        hold = Hold(who=request.who, reason=request.reason, set_at=self._core.now(), until=request.until)
        self._audit(request).policy(subject, part, holds.get(subject), hold)
        holds[subject] = hold
        return self._view(subject)

    def _view(self, subject: Subject) -> PolicyView:
        books, now = self._core.books, self._core.now()
        override = books.overrides.get(subject)
        if override is not None and not is_active(override.until, now):
            override = None
        return PolicyView(
            subject,
            books.declared.get(subject),
            override,
            books.rules(subject, now),
            books.hold(books.paused, subject, now),
            books.hold(books.closed, subject, now),
        )

    def _changed(self, subject: Subject) -> None:
        """Let claims wake what was parked because of the subject, and hint the queues concerned."""
        books = self._core.books
        queues = mark(books, subject, self._core.now())
        if subject.kind is SubjectKind.QUEUE:
            queues.add(subject.name)
        if subject.kind is SubjectKind.GATE:
            queues |= queues_at_gate(books, subject.name)
        self._core.hint(queues)
