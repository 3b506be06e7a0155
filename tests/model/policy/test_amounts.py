"""Amounts of money: exact, or refused with one clear error (S59, S113)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fairlane.model.policy.amounts import LARGEST, to_decimal, to_millionths


@pytest.mark.parametrize(
    ("amount", "millionths"),
    [
        (Decimal("0.02"), 20_000),
        (Decimal("1E+3"), 1_000_000_000),
        (0.1, 100_000),
        (1e-06, 1),
        (7, 7_000_000),
        ("12.5", 12_500_000),
        (Decimal("-0"), 0),
        (Decimal(LARGEST) / 10**6, LARGEST),
    ],
    ids=str,
)
def test_an_amount_is_counted_exactly(amount: object, millionths: int) -> None:
    """S59: whole millionths, whatever type it came in."""
    assert to_millionths(amount) == millionths


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (-1, "negative"),
        (Decimal("-0.01"), "negative"),
        (Decimal("NaN"), "finite"),
        (float("inf"), "finite"),
        (float("nan"), "finite"),
        (0.1 + 0.2, "more than 6 decimals"),
        (Decimal("0.0000001"), "more than 6 decimals"),
        (10**10, "too large"),
        (Decimal("1E+99999"), "too large"),
        (True, "no amount"),
        (None, "no amount"),
        ("much", "no amount"),
    ],
    ids=str,
)
def test_what_is_no_amount_is_refused(amount: object, text: str) -> None:
    """S113: the error says why."""
    with pytest.raises(ValueError, match=text):
        to_millionths(amount)


@pytest.mark.parametrize("millionths", [0, 1, 20_000, 500_000_000, 123_456_789, -1, LARGEST])
def test_an_amount_is_shown_as_it_was_given(millionths: int) -> None:
    """S59: at least two decimals, nothing lost."""
    shown = to_decimal(millionths)
    assert shown * 10**6 == millionths
    assert len(str(shown).partition(".")[2]) >= 2
