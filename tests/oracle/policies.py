"""The policies facet of the oracle."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.model.policy.overrides import EVERY, Hold, Override, Subject, SubjectKind, is_active
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
        return tuple(differences)

    async def override(self, request: OverrideRequest) -> PolicyView:
        check_override(request)
        subject = request.subject
        self._core.books.overrides[subject] = Override(
            change=request.change,
            who=request.who,
            note=request.note,
            set_at=self._core.now(),
            until=request.until,
        )
        self._changed(subject)
        return self._view(subject)

    async def reset(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        subject = request.subject
        self._core.books.overrides.pop(subject, None)
        self._changed(subject)
        return self._view(subject)

    async def pause(self, request: HoldRequest) -> PolicyView:
        view = self._hold(self._core.books.paused, request)
        self._changed(request.subject)
        return view

    async def resume(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        subject = request.subject
        self._core.books.paused.pop(subject, None)
        self._changed(subject)
        return self._view(subject)

    async def close(self, request: HoldRequest) -> PolicyView:
        return self._hold(self._core.books.closed, request)

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        check_subject(request, request.subject)
        subject = request.subject
        self._core.books.closed.pop(subject, None)
        return self._view(subject)

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        check_subject(request, *request.subjects)
        return {subject: self._view(subject) for subject in request.subjects}

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        check_list(request)
        names = sorted(name for name in self._names(request.kind) if name > request.after)
        views = (self._view(Subject(request.kind, name)) for name in names)
        return tuple(view for view in views if is_listed(view, request))[: request.limit]

    def _names(self, kind: SubjectKind) -> set[str]:
        books = self._core.books
        known = [*books.declared, *books.overrides, *books.paused, *books.closed]
        names = {subject.name for subject in known if subject.kind is kind and subject.name != EVERY}
        columns = {SubjectKind.TENANT: 0, SubjectKind.QUEUE: 1}
        if kind in columns:
            names |= {str(key[columns[kind]]) for key in books.counts}
        if kind is SubjectKind.TASK:
            names |= {job.task for job in books.jobs.values()}
        return names

    def _hold(self, holds: dict[Subject, Hold], request: HoldRequest) -> PolicyView:
        check_hold(request)
        subject = request.subject
        holds[subject] = Hold(
            who=request.who, reason=request.reason, set_at=self._core.now(), until=request.until
        )
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
