"""What a lane does next, decided from its slots, its pending settlements and the time. No store, no loop."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fairlane import Lane
from fairlane.model.instants import SECOND, Micros
from fairlane.worker.lane_state import UNTIL_WOKEN, FillSlots, LaneAction, LaneState, SettleOnly, Wait

NOW: Micros = 100 * SECOND
SLOTS = 4


def lane(
    *,
    taken: int = 0,
    pending: int = 0,
    may_have_work: bool = False,
    due_at: Micros | None = None,
    in_flight: int = 0,
    concurrent_calls: int = 1,
) -> LaneState:
    """Make a lane of four slots as a test wants it."""
    made = LaneState(Lane("main", SLOTS, ["default"], headroom=0), concurrent_calls)
    made._taken = taken
    made.pending = cast("Any", [object()] * pending)
    made.may_have_work = may_have_work
    made.due_at = due_at
    made.calls_in_flight = in_flight
    return made


FULL = SLOTS
NOTHING = Wait(UNTIL_WOKEN)

TABLE: dict[str, tuple[dict[str, Any], dict[str, Any], LaneAction]] = {
    # name: (the lane, how it is asked, what it does)
    "idle": ({}, {}, NOTHING),
    "a hint came": ({"may_have_work": True}, {}, FillSlots(4)),
    "a hint came, some slots are taken": ({"may_have_work": True, "taken": 3}, {}, FillSlots(1)),
    "a hint came, every slot is taken": ({"may_have_work": True, "taken": FULL}, {}, NOTHING),
    "a job is over: its slot is filled again": ({"taken": FULL, "pending": 1}, {}, FillSlots(1)),
    "a job is over and nothing was found before": ({"taken": 1, "pending": 1}, {}, FillSlots(4)),
    "the next job is due later": ({"due_at": NOW + 7}, {}, Wait(7)),
    "the next job is due now": ({"due_at": NOW}, {}, FillSlots(4)),
    "the next job is due, every slot is taken": ({"due_at": NOW - 1, "taken": FULL}, {}, NOTHING),
    "the next job is due later, a hint came": ({"due_at": NOW + 7, "may_have_work": True}, {}, FillSlots(4)),
    "after an outage": ({"may_have_work": True, "pending": 2}, {"not_before": NOW + 5}, Wait(5)),
    "the pause after an outage is over": ({"may_have_work": True}, {"not_before": NOW}, FillSlots(4)),
    "draining": ({"may_have_work": True}, {"is_draining": True}, NOTHING),
    "draining, a job is over": ({"taken": 2, "pending": 1}, {"is_draining": True}, SettleOnly()),
    "draining, a job is due": ({"due_at": NOW}, {"is_draining": True}, NOTHING),
    "draining, a call is in flight": ({"pending": 1, "in_flight": 1}, {"is_draining": True}, NOTHING),
    "a call is in flight, others may follow": ({"pending": 1, "in_flight": 1, "taken": 2}, {}, FillSlots(3)),
    "half of the slots go with each of two calls": (
        {"may_have_work": True, "concurrent_calls": 2},
        {},
        FillSlots(2),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_a_lane_does_next(case: str) -> None:
    """One row of the table."""
    state, asked, expected = TABLE[case]
    assert lane(**state).next_action(NOW, **asked) == expected


@pytest.mark.parametrize("case", TABLE)
def test_deciding_changes_nothing(case: str) -> None:
    """It may be asked as often as one likes."""
    state, asked, _ = TABLE[case]
    made = lane(**state)
    before = {name: value for name, value in vars(made).items() if not name.startswith("_clock")}
    made.next_action(NOW, **asked)
    assert {name: value for name, value in vars(made).items() if not name.startswith("_clock")} == before


def test_a_call_in_flight_reserves_the_slots_that_it_may_fill() -> None:
    """Two calls never ask for the same slot, and what was found missing is not asked for twice."""
    made = lane(may_have_work=True, due_at=NOW, concurrent_calls=2)
    with made.call_in_flight(settling=0, claiming=2):
        assert made.next_action(NOW) == NOTHING
        made.look_for_work()
        assert made.next_action(NOW) == FillSlots(2)
        with made.call_in_flight(settling=0, claiming=2):
            made.look_for_work()
            assert made.next_action(NOW) == NOTHING
    assert made.next_action(NOW) == FillSlots(2)


def test_a_call_that_only_settles_reserves_nothing() -> None:
    """What is settled and claimed in one call takes no more slots than it frees."""
    made = lane(taken=2, may_have_work=True)
    with made.call_in_flight(settling=2, claiming=0):
        assert made.next_action(NOW) == FillSlots(2)
    with made.call_in_flight(settling=2, claiming=2):
        assert made.claimable_slots == 2
