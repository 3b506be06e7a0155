"""Rate limits and limits of waiting and running jobs (S16-S18, S44, S45). Counts nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fairlane.model import checking
from fairlane.model.instants import DAY, HOUR, LAST_INSTANT, MINUTE, SECOND, Instant, Micros

OnFull: TypeAlias = Literal["warn", "reject"]

_PERIODS: Final[dict[str, Micros]] = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` starts per period, evenly spaced unless `burst` lets some go at once."""

    limit: int
    per: Literal["second", "minute", "hour", "day"] = "minute"
    burst: int = 1

    def __post_init__(self) -> None:
        """Refuse a meaningless rate."""
        checking.one_of("per of a Rate", self.per, *_PERIODS)
        checking.counted("limit of a Rate", self.limit, 1)
        checking.counted("burst of a Rate", self.burst, 1)
        if self.burst * self.interval > LAST_INSTANT:
            # The burst is subtracted from an instant.
            checking.refuse("burst of a Rate", self.burst, "no more than its limit allows in 285 years")

    @property
    def interval(self) -> Micros:
        """The time between two starts, rounded up so that the limit is never exceeded.

        >>> Rate(50, "minute").interval, Rate(3, "second").interval
        (1200000, 333334)
        """
        return -(-_PERIODS[self.per] // self.limit)

    @property
    def rate_id(self) -> str:
        """Identify the rate by which an instant was computed; an instant of another rate does not count.

        >>> Rate(50, "minute").rate_id, Rate(10, "second", burst=20).rate_id
        ('1200000x1', '100000x20')
        """
        return f"{self.interval}x{self.burst}"

    def next_allowed_from(self, rate_id: str, next_allowed_at: Instant) -> Instant:
        """Return the stored instant if this rate computed it, else 0: a changed rate starts anew (S54).

        >>> [Rate(1, "second").next_allowed_from(rate_id, 7) for rate_id in ("3600000000x1", "1000000x1")]
        [0, 7]
        """
        return next_allowed_at if rate_id == self.rate_id else 0

    def free_at(self, next_allowed_at: Instant) -> Instant:
        """Return when the next start is allowed, from the theoretical arrival time stored so far (GCRA).

        >>> Rate(10, "second", burst=20).free_at(2_000_000)
        100000
        """
        return next_allowed_at - (self.burst - 1) * self.interval

    def start(self, next_allowed_at: Instant, now: Instant) -> Instant:
        """Return the theoretical arrival time after a start now. Starts are never given back.

        >>> Rate(1, "second").start(0, 5_000_000)
        6000000
        """
        return max(next_allowed_at, now) + self.interval

    def allowed_starts(self, next_allowed_at: Instant, now: Instant) -> int:
        """Count the starts that are allowed at this instant.

        >>> Rate(10, "second", burst=20).allowed_starts(0, 5_000_000)
        20
        """
        spare = now - self.free_at(max(next_allowed_at, now))
        return 1 + spare // self.interval if spare >= 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one tenant may have in one queue; None means no limit."""

    waiting: int | None = None
    on_full: OnFull = "warn"
    running: int | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        """Refuse meaningless limits."""
        checking.one_of("on_full of Limits", self.on_full, "warn", "reject")
        checking.counted("waiting of Limits", self.waiting, 0, is_optional=True)
        checking.counted("running of Limits", self.running, 0, is_optional=True)
        checking.instance("rate of Limits", self.rate, Rate, "a Rate", is_optional=True)


NO_LIMITS: Final = Limits()


def is_below(used: int, limit: int | None) -> bool:
    """Whether one more fits under a limit; None is no limit.

    >>> is_below(499, 500), is_below(500, 500), is_below(10**9, None)
    (True, False, True)
    """
    return limit is None or used < limit
