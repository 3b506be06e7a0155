"""Slots divided among processes: exact, even, and never none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Lane, Share
from fairlane.model.scheduling.division import divide_lanes

SIZES = st.lists(st.integers(8, 100), min_size=1, max_size=4)


@given(SIZES, st.integers(1, 8))
def test_the_parts_are_the_whole_and_differ_by_one_at_most(sizes: list[int], count: int) -> None:
    """Per lane, and over all lanes of a process."""
    lanes = [Lane(f"lane{at}", slots, ["a"]) for at, slots in enumerate(sizes)]
    parts = [divide_lanes(lanes, index, count) for index in range(count)]
    for at, lane in enumerate(lanes):
        own = [part[at].slots for part in parts]
        assert sum(own) == lane.slots
        assert max(own) - min(own) <= 1
        assert sum(part[at].headroom_slots for part in parts) <= lane.headroom_slots
    totals = [sum(lane.slots for lane in part) for part in parts]
    assert max(totals) - min(totals) <= 1


def test_one_process_has_the_lanes_as_they_are() -> None:
    """Nothing is rewritten."""
    lanes = [Lane("main", 3, {"a": Share(max_slots=1)}, headroom=1, prefetch=5)]
    assert divide_lanes(lanes, 0, 1) == lanes


def test_what_bounds_a_lane_is_divided_too() -> None:
    """Headroom, prefetch, and the slots that a queue may use; a queue without a slot is not served there."""
    lane = Lane("main", 4, {"a": Share(max_slots=1), "b": 2.0}, headroom=2, prefetch=3)
    (first,), (second,) = (divide_lanes([lane], index, 2) for index in range(2))
    assert (first.slots, first.headroom, first.prefetch) == (2, 1, 2)
    assert (second.slots, second.headroom, second.prefetch) == (2, 1, 1)
    assert first.shares() == {"a": Share(max_slots=1), "b": Share(2.0)}
    assert second.shares() == {"b": Share(2.0)}


def test_headroom_leaves_a_slot_for_everybody() -> None:
    """A process with one slot has none of it."""
    parts = [divide_lanes([Lane("main", 3, ["a"], headroom=2)], index, 3)[0] for index in range(3)]
    assert [(part.slots, part.headroom) for part in parts] == [(1, 0), (1, 0), (1, 0)]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_every_process_refuses_a_lane_with_too_few_slots(index: int) -> None:
    """With the same words, whichever starts first."""
    with pytest.raises(
        ConfigError, match="lane main has 2 slots, and 3 processes share them: each needs one"
    ):
        divide_lanes([Lane("main", 2, ["a"])], index, 3)


@pytest.mark.parametrize("index", [0, 1])
def test_every_process_refuses_queues_that_leave_one_without_any(index: int) -> None:
    """The only queue of the lane may use one slot."""
    with pytest.raises(ConfigError, match="has only queues that may use fewer slots"):
        divide_lanes([Lane("main", 4, {"a": Share(max_slots=1)})], index, 2)
