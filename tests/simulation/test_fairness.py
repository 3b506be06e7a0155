"""The fairness check names who gets too much beside a tenant that always waits, and nobody else."""

from __future__ import annotations

from tests.simulation.fairness import FairnessCheck

EQUAL = {"a": 10, "b": 10}


def test_turns_that_alternate_are_fair() -> None:
    """One job ahead is not too much."""
    check = FairnessCheck()
    for served in ("a", "b", "b", "a", "a", "b"):
        assert check.served("q", [served], {"a", "b"}, EQUAL) == []


def test_three_turns_in_a_row_beside_one_that_waits_are_too_many() -> None:
    """More than a job of each is more than fairness ever gives."""
    check = FairnessCheck()
    assert check.served("q", ["b", "b"], {"a"}, EQUAL) == []
    assert check.served("q", ["b"], {"a"}, EQUAL) != []


def test_a_tenant_that_had_nothing_to_wait_for_is_owed_nothing() -> None:
    """The count begins anew when a backlog ends."""
    check = FairnessCheck()
    check.served("q", ["b", "b"], {"a"}, EQUAL)
    check.served("q", ["b"], set(), EQUAL)
    assert check.served("q", ["b", "b"], {"a"}, EQUAL) == []


def test_a_light_tenant_costs_more_for_each_turn() -> None:
    """Turns are counted by weight: a tenth of the weight gets a tenth of the turns."""
    check = FairnessCheck()
    strides = {"a": 1, "b": 10}
    assert check.served("q", ["a"] * 9 + ["b"], {"a", "b"}, strides) == []
    assert check.served("q", ["b"], {"a", "b"}, strides) == []
    assert check.served("q", ["b"], {"a", "b"}, strides) != []


def test_counting_anew_forgets_what_was_served() -> None:
    """When what holds for tenants has changed, nothing before counts."""
    check = FairnessCheck()
    check.served("q", ["b", "b"], {"a"}, EQUAL)
    check.restart("q")
    assert check.served("q", ["b", "b"], {"a"}, EQUAL) == []
