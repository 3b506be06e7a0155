"""What tenants, queues and tasks have in common: pause, close, drain, values set at run time (S46, S54).

Knows scopes (S9): what is not the caller's to name, and every change from inside a tenant, is refused before
the store is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.app.acting import actor, instant_of, reason_of
from fairlane.app.ambient import refuse_inside, scope_for
from fairlane.app.asked import text_of
from fairlane.app.client import Client
from fairlane.model.instants import SECOND, Duration, Instant, Micros, to_datetime, to_micros
from fairlane.model.layers import EVERY, Change, Kind, Subject
from fairlane.model.lifecycle import State
from fairlane.model.names import invalid_name, name_hint, task_hint, tenant_hint
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
from fairlane.store.contract.request import PAGE_MOST

_OF_UNDECLARED: Final = (
    'it stands for tenants that nobody has declared, and [tenants."*"] of fairlane.toml says what they may; '
    "name one tenant, or ask app.tenants.list()"
)

DrainBy: TypeAlias = Literal["pause", "close"]

_LOOK_EVERY: Final[Micros] = SECOND // 4


class Steering:
    """Pauses, closes and drains of one kind of subject, and what its namespace needs besides."""

    kind: Kind

    def __init__(self, client: Client) -> None:
        self._client = client

    def pause(self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None) -> None:
        """Claim nothing of it; enqueues, due times and what runs go on (S46). A later pause replaces it."""
        self._client.portal.run(self.apause(name, reason=reason, until=until, who=who))

    async def apause(
        self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None
    ) -> None:
        """Claim nothing of it; enqueues, due times and what runs go on (S46). A later pause replaces it."""
        await self._client.store.policies.pause(self._hold(name, reason, until, who))

    def resume(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a pause; without one nothing changes."""
        self._client.portal.run(self.aresume(name, note=note, who=who))

    async def aresume(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a pause; without one nothing changes."""
        await self._client.store.policies.resume(self._about(name, note, who))

    def close(self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None) -> None:
        """Take no new jobs of it: enqueues raise `Closed`, what is there goes on (S46)."""
        self._client.portal.run(self.aclose(name, reason=reason, until=until, who=who))

    async def aclose(
        self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None
    ) -> None:
        """Take no new jobs of it: enqueues raise `Closed`, what is there goes on (S46)."""
        await self._client.store.policies.close(self._hold(name, reason, until, who))

    def reopen(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a close; without one nothing changes."""
        self._client.portal.run(self.areopen(name, note=note, who=who))

    async def areopen(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a close; without one nothing changes."""
        await self._client.store.policies.reopen(self._about(name, note, who))

    def drain(
        self,
        name: str,
        *,
        reason: str,
        by: DrainBy = "pause",
        timeout: Duration | None = None,
        who: str | None = None,
    ) -> bool:
        """Pause it and wait until nothing of it runs; or close it and wait until nothing is left to do (S46).

        False if that takes longer than `timeout`. The pause or close stays, either way. With `by="close"`,
        jobs that are delayed for later do not count as left.
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
        """Pause it and wait until nothing of it runs, or close it and wait until it is empty; see `drain`."""
        at_most = None if timeout is None else to_micros(timeout)
        hold = {"pause": self.apause, "close": self.aclose}.get(by)
        if hold is None:
            message = f"by is {by!r}; use pause or close"
            raise ValueError(message)
        await hold(name, reason=reason, who=who)
        busy = frozenset({State.RUNNING} if by == "pause" else {State.READY, State.RUNNING})
        clock, started_at = self._client.clock, self._client.clock.elapsed()
        while await self._has_any(name, busy):
            left = _LOOK_EVERY if at_most is None else at_most - (clock.elapsed() - started_at)
            if left <= 0:
                return False
            await clock.wait(min(left, _LOOK_EVERY))
        return True

    # ── behind ────────────────────────────────────────────────────────────────

    async def _has_any(self, name: str, states: frozenset[State]) -> bool:
        """Whether any job of it is in one of these states now."""
        raise NotImplementedError

    def _subject(self, name: str) -> Subject:
        hint = {Kind.TENANT: tenant_hint, Kind.TASK: task_hint}.get(self.kind, name_hint)(name)
        if hint is not None:
            is_every = self.kind is Kind.TENANT and name == EVERY
            raise invalid_name(self.kind.value, name, _OF_UNDECLARED if is_every else hint)
        return Subject(self.kind, name)

    def _scope(self, subject: Subject) -> Scope:
        """Return the scope in which a subject may be looked at."""
        if self.kind is Kind.TENANT:
            return scope_for(subject.name)
        scope = scope_for(None)
        if scope.tenant is not None:
            raise not_theirs(subject, scope.tenant)
        return scope

    def _scope_to_change(self, subject: Subject) -> Scope:
        """Return the scope in which a policy may be changed: never from inside a tenant, not even its own."""
        scope = self._scope(subject)
        refuse_inside(f"the policy of {subject} is for operators to change")
        return scope

    async def _read(self, name: str) -> PolicyView:
        subject = self._subject(name)
        request = ReadRequest(scope=self._scope(subject), subjects=(subject,))
        return (await self._client.store.policies.read(request))[subject]

    async def _set(
        self, name: str, change: Change, note: str, until: datetime | None, who: str | None
    ) -> None:
        """Lay a change over what was set before.

        One end holds for all that is set of a subject, so that nothing lasts longer, or shorter, than it was
        meant to. Reading and writing are two steps: of two who do this at once, the later one wins.
        """
        self._scope_to_change(self._subject(name))
        view = await self._read(name)
        end = instant_of(until)
        if view.override is not None and view.override.until != end:
            before = "without end" if view.override.until is None else f"until {_shown(view.override.until)}"
            message = (
                f"{view.subject} has values set {before} by {view.override.who}; "
                "give the same until=, or reset it first"
            )
            raise ValueError(message)
        await self._override(view.subject, laid_over(change, view), note, end, who)

    async def _override(
        self, subject: Subject, change: Change, note: str, until: Instant | None, who: str | None
    ) -> None:
        scope = self._scope_to_change(subject)
        request = OverrideRequest(
            scope=scope,
            subject=subject,
            change=change,
            who=actor(who),
            note=text_of("note", note),
            until=until,
        )
        await self._client.store.policies.override(request)

    async def _reset(self, name: str, note: str, who: str | None) -> None:
        await self._client.store.policies.reset(self._about(name, note, who))

    def _hold(self, name: str, reason: str, until: datetime | None, who: str | None) -> HoldRequest:
        subject = self._subject(name)
        return HoldRequest(
            scope=self._scope_to_change(subject),
            subject=subject,
            who=actor(who),
            reason=reason_of(reason),
            until=instant_of(until),
        )

    def _about(self, name: str, note: str, who: str | None) -> SubjectRequest:
        subject = self._subject(name)
        scope, said = self._scope_to_change(subject), text_of("note", note)
        return SubjectRequest(scope=scope, subject=subject, who=actor(who), note=said)


async def list_all(
    store: Store, scope: Scope, kind: Kind, also: Iterable[str] = ()
) -> tuple[PolicyView, ...]:
    """Return all known subjects of a kind by name, and those that are named here besides."""
    named = tuple(Subject(kind, name) for name in also)
    views = dict(await store.policies.read(ReadRequest(scope=scope, subjects=named)))
    after = ""
    while True:
        page = await store.policies.list(ListRequest(scope=scope, kind=kind, limit=PAGE_MOST, after=after))
        views.update({view.subject: view for view in page})
        if len(page) < PAGE_MOST:
            return tuple(views[one] for one in sorted(views))
        after = page[-1].subject.name


def laid_over(change: Change, view: PolicyView) -> Change:
    """Keep what an earlier override has set and this change does not; limits of a tenant go by queue."""
    if view.override is None:
        return change
    before, now = view.override.change.fields(), change.fields()
    by_queue = {**_by_queue(view.override.change), **_by_queue(change)}
    if by_queue:
        now["queue_limits"] = by_queue
    return msgspec.structs.replace(Change(), **{**before, **now})


def without_queue(view: PolicyView, queue: str) -> Change | None:
    """Give what an override sets besides the limits in a queue; None if that is nothing."""
    if view.override is None:
        return None
    left = {name: limits for name, limits in _by_queue(view.override.change).items() if name != queue}
    change = msgspec.structs.replace(view.override.change, queue_limits=left or msgspec.UNSET)
    return change if change.fields() else None


def _by_queue(change: Change) -> dict[str, object]:
    return dict(change.queue_limits or {})


def _shown(instant: Instant) -> str:
    return to_datetime(instant).isoformat()
