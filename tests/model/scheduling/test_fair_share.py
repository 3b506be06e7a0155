"""Fair shares of the slots that a queue's jobs hold, and who slows whom (S93, S94)."""

from __future__ import annotations

from math import inf, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.scheduling.fair_share import (
    Claimant,
    Contention,
    contention,
    fair_shares,
    guaranteed_shares,
)

NOBODY = Contention((), ())

claimants = st.lists(
    st.builds(
        Claimant,
        weight=st.floats(0.01, 1000.0),
        held=st.integers(0, 50),
        ready=st.integers(0, 1_000),
        room=st.sampled_from([inf, 0, 3]),
    ).filter(lambda one: one.held or one.ready),
    max_size=12,
)


def equal(held: int, ready: int = 0, **values: float) -> Claimant:
    """Return a claimant, of weight 1 unless said."""
    return Claimant(weight=values.pop("weight", 1.0), held=held, ready=ready, **values)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([equal(0, 9)], [0.0]),
        ([equal(5)], [5.0]),
        ([equal(8, 99), equal(0, 99)], [4.0, 4.0]),
        ([equal(8, 99), equal(0, 1)], [7.0, 1.0]),
        ([equal(8, 99), equal(0, 2), equal(1, 0)], [6.0, 2.0, 1.0]),
        ([equal(8, 99, weight=3.0), equal(0, 99)], [6.0, 2.0]),
        ([equal(1, 99), equal(1, 99), equal(0, 99)], [2 / 3, 2 / 3, 2 / 3]),
        ([equal(6, 99, weight=1.0), equal(0, 1, weight=1000.0)], [5.0, 1.0]),
        ([equal(4, 9), equal(4, 9, room=0)], [4.0, 4.0]),
    ],
)
def test_slots_are_divided_by_weight_and_need(given: list[Claimant], expected: list[float]) -> None:
    """What one cannot use is for the others; a limit of its own makes its share no smaller."""
    assert fair_shares(given) == pytest.approx(expected)


def test_what_is_guaranteed_asks_for_no_need() -> None:
    """Everybody may want everything at once."""
    assert guaranteed_shares([equal(8, 99, weight=3.0), equal(0, 1)]) == [6.0, 2.0]
    assert guaranteed_shares([]) == []


@given(claimants)
def test_shares_are_weighted_max_min(given: list[Claimant]) -> None:
    """All slots are shared, nobody gets more than it needs, and no smaller share has room to grow."""
    shares = fair_shares(given)
    assert isclose(sum(shares), sum(one.held for one in given), abs_tol=1e-6)
    for one, share in zip(given, shares, strict=True):
        need = one.held + one.ready
        assert -1e-9 <= share <= need + 1e-6
        if share < need - 1e-6:  # it wants more: then nobody has more for its weight
            others = [other / that.weight for that, other in zip(given, shares, strict=True)]
            assert share / one.weight >= max(others) - 1e-6 * max(1.0, *others)


@given(claimants)
def test_nobody_is_over_unless_somebody_waits_for_it(given: list[Claimant]) -> None:
    """Who slows, and who is slowed, are different tenants; one of them alone makes no contention."""
    found = contention(given)
    assert bool(found.over) == bool(found.slowed)
    assert not set(found.over) & set(found.slowed)
    shares = fair_shares(given)
    assert all(given[at].held >= shares[at] + 1 - 1e-6 for at in found.over)
    assert all(given[at].held < max(shares[at], 1e-9) and given[at].ready for at in found.slowed)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], NOBODY),
        ([equal(9, 99)], NOBODY),
        # One holds all, another waits for its first slot.
        ([equal(4, 99), equal(0, 1)], Contention((0,), (1,))),
        # Slots are whole: 5 and 4 of 9 is as fair as it can be.
        ([equal(5, 99), equal(4, 99)], NOBODY),
        ([equal(6, 99), equal(3, 99)], Contention((0,), (1,))),
        # More tenants than slots: those that hold one hold no more than they may.
        ([equal(1, 9), equal(1, 9), equal(0, 9)], NOBODY),
        # Nobody waits: what is free is for who wants it.
        ([equal(9, 99), equal(1, 0)], NOBODY),
        # By weight it is its share.
        ([equal(6, 99, weight=3.0), equal(2, 99)], NOBODY),
        ([equal(6, 99), equal(2, 99, weight=3.0)], Contention((0,), (1,))),
        # Who waits is held back by a limit of its own, not by others.
        ([equal(8, 99), equal(1, 99, room=0)], NOBODY),
        ([equal(8, 99), equal(1, 99, room=1)], Contention((0,), (1,))),
        ([equal(8, 99), equal(1, 99, room=0), equal(0, 3)], Contention((0,), (2,))),
    ],
)
def test_who_slows_whom(given: list[Claimant], expected: Contention) -> None:
    """Above its share by a whole slot, while another could have one more within its own."""
    assert contention(given) == expected
