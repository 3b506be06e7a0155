"""The policies facet: rules, overrides, pauses and closes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlane.model.layers import Hold, Kind, Override, Subject
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
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import Tx
from fairlane.store.sqlite.waking import mark
from fairlane.store.sqlite.writer import Reader, Writer

_SQL = load("policies")


class SqlitePolicies:
    """What is allowed."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def put(self, request: PutRequest) -> tuple[Difference, ...]:
        """See the contract."""
        check_subject(request, *request.rules)
        return await self._writer.run(lambda tx: _put(tx, request))

    async def override(self, request: OverrideRequest) -> PolicyView:
        """See the contract."""
        check_override(request)

        def lay(tx: Tx) -> PolicyView:
            override = Override(
                change=request.change,
                who=request.who,
                note=request.note,
                set_at=tx.now,
                until=request.until,
            )
            return _change(tx, request.subject, override=override)

        return await self._writer.run(lay)

    async def reset(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        check_subject(request, request.subject)
        return await self._writer.run(lambda tx: _change(tx, request.subject, override=None))

    async def pause(self, request: HoldRequest) -> PolicyView:
        """See the contract."""
        check_hold(request)
        return await self._writer.run(lambda tx: _change(tx, request.subject, paused=_hold(tx, request)))

    async def resume(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        check_subject(request, request.subject)
        return await self._writer.run(lambda tx: _change(tx, request.subject, paused=None))

    async def close(self, request: HoldRequest) -> PolicyView:
        """See the contract."""
        check_hold(request)
        return await self._writer.run(lambda tx: _change(tx, request.subject, closed=_hold(tx, request)))

    async def reopen(self, request: SubjectRequest) -> PolicyView:
        """See the contract."""
        check_subject(request, request.subject)
        return await self._writer.run(lambda tx: _change(tx, request.subject, closed=None))

    async def read(self, request: ReadRequest) -> Mapping[Subject, PolicyView]:
        """See the contract."""
        check_subject(request, *request.subjects)
        return await self._reader.run(lambda tx: {one: _view(tx, one) for one in request.subjects})

    async def list(self, request: ListRequest) -> tuple[PolicyView, ...]:
        """See the contract."""
        check_list(request)
        return await self._reader.run(lambda tx: _list(tx, request))


def _hold(tx: Tx, request: HoldRequest) -> Hold:
    return Hold(who=request.who, reason=request.reason, set_at=tx.now, until=request.until)


def _put(tx: Tx, request: PutRequest) -> tuple[Difference, ...]:
    differences = []
    for subject, rules in sorted(request.rules.items()):
        before = tx.rules.policy(subject).declared
        if before != rules:
            differences.append(Difference(subject, before, rules))
            _change(tx, subject, declared=rules)
    return tuple(differences)


def _change(tx: Tx, subject: Subject, **values: object) -> PolicyView:
    policy: Policy = msgspec.structs.replace(tx.rules.policy(subject), **values)
    tx.rules.write(subject, policy)
    if "closed" not in values:  # a close holds nobody who is in already
        mark(tx, subject)
    return _view(tx, subject)


def _view(tx: Tx, subject: Subject) -> PolicyView:
    return view(subject, tx.rules.policy(subject), tx.rules.policy(EVERYONE), tx.now)


def _list(tx: Tx, request: ListRequest) -> tuple[PolicyView, ...]:
    found: list[PolicyView] = []
    after = request.after
    while len(found) < request.limit:
        names = _names(tx, request.kind, after, request.limit)
        if not names:
            break
        views = (_view(tx, Subject(request.kind, name)) for name in names)
        found += [view for view in views if is_listed(view, request)]
        after = names[-1]
    return tuple(found[: request.limit])


def _names(tx: Tx, kind: Kind, after: str, most: int) -> list[str]:
    """Give the next names, at most so many, from both where policies and where jobs are."""
    names = {name for (name,) in tx.db.execute(_SQL.named, (kind.value, after, most))}
    with_jobs = {Kind.TENANT: _SQL.tenants, Kind.QUEUE: _SQL.queues, Kind.TASK: _SQL.tasks}
    if kind in with_jobs:
        names |= {name for (name,) in tx.db.execute(with_jobs[kind], (after, most))}
    return sorted(names)[:most]
