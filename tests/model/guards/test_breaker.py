"""When a breaker opens, lets one pass, lets more pass, and closes (S58, S110-S112)."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.guards.breaker import (
    CLOSED,
    BreakerState,
    Forced,
    Outcomes,
    forced_closed,
    forced_open,
    free_slots,
    is_forced,
    opens_at,
    phase,
    reset,
    with_outcomes,
    with_permit,
)
from fairlane.model.guards.errors import BreakerOpen
from fairlane.model.instants import LAST_INSTANT, MINUTE, SECOND
from fairlane.model.policy.overrides import BreakerRules

RULES = BreakerRules()
NOW = 1_000 * SECOND
JOBS = [UUID(int=n) for n in range(20)]


def failed(
    state: BreakerState, count: int, *, tenant: str = "acme", now: int = NOW, rules: BreakerRules = RULES
) -> BreakerState:
    """Return the state after failures of one tenant."""
    return with_outcomes(state, rules, now, Outcomes(tenant, failed=count))


def passed(
    state: BreakerState, job: UUID, *, failed: int = 0, succeeded: int = 1, now: int = NOW
) -> BreakerState:
    """Return the state after the end of a job with a permit."""
    return with_outcomes(state, RULES, now, Outcomes("acme", succeeded, failed, job))


OPEN = failed(CLOSED, 5)


@pytest.mark.parametrize("count", [1, 4])
def test_fewer_failures_leave_it_closed(count: int) -> None:
    """S58: one below the threshold is not enough."""
    assert phase(failed(CLOSED, count), NOW) == "closed"


@pytest.mark.parametrize("count", [5, 6, 5_000])
def test_as_many_failures_open_it(count: int) -> None:
    """S58: at once, or one too many."""
    state = failed(CLOSED, count)
    assert (phase(state, NOW), state.open_until, state.trips) == ("open", NOW + MINUTE, 1)
    assert state.failed_at == ()


def test_successes_alone_never_open_it() -> None:
    """S58: nor does hearing of nothing."""
    for outcomes in (Outcomes("acme", succeeded=9), Outcomes("acme")):
        assert phase(with_outcomes(failed(CLOSED, 4), RULES, NOW, outcomes), NOW) == "closed"


def test_a_failure_leaves_the_window_at_its_end() -> None:
    """S58: exactly a window later it counts no more."""
    assert phase(failed(failed(CLOSED, 4), 1, now=NOW + MINUTE), NOW + MINUTE) == "closed"
    assert phase(failed(failed(CLOSED, 4), 1, now=NOW + MINUTE - 1), NOW + MINUTE) == "open"


def test_several_tenants_open_it_and_one_among_them_does_not() -> None:
    """S112: unless nobody else has used it within the window."""
    used = with_outcomes(CLOSED, RULES, NOW, Outcomes("globex", succeeded=1))
    assert phase(failed(used, 50), NOW) == "closed"
    assert phase(failed(failed(used, 50), 1, tenant="globex"), NOW) == "open"
    assert phase(failed(used, 50, now=NOW + MINUTE), NOW + MINUTE) == "open"


def test_an_open_one_becomes_half_open_by_time_alone() -> None:
    """S110: nobody, then one."""
    until = OPEN.open_until
    assert (free_slots(OPEN, until - 1, ()), opens_at(OPEN, until - 1)) == (0, until)
    assert (phase(OPEN, until), free_slots(OPEN, until, ()), opens_at(OPEN, until)) == ("half_open", 1, None)


def test_a_permit_holds_a_slot_while_its_job_runs() -> None:
    """S110: and notes when the first one passed."""
    until = OPEN.open_until
    state = with_permit(OPEN, until, JOBS[0], ())
    assert (state.permits, state.half_opened_at) == ((JOBS[0],), until)
    assert free_slots(state, until, {JOBS[0]}) == 0
    assert free_slots(state, until, ()) == 1
    again = with_permit(state, until + 1, JOBS[1], ())
    assert (again.permits, again.half_opened_at) == ((JOBS[1],), until)


def test_a_closed_one_notes_nobody() -> None:
    """S110: there is nothing to count."""
    assert with_permit(CLOSED, NOW, JOBS[0], ()) == CLOSED
    assert free_slots(CLOSED, NOW, ()) is None


def test_the_ramp_doubles_up_to_its_end() -> None:
    """S111: 1, 2, 4, 8, and closed."""
    state, slots = OPEN, []
    now = OPEN.open_until
    while state.slots is not None:
        slots.append(state.slots)
        for job in JOBS[: state.slots]:
            state = with_permit(state, now, job, JOBS)
        for job in JOBS[: slots[-1]]:
            state = passed(state, job, now=now)
    assert slots == [1, 2, 4, 8]
    assert (state.closed_at, state.failed, state.succeeded, state.trips) == (now, 5, 15, 1)


def test_one_failure_of_those_that_passed_opens_it_again() -> None:
    """S111: for the whole time, and the permits of the others are worth nothing any more."""
    now = OPEN.open_until
    state = passed(with_permit(OPEN, now, JOBS[0], ()), JOBS[0], now=now)
    for job in JOBS[:2]:
        state = with_permit(state, now, job, JOBS)
    state = passed(state, JOBS[0], succeeded=0, failed=1, now=now)
    assert (phase(state, now), state.open_until, state.trips) == ("open", now + MINUTE, 2)
    assert passed(state, JOBS[1], now=now).slots == 1


def test_the_end_of_a_probe_that_says_nothing_frees_its_permit() -> None:
    """S110: neither success nor failure."""
    now = OPEN.open_until
    state = passed(with_permit(OPEN, now, JOBS[0], ()), JOBS[0], succeeded=0, now=now)
    assert (state.permits, state.slots, phase(state, now)) == ((), 1, "half_open")


def test_outcomes_without_a_permit_only_count_while_it_is_not_closed() -> None:
    """S110: they began before."""
    state = with_outcomes(OPEN, RULES, NOW, Outcomes("acme", 3, 4, JOBS[3]))
    assert msgspec.structs.replace(OPEN, succeeded=3, failed=9, last_failure_at=NOW) == state


def test_what_an_operator_sets_holds_until_its_end() -> None:
    """S111: open until then; closed whatever fails until then."""
    until = NOW + MINUTE
    opened = forced_open(CLOSED, NOW, Forced(True, "ann", "away", NOW, until))
    assert (opened.open_until, is_forced(opened, NOW), is_forced(opened, until)) == (until, True, False)
    endless = forced_open(CLOSED, NOW, Forced(True, "ann", "away", NOW))
    assert (endless.open_until, opens_at(endless, NOW)) == (LAST_INSTANT, None)
    closed = forced_closed(opened, NOW, Forced(False, "ann", "ours", NOW, until))
    assert phase(failed(closed, 50), NOW) == "closed"
    assert phase(failed(failed(closed, 50), 5, now=until), until) == "open"
    assert phase(reset(opened, NOW), NOW) == "closed"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 19), st.integers(0, 40)), max_size=60))
def test_whatever_happens_no_more_pass_than_may(steps: list[tuple[int, int, int]]) -> None:
    """S110, S111: jobs that ask, end well or badly, or are lost, in any order and at any time."""
    state, now, running = OPEN, NOW, set[UUID]()
    for what, number, seconds in steps:
        now, job = now + seconds * SECOND, JOBS[number]
        if what == 0 and job not in running and free_slots(state, now, running) != 0:
            state = with_permit(state, now, job, running)
            running.add(job)
        elif what == 3:
            running.discard(job)
        elif job in running:
            state = passed(state, job, succeeded=int(what == 1), failed=int(what == 2), now=now)
            running.discard(job)
        inside = [one for one in state.permits if one in running]
        assert state.slots is None or len(inside) <= state.slots
        assert len(set(state.permits)) == len(state.permits)


def test_the_error_says_which_and_until_when_and_can_be_pickled() -> None:
    """S110: a handler's error crosses processes."""
    error = BreakerOpen("mail", on_open="fail", retry_in=5)
    assert str(error) == "breaker mail is open"
    make, values = error.__reduce__()
    assert callable(make)
    assert make(*values).on_open == "fail"  # type: ignore[misc]
