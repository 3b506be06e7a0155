"""Decide what requests make of the states of breakers, and with which entries. Reads and writes no store.

A store reads the states of the keys that are named here, calls `reported` or `operated`, and writes what has
changed in the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final
from uuid import UUID

import msgspec

from fairlane.model.guards.breaker import (
    CLOSED,
    EVERY_TENANT,
    BreakerState,
    Forced,
    forced_closed,
    forced_open,
    free_slots,
    phase,
    reset,
    with_outcomes,
    with_permit,
)
from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import breaker_closed, breaker_opened
from fairlane.model.journal.operations import Operation, entry_of
from fairlane.model.policy.overrides import BreakerRules
from fairlane.store.contract.breakers import (
    MAX_OPEN_BREAKERS,
    BreakerKey,
    BreakerOutcomes,
    BreakerWord,
    ChangeBreakerRequest,
    EnterReply,
    OpenBreakers,
)

States = Mapping[BreakerKey, BreakerState]

pack_state: Final = msgspec.msgpack.Encoder().encode
unpack_state: Final = msgspec.msgpack.Decoder(BreakerState).decode


def keys_of(name: str, tenant: str) -> tuple[BreakerKey, BreakerKey]:
    """Return under which keys a breaker may hold a tenant back: for all tenants, and for its own."""
    return BreakerKey(name, EVERY_TENANT), BreakerKey(name, tenant)


def line_key(line: str) -> BreakerKey | None:
    """Return the breaker in whose line a strand waits; None for a gate, whose name has no space.

    >>> line_key("breaker mail acme"), line_key("mail")
    (BreakerKey(name='mail', tenant='acme'), None)
    """
    kind, _, rest = line.partition(" ")
    name, _, tenant = rest.partition(" ")
    return BreakerKey(name, tenant) if kind == "breaker" and rest else None


def open_breakers(states: States, now: Instant) -> OpenBreakers | None:
    """Return what a claim says of breakers that are not closed; None if all are.

    >>> state = BreakerState(slots=1, open_until=9)
    >>> open_breakers({BreakerKey("mail"): state}, 5).words[0].phase, open_breakers({}, 5)
    ('open', None)
    """
    keys = sorted(key for key, state in states.items() if state.slots is not None)
    if len(keys) > MAX_OPEN_BREAKERS:
        return OpenBreakers(now, is_cut=True)
    words = tuple(BreakerWord(key, phase(states[key], now), states[key].open_until) for key in keys)
    return OpenBreakers(now, words) if words else None


def reported(
    reports: Collection[BreakerOutcomes],
    rules: Callable[[str], BreakerRules],
    states: States,
    now: Instant,
) -> dict[BreakerKey, BreakerState]:
    """Return the states after these reports, of every key that bears on them.

    Outcomes count for the breaker of all tenants or for the tenant's own, as the rules say; the other one is
    only healed, should it be open from before the rules changed.
    """
    after = dict(states)
    for one in reports:
        of_breaker = rules(one.name)
        counted = EVERY_TENANT if of_breaker.per == "all" else one.outcomes.tenant
        for key in keys_of(one.name, one.outcomes.tenant):
            state = after.get(key, CLOSED)
            if key.tenant == counted or state.slots is not None:
                state = with_outcomes(state, of_breaker, now, one.outcomes)
            after[key] = state
    return after


def entered(
    states: States, now: Instant, job: UUID | None, running: Collection[UUID]
) -> tuple[EnterReply, dict[BreakerKey, BreakerState]]:
    """Return whether a job may pass all these breakers, and the states with its permits."""
    if all(state.slots is None for state in states.values()):
        return EnterReply(is_allowed=True, is_closed=True), {}
    after: dict[BreakerKey, BreakerState] = {}
    for key, state in states.items():
        has_permit = job is not None and job in state.permits and now >= state.open_until
        if state.slots is None or has_permit:
            continue
        if job is None or not free_slots(state, now, running):
            return EnterReply(is_allowed=False, until=max(state.open_until, now)), {}
        after[key] = with_permit(state, now, job, running)
    return EnterReply(is_allowed=True), after


def operated(request: ChangeBreakerRequest, state: BreakerState, now: Instant) -> BreakerState:
    """Return the state that an operator has set."""
    forced = Forced(request.verb == "open", request.who, request.reason, now, request.until)
    match request.verb:
        case "open":
            return forced_open(state, now, forced)
        case "close":
            return forced_closed(state, now, forced)
        case "reset":
            return reset(state, now)


def breaker_entries(
    operation: Operation | None, key: BreakerKey, before: BreakerState, after: BreakerState, now: Instant
) -> tuple[NewEntry, ...]:
    """Return the entry of the audit for what an operator has set."""
    if operation is None or before == after:
        return ()
    shown = [{"state": phase(one, now), **_forced(one)} for one in (before, after)]
    return (entry_of(operation, f"breaker {key.name}", key.tenant or None, *shown),)


def breaker_events(key: BreakerKey, before: BreakerState, after: BreakerState) -> tuple[NewEntry, ...]:
    """Return the event of a breaker that was closed and is not any more, or the other way round."""
    if (before.slots is None) == (after.slots is None):
        return ()
    if after.slots is None:
        return (breaker_closed(key.name, key.tenant),)
    return (breaker_opened(key.name, key.tenant, after.open_until, _reason(after)),)


def _reason(state: BreakerState) -> str:
    return "failures" if state.forced is None else state.forced.reason


def _forced(state: BreakerState) -> dict[str, object]:
    if state.forced is None:
        return {}
    return {"reason": state.forced.reason, "until": state.forced.until}
