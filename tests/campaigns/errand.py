"""One piece of a campaign while it is under way: how much is wanted, and what has come of it so far."""

from __future__ import annotations

import random
import time
from collections import Counter


class Errand:
    """What a campaign is asked for, and what it writes down of itself."""

    def __init__(self, store: str, seed: int, wanted: int, seconds: float, first_seed: int = 0) -> None:
        """Want so many faults, in about so much time. What runs seeds in a row begins with the first one."""
        self.store = store
        self.seed = seed
        self.first_seed = first_seed
        self.draw = random.Random(seed)
        self.wanted = wanted
        self.n = 0
        self.recovery: list[float] = []
        self.failures: list[str] = []
        self.settings: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.figures: Counter[str] = Counter()
        self._deadline = time.monotonic() + seconds

    @property
    def goes_on(self) -> bool:
        """Whether one more fault is wanted, and there is time for it."""
        return self.n < self.wanted and time.monotonic() < self._deadline

    def done(self, *recovery: float) -> None:
        """Count one fault, and the seconds until what it had harmed worked again."""
        self.n += 1
        self.recovery += (round(one, 3) for one in recovery)

    def fail(self, story: str) -> None:
        """Write down that a promise was not kept."""
        self.failures.append(story)
