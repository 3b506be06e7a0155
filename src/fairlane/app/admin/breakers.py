"""`app.breakers`: what each circuit breaker is now, and by hand: open, close, reset (S58, S111).

They belong to all tenants, so from inside a tenant they can be neither read nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Required, TypedDict, Unpack

from fairlane.app.admin.controls import list_all
from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, name_of, reason_of, text_of, until_of
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.guards.declared import breaker_rules, declared_breakers
from fairlane.model.guards.breaker import (
    CLOSED,
    BreakerState,
    Phase,
    failures_in_window,
    is_forced,
    phase,
)
from fairlane.model.instants import LAST_INSTANT, SECOND, Instant, to_datetime
from fairlane.model.policy.declared import BreakerPer, OnOpen
from fairlane.model.policy.overrides import BreakerRules, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakersRequest,
    BreakerVerb,
    ChangeBreakerRequest,
    StoredBreaker,
)
from fairlane.store.contract.request import MAX_PAGE_SIZE

_WHAT: Final = "breakers belong to all tenants"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedBreaker:
    """What an operator has set: `open` or `closed`, who, why, when, and until when (None: until a reset)."""

    state: Phase
    who: str
    reason: str
    at: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerView:
    """A breaker at one instant; with a `tenant`, what it is for this tenant alone.

    `recent_failures` of `failures` count now, within the last `window` seconds. `until` is when an open one
    lets the first job pass, None if nobody knows; `slots` how many may pass at once, None if all; `passing`
    how many do. `waiting`: the tenants and tasks whose jobs wait, counted to 1,000. `succeeded` and `failed`
    count since it was first used or reset, `trips` how often it has opened.
    """

    name: str
    tenant: str | None
    state: Phase
    recent_failures: int
    until: datetime | None
    slots: int | None
    passing: int
    waiting: int
    succeeded: int
    failed: int
    trips: int
    last_failure_at: datetime | None
    opened_at: datetime | None
    half_opened_at: datetime | None
    closed_at: datetime | None
    forced: ForcedBreaker | None
    failures: int
    window: float
    open_for: float
    per: BreakerPer
    on_open: OnOpen
    ramp: int


class BreakerHold(TypedDict, total=False):
    """How a breaker is opened or closed by hand: why, of which tenant alone, until when, by whom."""

    reason: Required[str]
    tenant: str | None
    until: datetime | None
    who: str | None


class Breakers:
    """The circuit breakers of an application. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, name: str, *, tenant: str | None = None) -> BreakerView:
        """Return a breaker, or what it is for one tenant; one that was never used is closed."""
        return self._client.portal.run(self.aget(name, tenant=tenant))

    async def aget(self, name: str, *, tenant: str | None = None) -> BreakerView:
        """Return a breaker, or what it is for one tenant; one that was never used is closed."""
        scope, key = scope_of_all(_WHAT), _key(name, tenant)
        found, now = await self._stored(scope, name)
        rules = (await self._rules(scope)).get(name, BreakerRules())
        return _view(next((one for one in found if one.key == key), StoredBreaker(key, CLOSED)), rules, now)

    def list(self) -> Sequence[BreakerView]:
        """Return all breakers by name, and by tenant those of single tenants: declared here or used."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[BreakerView]:
        """Return all breakers by name, and by tenant those of single tenants: declared here or used."""
        scope = scope_of_all(_WHAT)
        rules = await self._rules(scope)
        found, now = await self._stored(scope)
        used = {one.key.name for one in found}
        unused = [StoredBreaker(BreakerKey(name), CLOSED) for name in rules if name not in used]
        ordered = sorted([*found, *unused], key=lambda one: one.key)
        return tuple(_view(one, rules.get(one.key.name, BreakerRules()), now) for one in ordered)

    def open(self, name: str, **options: Unpack[BreakerHold]) -> BreakerView:
        """Let nobody pass until then, or until it is closed or reset; afterwards one passes first."""
        return self._client.portal.run(self.aopen(name, **options))

    async def aopen(self, name: str, **options: Unpack[BreakerHold]) -> BreakerView:
        """Let nobody pass until then, or until it is closed or reset; see `open`."""
        return await self._hold("open", name, **options)

    def close(self, name: str, **options: Unpack[BreakerHold]) -> BreakerView:
        """Let everybody pass, whatever fails, until then or until it is reset."""
        return self._client.portal.run(self.aclose(name, **options))

    async def aclose(self, name: str, **options: Unpack[BreakerHold]) -> BreakerView:
        """Let everybody pass, whatever fails, until then or until it is reset."""
        return await self._hold("close", name, **options)

    def reset(
        self, name: str, *, tenant: str | None = None, note: str = "", who: str | None = None
    ) -> BreakerView:
        """Close it with nothing counted, and end what was forced."""
        return self._client.portal.run(self.areset(name, tenant=tenant, note=note, who=who))

    async def areset(
        self, name: str, *, tenant: str | None = None, note: str = "", who: str | None = None
    ) -> BreakerView:
        """Close it with nothing counted, and end what was forced."""
        return await self._change("reset", name, tenant, text_of("note", note), None, who)

    async def _hold(
        self,
        verb: BreakerVerb,
        name: str,
        *,
        reason: str,
        tenant: str | None = None,
        until: datetime | None = None,
        who: str | None = None,
    ) -> BreakerView:
        return await self._change(verb, name, tenant, reason_of(reason), until, who)

    async def _change(
        self,
        verb: BreakerVerb,
        name: str,
        tenant: str | None,
        reason: str,
        until: datetime | None,
        who: str | None,
    ) -> BreakerView:
        scope, key = scope_of_all(_WHAT), _key(name, tenant)
        await self._check_known(scope, name)
        request = ChangeBreakerRequest(
            scope=scope,
            operation=operation(f"breakers.{verb}", who=who, note=reason),
            key=key,
            verb=verb,
            who=actor(who),
            reason=reason,
            until=until_of(until),
        )
        await self._client.store.breakers.change(request)
        return await self.aget(name, tenant=tenant)

    async def _check_known(self, scope: Scope, name: str) -> None:
        """Refuse a name that is neither declared nor used: it is most likely misspelled."""
        rules = await self._rules(scope)
        if name not in rules and not (await self._stored(scope, name))[0]:
            message = (
                f"there is no breaker {name}{did_you_mean(name, list(rules))}; app.breakers.list() has all"
            )
            raise ValueError(message)

    async def _rules(self, scope: Scope) -> Mapping[str, BreakerRules]:
        """Return the rules of those that are declared: here, and above that as workers have written them."""
        client = self._client
        declared = declared_breakers(client.settings, client.registry)
        rules = {name: breaker_rules(one) for name, one in declared.items()}
        for view in await list_all(client.store, scope, SubjectKind.BREAKER):
            if isinstance(view.effective, BreakerRules):
                rules[view.subject.name] = view.effective
        return rules

    async def _stored(
        self, scope: Scope, name: str | None = None
    ) -> tuple[tuple[StoredBreaker, ...], Instant]:
        found: tuple[StoredBreaker, ...] = ()
        after: BreakerKey | None = None
        while True:
            request = BreakersRequest(scope=scope, name=name, after=after)
            reply = await self._client.store.breakers.list(request)
            found += reply.breakers
            if len(reply.breakers) < MAX_PAGE_SIZE:
                return found, reply.now
            after = reply.breakers[-1].key


def _key(name: str, tenant: str | None) -> BreakerKey:
    checked = name_of("breaker", name)
    return BreakerKey(checked, "" if tenant is None else name_of("tenant", tenant))


def _view(stored: StoredBreaker, rules: BreakerRules, now: Instant) -> BreakerView:
    state = stored.state
    is_open = phase(state, now) == "open"
    return BreakerView(
        name=stored.key.name,
        tenant=stored.key.tenant or None,
        state=phase(state, now),
        recent_failures=failures_in_window(state, rules, now),
        until=_moment(state.open_until) if is_open and state.open_until < LAST_INSTANT else None,
        slots=0 if is_open else state.slots,
        passing=len(state.permits),
        waiting=stored.waiting,
        succeeded=state.succeeded,
        failed=state.failed,
        trips=state.trips,
        last_failure_at=_moment(state.last_failure_at),
        opened_at=_moment(state.opened_at),
        half_opened_at=_moment(state.half_opened_at),
        closed_at=_moment(state.closed_at),
        forced=_forced(state, now),
        failures=rules.failures,
        window=rules.window / SECOND,
        open_for=rules.open_for / SECOND,
        per=rules.per,
        on_open=rules.on_open,
        ramp=rules.ramp,
    )


def _forced(state: BreakerState, now: Instant) -> ForcedBreaker | None:
    forced = state.forced
    if forced is None or not is_forced(state, now):
        return None
    return ForcedBreaker(
        state="open" if forced.is_open else "closed",
        who=forced.who,
        reason=forced.reason,
        at=to_datetime(forced.set_at),
        until=_moment(forced.until),
    )


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)
