"""Priority is worth time: 100 points are ten minutes, and nothing changes while a job waits (S19, S20)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.scheduling.priority import HIGHEST, LOWEST, at_edge, is_priority, sort_key

priorities = st.integers(-100, 100)
instants = st.integers(0, 10**18)


@pytest.mark.parametrize(
    ("due_at", "priority", "key"),
    [
        (0, 0, 0),
        (1_000 * SECOND, 100, 400 * SECOND),
        (1_000 * SECOND, -100, 1_600 * SECOND),
        (1_000 * SECOND, 1, 994 * SECOND),
    ],
)
def test_a_point_of_priority_is_worth_six_seconds(due_at: int, priority: int, key: int) -> None:
    """Higher goes first."""
    assert sort_key(due_at, priority) == key


@settings(max_examples=100, deadline=None)
@given(instants, priorities, instants, priorities)
def test_nobody_is_overtaken_by_a_job_that_came_later_than_the_boost(
    due: int, priority: int, other_due: int, other: int
) -> None:
    """A job waits behind later ones for at most the difference of the priorities."""
    goes_first = sort_key(other_due, other) < sort_key(due, priority)
    if goes_first:
        assert other_due - due < (other - priority) * 6 * SECOND
    if other_due - due > 20 * MINUTE:
        assert not goes_first


@settings(max_examples=100, deadline=None)
@given(priorities, instants, instants)
def test_equal_priorities_go_by_time(priority: int, one: int, other: int) -> None:
    """First in, first out."""
    assert (sort_key(one, priority) < sort_key(other, priority)) == (one < other)


@pytest.mark.parametrize(
    ("value", "is_legal"),
    [
        (0, True),
        (LOWEST, True),
        (HIGHEST, True),
        (-100, True),
        (100, True),
        (-101, False),
        (101, False),
        (10**30, False),
        (True, False),
        (False, False),
        (1.0, False),
        ("1", False),
        (None, False),
    ],
)
def test_a_priority_is_a_whole_number_from_minus_100_to_100(value: object, is_legal: bool) -> None:
    """A flag is no number here."""
    assert is_priority(value) is is_legal


@settings(max_examples=100, deadline=None)
@given(priorities, st.booleans())
def test_the_edge_translates_both_ways(priority: int, lower_first: bool) -> None:
    """What an application sends is what it is shown, and it stays legal."""
    inside = at_edge(priority, lower_first=lower_first)
    assert is_priority(inside)
    assert at_edge(inside, lower_first=lower_first) == priority


def test_small_numbers_go_first_where_the_application_says_so() -> None:
    """The stores know one direction only."""
    urgent, later = at_edge(0, lower_first=True), at_edge(10, lower_first=True)
    assert sort_key(0, urgent) < sort_key(0, later)
    assert sort_key(0, at_edge(10, lower_first=False)) < sort_key(0, at_edge(0, lower_first=False))
