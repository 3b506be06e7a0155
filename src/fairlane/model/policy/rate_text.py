"""Read a rate from text, as command lines and forms take it."""

from __future__ import annotations

from typing import Final

from fairlane.model.policy.limits import Rate

NONE: Final = "none"
"""The word that removes a limit or a rate."""

_DIGITS: Final = 9
"""The maximum number of digits: more than anybody needs, and every store can hold it."""


def read_rate(text: str) -> Rate | None:
    """Return the rate that a text names; ValueError says how to write one.

    >>> read_rate("50/minute"), read_rate("10/second+20"), read_rate("none")
    (Rate(limit=50, per='minute', burst=1), Rate(limit=10, per='second', burst=20), None)
    """
    if text == NONE:
        return None
    limit, _, rest = text.partition("/")
    per, _, burst = rest.partition("+")
    numbers = (limit, burst or "1")
    if not all(number.isdecimal() and len(number) <= _DIGITS for number in numbers):
        message = (
            f"{text[:40]!r} is not a rate; write it as 50/minute, or 10/second+20 with a burst of 20, or none"
        )
        raise ValueError(message)
    return Rate(int(limit), per, int(burst or 1))  # type: ignore[arg-type]  # it refuses an unknown unit


def write_rate(rate: Rate | None) -> str:
    """Return the text that `read_rate` reads.

    >>> write_rate(Rate(10, "second", burst=20)), write_rate(Rate(50)), write_rate(None)
    ('10/second+20', '50/minute', 'none')
    """
    if rate is None:
        return NONE
    return f"{rate.limit}/{rate.per}" + (f"+{rate.burst}" if rate.burst > 1 else "")
