"""Amounts of money: whole millionths inside, decimals at the public edge (S59)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from fairlane.model.checking import shown

Millionths: TypeAlias = int
"""An amount in whole millionths of its currency."""

Amount: TypeAlias = Decimal | int | float | str
"""An amount in the public API."""

LARGEST: Final[Millionths] = 10**15
"""A milliard: sums of a period stay exact as floats, which Lua counts with."""

MILLION: Final = 10**6


def to_millionths(amount: object) -> Millionths:
    """Return an amount in millionths; ValueError says what is wrong with it.

    >>> to_millionths(Decimal("0.02")), to_millionths("500.00"), to_millionths(3), to_millionths(0.25)
    (20000, 500000000, 3000000, 250000)
    >>> to_millionths(0.1 + 0.2)
    Traceback (most recent call last):
    ValueError: 0.30000000000000004 has more than 6 decimals; round it, or use Decimal
    """
    if isinstance(amount, bool) or not isinstance(amount, Decimal | int | float | str):
        message = f"{shown(amount)} is no amount; use a Decimal, such as Decimal('0.02')"
        raise ValueError(message)  # noqa: TRY004 (of whoever spends, as all others)
    try:
        exact = Decimal(repr(amount)) if isinstance(amount, float) else Decimal(amount)
    except InvalidOperation:
        message = f"{shown(amount)} is no amount; write it as 0.02"
        raise ValueError(message) from None
    if not exact.is_finite():
        message = f"{exact} is no amount; use a finite number"
        raise ValueError(message)
    if exact < 0:
        message = f"{exact:.20} is negative; what was spent cannot be given back"
        raise ValueError(message)
    if exact * MILLION > LARGEST:
        message = f"{exact:.20} is too large; the most is {LARGEST // MILLION}"
        raise ValueError(message)
    whole = exact * MILLION
    if whole != whole.to_integral_value():
        message = f"{exact} has more than 6 decimals; round it, or use Decimal"
        raise ValueError(message)
    return int(whole)


def to_decimal(millionths: Millionths) -> Decimal:
    """Return the amount with at least two decimals, and no zero after these.

    >>> to_decimal(500_000_000), to_decimal(20_000), to_decimal(1_234_567), to_decimal(-2_500_000)
    (Decimal('500.00'), Decimal('0.02'), Decimal('1.234567'), Decimal('-2.50'))
    """
    sign, rest = "-" if millionths < 0 else "", abs(millionths)
    decimals = f"{rest % MILLION:06d}".rstrip("0").ljust(2, "0")
    return Decimal(f"{sign}{rest // MILLION}.{decimals}")
