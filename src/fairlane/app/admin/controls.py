"""Pause, close, drain and override: the controls that tenants, queues and tasks share (S46, S54).

Checks the caller's scope before the store is asked (S9): policies cannot be changed from inside a tenant.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, reason_of, text_of, until_of
from fairlane.app.ambient import refuse_inside, scope_for
from fairlane.app.client import Client
from fairlane.model.instants import SECOND, Duration, Instant, Micros, to_datetime, to_micros
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.states import State
from fairlane.model.names import invalid_name, name_hint, task_hint, tenant_hint
from fairlane.model.policy.overrides import EVERY, PolicyChange, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.policies import (
    HoldRequest,
    ListRequest,
    OverrideRequest,
    PolicyView,
    ReadRequest,
    SubjectRequest,
    not_theirs,
)
from fairlane.store.contract.request import MAX_PAGE_SIZE

_EVERY_TENANT_HINT: Final = (
    'it stands for all undeclared tenants, whose limits are set in [tenants."*"] of fairlane.toml; '
    "name one tenant, or use app.tenants.list()"
)

DrainBy: TypeAlias = Literal["pause", "close"]

_POLL_EVERY: Final[Micros] = SECOND // 4


class PolicyControls:
    """The controls of one kind of subject. Each method has an async twin whose name starts with `a`."""

    kind: SubjectKind

    def __init__(self, client: Client) -> None:
        self._client = client

    def pause(self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None) -> None:
        """Claim none of its jobs; enqueues go on, running jobs finish (S46). A later pause replaces it."""
        self._client.portal.run(self.apause(name, reason=reason, until=until, who=who))

    async def apause(
        self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None
    ) -> None:
        """Claim none of its jobs; enqueues go on, running jobs finish (S46). A later pause replaces it."""
        await self._client.store.policies.pause(self._hold("pause", name, reason, until, who))

    def resume(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a pause; without a pause nothing changes."""
        self._client.portal.run(self.aresume(name, note=note, who=who))

    async def aresume(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a pause; without a pause nothing changes."""
        await self._client.store.policies.resume(self._about("resume", name, note, who))

    def close(self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None) -> None:
        """Refuse new jobs: enqueues raise `Closed`, existing jobs go on (S46)."""
        self._client.portal.run(self.aclose(name, reason=reason, until=until, who=who))

    async def aclose(
        self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None
    ) -> None:
        """Refuse new jobs: enqueues raise `Closed`, existing jobs go on (S46)."""
        await self._client.store.policies.close(self._hold("close", name, reason, until, who))

    def reopen(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a close; without a close nothing changes."""
        self._client.portal.run(self.areopen(name, note=note, who=who))

    async def areopen(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a close; without a close nothing changes."""
        await self._client.store.policies.reopen(self._about("open", name, note, who))

    def drain(
        self,
        name: str,
        *,
        reason: str,
        by: DrainBy = "pause",
        timeout: Duration | None = None,
        who: str | None = None,
    ) -> bool:
        """Pause it and wait until none of its jobs runs, or close it and wait until it is empty (S46).

        Returns False if that takes longer than `timeout`. The pause or the close stays in either case. With
        `by="close"`, delayed jobs do not count: it is empty when no job is ready or running.
        """
        return self._client.portal.run(self.adrain(name, reason=reason, by=by, timeout=timeout, who=who))

    async def adrain(
        self,
        name: str,
        *,
        reason: str,
        by: DrainBy = "pause",
        timeout: Duration | None = None,  # noqa: ASYNC109 (the public word)
        who: str | None = None,
    ) -> bool:
        """Pause or close it, and wait until none of its jobs runs or until it is empty; see `drain`."""
        at_most = None if timeout is None else to_micros(timeout)
        hold = {"pause": self.apause, "close": self.aclose}.get(by)
        if hold is None:
            message = f"by is {by!r}; use pause or close"
            raise ValueError(message)
        await hold(name, reason=reason, who=who)
        busy = frozenset({State.RUNNING} if by == "pause" else {State.READY, State.RUNNING})
        clock, started_at = self._client.clock, self._client.clock.elapsed()
        while await self._has_any(name, busy):
            left = _POLL_EVERY if at_most is None else at_most - (clock.elapsed() - started_at)
            if left <= 0:
                return False
            await clock.wait(min(left, _POLL_EVERY))
        return True

    # ── for the namespaces that inherit this ──────────────────────────────────

    async def _has_any(self, name: str, states: frozenset[State]) -> bool:
        """Whether any of its jobs is in one of these states now."""
        raise NotImplementedError

    def _subject(self, name: str) -> Subject:
        hint = {SubjectKind.TENANT: tenant_hint, SubjectKind.TASK: task_hint}.get(self.kind, name_hint)(name)
        if hint is not None:
            is_every = self.kind is SubjectKind.TENANT and name == EVERY
            raise invalid_name(self.kind.value, name, _EVERY_TENANT_HINT if is_every else hint)
        return Subject(self.kind, name)

    def _scope(self, subject: Subject) -> Scope:
        """Return the scope for reading a subject."""
        if self.kind is SubjectKind.TENANT:
            return scope_for(subject.name)
        scope = scope_for(None)
        if scope.tenant is not None:
            raise not_theirs(subject, scope.tenant)
        return scope

    def _scope_to_change(self, subject: Subject) -> Scope:
        """Return the scope for changing a policy; `InsideTenant` from inside any tenant, even its own."""
        scope = self._scope(subject)
        refuse_inside(f"the policy of {subject} is for operators to change")
        return scope

    async def _read(self, name: str) -> PolicyView:
        subject = self._subject(name)
        request = ReadRequest(scope=self._scope(subject), subjects=(subject,))
        return (await self._client.store.policies.read(request))[subject]

    async def _set(
        self, name: str, change: PolicyChange, note: str, until: datetime | None, who: str | None
    ) -> None:
        """Merge a change into the override that is set.

        All values of an override have one end, so that none lasts longer or shorter than intended. Danger:
        reading and writing are two steps, so of two concurrent changes the later one wins.
        """
        self._scope_to_change(self._subject(name))
        view = await self._read(name)
        end = until_of(until)
        if view.override is not None and view.override.until != end:
            before = "without end" if view.override.until is None else f"until {_shown(view.override.until)}"
            message = (
                f"{view.subject} has values set {before} by {view.override.who}; "
                "give the same until=, or reset it first"
            )
            raise ValueError(message)
        await self._override(view.subject, merged_change(change, view), note, end, who)

    async def _override(
        self, subject: Subject, change: PolicyChange, note: str, until: Instant | None, who: str | None
    ) -> None:
        scope = self._scope_to_change(subject)
        request = OverrideRequest(
            scope=scope,
            subject=subject,
            change=change,
            who=actor(who),
            note=text_of("note", note),
            until=until,
            operation=self._operation("set", note, who),
        )
        await self._client.store.policies.override(request)

    async def _reset(self, name: str, note: str, who: str | None) -> None:
        await self._client.store.policies.reset(self._about("reset", name, note, who))

    def _operation(self, verb: str, note: str, who: str | None) -> Operation | None:
        return operation(policy_action(self.kind, verb), who=who, note=note)

    def _hold(
        self, verb: str, name: str, reason: str, until: datetime | None, who: str | None
    ) -> HoldRequest:
        subject = self._subject(name)
        return HoldRequest(
            scope=self._scope_to_change(subject),
            subject=subject,
            who=actor(who),
            reason=reason_of(reason),
            until=until_of(until),
            operation=self._operation(verb, reason, who),
        )

    def _about(self, verb: str, name: str, note: str, who: str | None) -> SubjectRequest:
        subject = self._subject(name)
        scope, checked_note = self._scope_to_change(subject), text_of("note", note)
        done = self._operation(verb, note, who)
        return SubjectRequest(scope=scope, subject=subject, who=actor(who), note=checked_note, operation=done)


def policy_action(kind: SubjectKind, verb: str) -> str:
    """Return the name of a change in the audit, as in `queues.pause`.

    >>> policy_action(SubjectKind.QUEUE, "pause")
    'queues.pause'
    """
    return f"{kind.value}s.{verb}"


async def list_all(
    store: Store, scope: Scope, kind: SubjectKind, also: Iterable[str] = ()
) -> tuple[PolicyView, ...]:
    """Return all known subjects of a kind by name, and those in `also`."""
    named = tuple(Subject(kind, name) for name in also)
    views = dict(await store.policies.read(ReadRequest(scope=scope, subjects=named)))
    after = ""
    while True:
        page = await store.policies.list(
            ListRequest(scope=scope, kind=kind, limit=MAX_PAGE_SIZE, after=after)
        )
        views.update({view.subject: view for view in page})
        if len(page) < MAX_PAGE_SIZE:
            return tuple(views[one] for one in sorted(views))
        after = page[-1].subject.name


def merged_change(change: PolicyChange, view: PolicyView) -> PolicyChange:
    """Merge a change into the existing override; a tenant's limits are merged queue by queue."""
    if view.override is None:
        return change
    before, now = view.override.change.fields(), change.fields()
    by_queue = {**_by_queue(view.override.change), **_by_queue(change)}
    if by_queue:
        now["queue_limits"] = by_queue
    return msgspec.structs.replace(PolicyChange(), **{**before, **now})


def without_queue(view: PolicyView, queue: str) -> PolicyChange | None:
    """Return an override without the limits of one queue; None if nothing remains."""
    if view.override is None:
        return None
    left = {name: limits for name, limits in _by_queue(view.override.change).items() if name != queue}
    change = msgspec.structs.replace(view.override.change, queue_limits=left or msgspec.UNSET)
    return change if change.fields() else None


def _by_queue(change: PolicyChange) -> dict[str, object]:
    return dict(change.queue_limits or {})


def _shown(instant: Instant) -> str:
    return to_datetime(instant).isoformat()
