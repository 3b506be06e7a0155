"""Decide when a circuit breaker opens, lets one job through, lets through more, and closes (S58, S110, S111).

    closed ── so many failures in the window ──> open ── `open_for` has passed ──> half-open: one job passes
       ^                                          ^                                        │
       └── ramp: 2, 4 … at once, all succeeded ───┴── any of them failed ──────────────────┘

What may pass is two values that a claim can compare: nobody before `open_until`, and then at most `slots`
jobs at once; no `slots` is closed. So open becomes half-open by time alone. Who passes is noted by its job,
and counts as long as that job runs: a permit whose job was lost is given again. Knows no clock and no store.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import LAST_INSTANT, Instant, Micros
from fairlane.model.policy.overrides import BreakerRules, is_active

Phase: TypeAlias = Literal["closed", "open", "half_open", "ramp"]

_Seen: TypeAlias = tuple[tuple[str, Instant], ...]

EVERY_TENANT: Final = ""
"""The key of a breaker that counts all tenants together; else the key is the tenant."""


class Forced(msgspec.Struct, frozen=True):
    """What an operator has set: open or closed, who, why, and until when."""

    is_open: bool
    who: str
    reason: str
    set_at: Instant
    until: Instant | None = None


class BreakerState(msgspec.Struct, frozen=True, kw_only=True):
    """One breaker, or one of one tenant.

    `failed_at` are the newest failures while it is closed, as many as open it. `failing` and `using`: the
    last two tenants that failed and that used it, newest first. `passed`: successes in this step of the ramp.
    `succeeded` and `failed` count since it was made or reset, `trips` how often it has opened.
    """

    open_until: Instant = 0
    slots: int | None = None
    permits: tuple[UUID, ...] = ()
    half_opened_at: Instant | None = None
    passed: int = 0
    failed_at: tuple[Instant, ...] = ()
    failing: _Seen = ()
    using: _Seen = ()
    succeeded: int = 0
    failed: int = 0
    last_failure_at: Instant | None = None
    opened_at: Instant | None = None
    closed_at: Instant | None = None
    trips: int = 0
    forced: Forced | None = None


CLOSED: Final = BreakerState()


class Outcomes(msgspec.Struct, frozen=True):
    """What one process has seen of a breaker for one tenant.

    With a `permit`, the job that passed an open one: at most one outcome, its own. None at all is neither: it
    ended without having tried.
    """

    tenant: str
    succeeded: int = 0
    failed: int = 0
    permit: UUID | None = None


def phase(state: BreakerState, now: Instant) -> Phase:
    """Return what a breaker is now.

    >>> phase(CLOSED, 5), phase(BreakerState(slots=1, open_until=9), 5), phase(BreakerState(slots=4), 5)
    ('closed', 'open', 'ramp')
    """
    if state.slots is None:
        return "closed"
    if now < state.open_until:
        return "open"
    return "half_open" if state.slots == 1 else "ramp"


def opens_at(state: BreakerState, now: Instant) -> Instant | None:
    """Return when an open breaker lets the first one pass; None if it is not open, or nobody knows.

    >>> opens_at(BreakerState(slots=1, open_until=9), 5), opens_at(CLOSED, 5)
    (9, None)
    """
    return state.open_until if now < state.open_until < LAST_INSTANT else None


def free_slots(state: BreakerState, now: Instant, running: Collection[UUID]) -> int | None:
    """Return how many more may pass, given which jobs with a permit still run; None: everybody.

    >>> state = BreakerState(slots=2, permits=(UUID(int=1), UUID(int=2)))
    >>> free_slots(state, 5, {UUID(int=2)}), free_slots(CLOSED, 5, ())
    (1, None)
    """
    if state.slots is None:
        return None
    if now < state.open_until:
        return 0
    return max(0, state.slots - sum(job in running for job in state.permits))


def with_permit(state: BreakerState, now: Instant, job: UUID, running: Collection[UUID]) -> BreakerState:
    """Return the state after a job has passed. The caller has asked for `free_slots`, which was not 0."""
    if state.slots is None:
        return state
    held = tuple(one for one in state.permits if one in running and one != job)
    half_opened_at = now if state.half_opened_at is None else state.half_opened_at
    return msgspec.structs.replace(state, permits=(*held, job), half_opened_at=half_opened_at)


def with_outcomes(state: BreakerState, rules: BreakerRules, now: Instant, outcomes: Outcomes) -> BreakerState:
    """Return the state after outcomes became known.

    Those of a job with a permit decide what is not closed; all others, which began before it opened, only
    count there.
    """
    last = now if outcomes.failed else state.last_failure_at
    counted = msgspec.structs.replace(
        state,
        succeeded=state.succeeded + outcomes.succeeded,
        failed=state.failed + outcomes.failed,
        last_failure_at=last,
    )
    if state.slots is None:
        return _after_closed(counted, rules, now, outcomes)
    if outcomes.permit not in state.permits:
        return counted
    held = tuple(one for one in state.permits if one != outcomes.permit)
    counted = msgspec.structs.replace(counted, permits=held)
    if outcomes.failed:
        return _opened(counted, now, _later(now, rules.open_for))
    return _after_success(counted, rules, now) if outcomes.succeeded else counted


def forced_open(state: BreakerState, now: Instant, forced: Forced) -> BreakerState:
    """Return the state that an operator has opened: until an instant, or until somebody ends it."""
    until = LAST_INSTANT if forced.until is None else forced.until
    return msgspec.structs.replace(_opened(state, now, until), forced=forced)


def forced_closed(state: BreakerState, now: Instant, forced: Forced) -> BreakerState:
    """Return the state that an operator has closed: until then, no failure opens it."""
    return msgspec.structs.replace(_closed(state, now), forced=forced)


def reset(state: BreakerState, now: Instant) -> BreakerState:
    """Return the state closed, with nothing counted and nothing forced; how often it has opened stays.

    >>> after = reset(BreakerState(slots=1, failed=7, trips=2), 5)
    >>> (after.slots, after.failed, after.trips)
    (None, 0, 2)
    """
    return BreakerState(closed_at=now, trips=state.trips)


def is_forced(state: BreakerState, now: Instant) -> bool:
    """Whether what an operator has set is still in force.

    >>> is_forced(BreakerState(forced=Forced(True, "ann", "", 0, 5)), 5), is_forced(CLOSED, 5)
    (False, False)
    """
    return state.forced is not None and is_active(state.forced.until, now)


def failures_in_window(state: BreakerState, rules: BreakerRules, now: Instant) -> int:
    """Return how many failures count against the threshold now.

    >>> failures_in_window(BreakerState(failed_at=(1, 50_000_000)), BreakerRules(), 61_000_000)
    1
    """
    return sum(_is_within(at, rules, now) for at in state.failed_at)


def _after_closed(state: BreakerState, rules: BreakerRules, now: Instant, outcomes: Outcomes) -> BreakerState:
    failed_at, failing = state.failed_at, state.failing
    if outcomes.failed:
        failed_at = (*failed_at, *[now] * min(outcomes.failed, rules.failures))[-rules.failures :]
        failing = _noted(failing, outcomes.tenant, now)
    using = _noted(state.using, outcomes.tenant, now)
    after = msgspec.structs.replace(state, failed_at=failed_at, failing=failing, using=using)
    if is_forced(after, now) or not outcomes.failed or not _has_tripped(after, rules, now):
        return after
    return _opened(after, now, _later(now, rules.open_for))


def _has_tripped(state: BreakerState, rules: BreakerRules, now: Instant) -> bool:
    """Whether so many failures lie in the window; of several tenants, if several have used it."""
    if failures_in_window(state, rules, now) < rules.failures:
        return False
    users, failing = (
        sum(_is_within(at, rules, now) for _, at in seen) for seen in (state.using, state.failing)
    )
    return users < 2 or failing >= 2  # noqa: PLR2004 (one, or several)


def _after_success(state: BreakerState, rules: BreakerRules, now: Instant) -> BreakerState:
    passed, slots = state.passed + 1, state.slots or 1
    if passed < slots:
        return msgspec.structs.replace(state, passed=passed)
    if 2 * slots > rules.ramp:
        return _closed(state, now)
    return msgspec.structs.replace(state, slots=2 * slots, passed=0)


def _opened(state: BreakerState, now: Instant, until: Instant) -> BreakerState:
    return msgspec.structs.replace(
        state,
        open_until=until,
        slots=1,
        permits=(),
        half_opened_at=None,
        passed=0,
        failed_at=(),
        failing=(),
        using=(),
        opened_at=now,
        trips=state.trips + 1,
        forced=None,
    )


def _closed(state: BreakerState, now: Instant) -> BreakerState:
    return msgspec.structs.replace(
        state,
        open_until=0,
        slots=None,
        permits=(),
        passed=0,
        failed_at=(),
        failing=(),
        using=(),
        closed_at=now,
        forced=None,
    )


def _noted(seen: _Seen, tenant: str, now: Instant) -> _Seen:
    return ((tenant, now), *(one for one in seen if one[0] != tenant))[:2]


def _is_within(at: Instant, rules: BreakerRules, now: Instant) -> bool:
    return at > now - rules.window


def _later(now: Instant, duration: Micros) -> Instant:
    return min(now + duration, LAST_INSTANT)
