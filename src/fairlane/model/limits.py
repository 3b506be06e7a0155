"""How many may wait, run or start (S16-S18, S44, S45). Counts nothing itself: counts are arguments."""

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
        """Refuse a rate that means nothing."""
        checking.one_of("per of a Rate", self.per, *_PERIODS)
        checking.counted("limit of a Rate", self.limit, 1)
        checking.counted("burst of a Rate", self.burst, 1)
        if self.burst * self.interval > LAST_INSTANT:
            # What a burst lets pass is subtracted from an instant.
            checking.refuse("burst of a Rate", self.burst, "no more than its limit allows in 285 years")

    @property
    def interval(self) -> Micros:
        """The spacing of starts, rounded up: never more than the limit.

        >>> Rate(50, "minute").interval, Rate(3, "second").interval
        (1200000, 333334)
        """
        return -(-_PERIODS[self.per] // self.limit)

    @property
    def pace(self) -> str:
        """Name what arrivals are counted by; one that was counted at another pace does not bind this rate.

        >>> Rate(50, "minute").pace, Rate(10, "second", burst=20).pace
        ('1200000x1', '100000x20')
        """
        return f"{self.interval}x{self.burst}"

    def carried(self, pace: str, arrival: Instant) -> Instant:
        """Give the arrival to go on from: that of a rate which was changed since counts no more (S54).

        >>> Rate(1, "second").carried("3600000000x1", 7), Rate(1, "second").carried("1000000x1", 7)
        (0, 7)
        """
        return arrival if pace == self.pace else 0

    def free_at(self, arrival: Instant) -> Instant:
        """Say when the next start is allowed, from the theoretical arrival time kept so far (GCRA).

        >>> Rate(10, "second", burst=20).free_at(2_000_000)
        100000
        """
        return arrival - (self.burst - 1) * self.interval

    def start(self, arrival: Instant, now: Instant) -> Instant:
        """Give the theoretical arrival time after a start now; a start is never given back.

        >>> Rate(1, "second").start(0, 5_000_000)
        6000000
        """
        return max(arrival, now) + self.interval

    def room(self, arrival: Instant, now: Instant) -> int:
        """Count the starts that are allowed at this instant.

        >>> Rate(10, "second", burst=20).room(0, 5_000_000)
        20
        """
        spare = now - self.free_at(max(arrival, now))
        return 1 + spare // self.interval if spare >= 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one tenant may have in one queue; None means no limit."""

    waiting: int | None = None
    on_full: OnFull = "warn"
    running: int | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing."""
        checking.one_of("on_full of Limits", self.on_full, "warn", "reject")
        checking.counted("waiting of Limits", self.waiting, 0, is_optional=True)
        checking.counted("running of Limits", self.running, 0, is_optional=True)
        checking.instance("rate of Limits", self.rate, Rate, "a Rate", is_optional=True)


NO_LIMITS: Final = Limits()


def has_room(used: int, limit: int | None) -> bool:
    """Whether one more fits: the n+1st is the first over a limit of n.

    >>> has_room(499, 500), has_room(500, 500), has_room(10**9, None)
    (True, False, True)
    """
    return limit is None or used < limit
