"""Limit how often each caller may ask. In memory, for a bounded number of callers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy.limits import Rate
from fairlane.web.problem import RETRY_AFTER, HttpProblem

MOST_CALLERS: Final = 10_000
"""Callers that are remembered; of more, those that asked least recently begin anew."""


class CallerRates:
    """When each caller may ask next. Lost when the process ends."""

    def __init__(self, now: Callable[[], Micros]) -> None:
        self._now = now
        self._free_at: OrderedDict[str, Micros] = OrderedDict()

    def __len__(self) -> int:
        return len(self._free_at)

    def wait_of(self, caller: str, rate: Rate) -> Micros:
        """Return how long a caller must wait before it may ask; zero if it need not."""
        spent = self._free_at.get(caller, 0) - self._now()
        return max(0, spent - (rate.burst - 1) * rate.interval)

    def note(self, caller: str, rate: Rate) -> None:
        """Count one request of a caller."""
        self._free_at[caller] = max(self._free_at.get(caller, 0), self._now()) + rate.interval
        self._free_at.move_to_end(caller)
        if len(self._free_at) > MOST_CALLERS:
            self._free_at.popitem(last=False)

    def check(self, caller: str, rate: Rate | None) -> None:
        """Refuse a request of a caller that asks too often."""
        wait = 0 if rate is None else self.wait_of(caller, rate)
        if rate is not None and wait:
            seconds = -(-wait // SECOND)
            raise HttpProblem(
                429,
                "too_many_requests",
                f"more than {rate.limit} requests a {rate.per} came from this caller",
                hint=f"ask again in {seconds} s",
                headers={RETRY_AFTER: str(seconds)},
            )

    def take(self, caller: str, rate: Rate | None) -> None:
        """Count one request of a caller, or refuse it."""
        self.check(caller, rate)
        if rate is not None:
            self.note(caller, rate)
