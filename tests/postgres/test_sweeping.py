"""Where a pass of a duty begins: behind what is dead, and now and then at the very first."""

from __future__ import annotations

import pytest

from fairlane.model.instants import SECOND
from fairlane.store.postgres import sweeping
from fairlane.store.postgres.sweeping import Floor

AT = 1_000 * SECOND


def test_a_pass_begins_where_the_last_one_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first looks at everything, and so does one of many: what was left behind must be found."""
    monkeypatch.setattr(sweeping, "_SWEEP_EVERY", 3)
    floor, begun = Floor(), []
    for number in range(7):
        begun.append(floor())
        floor.passed(AT + number, is_whole=True)
    assert begun == [0, AT, AT + 1, 0, AT + 3, AT + 4, 0]


def test_a_pass_that_left_something_is_followed_by_one_over_everything() -> None:
    """Nobody knows how far below the floor the rest is."""
    floor = Floor()
    floor.passed(AT, is_whole=True)
    floor.passed(AT + 1, is_whole=False)
    assert floor() == 0


def test_looking_at_everything_goes_on_as_long_as_it_is_cheap() -> None:
    """Without an old snapshot nothing is left out, not even what waits again long after its time."""
    floor = Floor()
    for number in range(5):
        floor.passed(AT + number, is_whole=True, took=SECOND // 100)
        assert floor() == 0
    floor.passed(AT + 5, is_whole=True, took=SECOND)
    assert floor() == AT + 5
    floor.passed(AT + 6, is_whole=True, took=0)
    assert floor() == AT + 6
