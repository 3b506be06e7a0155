"""How long to wait before a retry (S26). Draws no random numbers: the draw is an argument."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias, cast

from fairlane.model.checking import is_number, refuse
from fairlane.model.errors import ConfigError
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import DAY, SECOND, Micros, to_micros

LONGEST_DELAY: Final[Micros] = 365 * DAY
"""The longest computed delay, however large the exponent."""

LONGEST_RETRY_AFTER: Final[Micros] = DAY
"""The longest delay of `Retry(after=)` and Retry-After."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A schedule of delays between attempts: exponential, a list, or never."""

    base: float = 2.0
    factor: float = 2.0
    cap: float = 300.0
    floor: float = 0.0
    jitter: float = 0.2
    steps: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a meaningless schedule."""
        wanted = {
            "jitter": "a share from 0 to 1",
            "base": "seconds above 0",
            "factor": "1 or more",
            "floor": "seconds, 0 or more",
            "cap": "seconds above 0, not below the floor",
        }
        for field, what in wanted.items():
            if not is_number(getattr(self, field)):
                refuse(f"{field} of a Backoff", getattr(self, field), what)
        checks = (
            (0 <= self.jitter <= 1, "jitter"),
            (self.base > 0, "base"),
            (self.factor >= 1, "factor"),
            (self.floor >= 0, "floor"),
            (self.cap >= self.floor and self.cap > 0, "cap"),
        )
        for fits, field in checks:
            if not fits:
                refuse(f"{field} of a Backoff", getattr(self, field), wanted[field])
        if not self._are_steps_legal(self.steps):
            refuse(
                "steps of a Backoff", self.steps, "a tuple of seconds, 0 or more, finite, not above the cap"
            )

    def _are_steps_legal(self, steps: object) -> bool:
        if not isinstance(steps, tuple):
            return steps is None
        given = cast("tuple[object, ...]", steps)
        return all(is_number(step) and 0 <= step <= self.cap and step < math.inf for step in given)

    @classmethod
    def delays(cls, *seconds: float, jitter: float = 0.0) -> Backoff:
        """Wait exactly these times, repeating the last; k delays imply k + 1 attempts.

        >>> Backoff.delays(10, 30, 60).implied_attempts
        4
        """
        if not seconds:
            message = "Backoff.delays needs at least one delay; Backoff.never() retries nothing"
            raise ConfigError(message)
        return cls(steps=seconds, cap=math.inf, jitter=jitter)

    @classmethod
    def exponential(
        cls,
        base: float = 2.0,
        *,
        factor: float = 2.0,
        cap: float = 300.0,
        floor: float = 0.0,
        jitter: float = 0.2,
    ) -> Backoff:
        """Wait `base`, then `factor` times as long each time, up to `cap`, spread by `jitter`."""
        return cls(base=base, factor=factor, cap=cap, floor=floor, jitter=jitter)

    @classmethod
    def never(cls) -> Backoff:
        """Give up after the first failure."""
        return cls(steps=())

    @property
    def gives_up(self) -> bool:
        """Whether nothing is retried."""
        return self.steps == ()

    @property
    def implied_attempts(self) -> int | None:
        """How many attempts the schedule implies: k + 1 for k delays, 1 for `never`, else None."""
        return None if self.steps is None else len(self.steps) + 1

    def delay(self, failures: int, draw: float) -> timedelta:
        """Return the delay after this many failures; `draw` in [0, 1) places it inside the jitter.

        >>> Backoff.exponential(1, jitter=0.1).delay(3, 0.5)
        datetime.timedelta(seconds=4)
        >>> Backoff.delays(60, 300).delay(9, 0.0)
        datetime.timedelta(seconds=300)
        """
        return timedelta(microseconds=self.micros(failures, draw))

    def micros(self, failures: int, draw: float) -> Micros:
        """Return the delay in whole microseconds.

        The jitter is cut at the cap on its upper side only, so that capped delays still spread.
        """
        # Bounded before the jitter is applied: infinity could not be spread.
        middle = min(self._middle(max(1, failures)), LONGEST_DELAY / SECOND)
        low = middle * (1 - self.jitter)
        high = min(self.cap, middle * (1 + self.jitter))
        seconds = max(self.floor, low + draw * (high - low))
        return round(min(seconds, LONGEST_DELAY / SECOND) * SECOND)

    def _middle(self, failures: int) -> float:
        if self.steps:
            return self.steps[min(failures, len(self.steps)) - 1]
        try:
            # A float overflows; an int would grow without bound.
            return min(self.cap, self.base * float(self.factor) ** (failures - 1))
        except OverflowError:
            return self.cap


RetryPolicy: TypeAlias = Backoff | Mapping[ErrorClass, Backoff]

DEFAULT_BACKOFF: Final = Backoff.exponential()

_CLASSES: Final = frozenset(ErrorClass)


def check_retry(field: str, policy: object) -> None:
    """Refuse a value that is no retry policy. Later, after a failure, it would be too late."""
    if isinstance(policy, Backoff):
        return
    wanted = "a Backoff, such as Backoff.delays(10, 60), or a dict of these by ErrorClass"
    if not isinstance(policy, Mapping):
        refuse(field, policy, wanted)
    for key, backoff in cast("Mapping[object, object]", policy).items():
        if key not in _CLASSES or not isinstance(backoff, Backoff):
            refuse(field, {key: backoff}, wanted)


def backoff_for(error_class: ErrorClass, *policies: RetryPolicy | None) -> Backoff:
    """Return the backoff of the first policy (call, task, queue, application) that covers the class.

    >>> by_class = {ErrorClass.RATE_LIMITED: Backoff.exponential(60)}
    >>> backoff_for(ErrorClass.RATE_LIMITED, by_class).base, backoff_for(ErrorClass.CRASH, by_class).base
    (60, 2.0)
    """
    for policy in policies:
        if isinstance(policy, Backoff):
            return policy
        if policy is not None and error_class in policy:
            return policy[error_class]
    return DEFAULT_BACKOFF


def retry_after(after: timedelta | float) -> Micros:
    """Return the delay that a handler or a server asked for, bounded to 0 to 24 hours.

    >>> retry_after(90), retry_after(-1), retry_after(10**9) == LONGEST_RETRY_AFTER
    (90000000, 0, True)
    """
    return min(max(0, to_micros(after)), LONGEST_RETRY_AFTER)
