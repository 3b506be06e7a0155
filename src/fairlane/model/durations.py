"""Format durations for people. Reads no clock."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND, Instant, Micros

_UNITS: Final[tuple[tuple[str, Micros], ...]] = (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND))


def format_duration(duration: Micros) -> str:
    """Format a duration in its two largest units.

    >>> [format_duration(duration) for duration in (1_500_000, 12 * SECOND, 26 * HOUR, DAY, 0)]
    ['1.5s', '12s', '1d 2h', '1d', '0s']
    """
    if duration < 10 * SECOND:
        return f"{duration / SECOND:.1f}s".replace(".0s", "s")
    at = next(at for at, (_, size) in enumerate(_UNITS) if duration >= size)
    unit, size = _UNITS[at]
    rest = _UNITS[at + 1] if at + 1 < len(_UNITS) else None
    more = duration % size // rest[1] if rest else 0
    return f"{duration // size}{unit}" + (f" {more}{rest[0]}" if rest and more else "")


def ago(instant: Instant | None, now: Instant) -> str:
    """Format how far an instant is from now.

    >>> ago(0, 90 * SECOND), ago(90 * SECOND, 0), ago(5, 5), ago(None, 5)
    ('1m 30s ago', 'in 1m 30s', 'now', '-')
    """
    if instant is None:
        return "-"
    if abs(instant - now) < SECOND // 10:
        return "now"
    return (
        f"{format_duration(now - instant)} ago" if instant < now else f"in {format_duration(instant - now)}"
    )
