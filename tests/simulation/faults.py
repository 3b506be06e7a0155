"""What goes wrong between a process and its store, drawn call by call. Does nothing itself."""

from __future__ import annotations

from enum import Enum, auto
from random import Random
from typing import Final

import msgspec

from fairlane.model.instants import SECOND, Micros


class Fate(Enum):
    """What becomes of one call. An answer that is lost tells its caller nothing: it may have happened."""

    FINE = auto()
    REFUSED = auto()
    """The store does nothing, and says so."""
    SWALLOWED = auto()
    """The store never hears of it; an enqueue's fate is unknown, anything else is unavailable."""
    UNANSWERED = auto()
    """The store does it, and the answer is lost."""
    TWICE = auto()
    """The store does it again a while later; only the first answer arrives."""
    FORGOTTEN = auto()
    """The store answers a claim and dies before it was kept (S36); it is back a moment later."""


KINDS: Final = tuple(fate for fate in Fate if fate is not Fate.FINE)

_REPEATABLE: Final = frozenset(
    {
        "enqueue",
        "claim",
        "settle",
        "renew",
        "heartbeat",
        "reclaim",
        "take_stuck",
        "promote",
        "expire",
        "cancel",
        "run_now",
    }
)
"""Verbs of which a second sending may arrive: of an enqueue also one that its client did not mark (S15)."""


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """How often each fault happens in one run, and how long calls take. Most runs have only some faults."""

    rates: dict[Fate, float] = {}
    slowness: float = 0.0
    lost_hints: float = 0.0
    """How many waits hear of nothing."""


CALM: Final = Weather()


def draw_weather(rng: Random) -> Weather:
    """Draw the weather of one run: some faults often, others never."""
    chosen = [fate for fate in KINDS if rng.random() < 0.4] if rng.random() < 0.8 else []
    return Weather(
        rates={fate: rng.choice((0.01, 0.05, 0.2)) for fate in chosen},
        slowness=rng.choice((0.0, 0.0, 0.01, 0.1)),
        lost_hints=rng.choice((0.0, 0.3, 1.0)),
    )


class Faults:
    """Draws the fate of every call from a run's weather, until it is made calm."""

    def __init__(self, rng: Random, weather: Weather) -> None:
        """Begin with this weather."""
        self._rng = rng
        self._weather = weather
        self._total = sum(weather.rates.values())
        self.is_rough = self._total > 0 or weather.slowness > 0
        """Whether calls may have failed or taken long while the store was there."""
        self.may_forget = Fate.FORGOTTEN in weather.rates

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        self._weather, self._total = CALM, 0.0

    def fate(self, verb: str) -> Fate:
        """Draw what becomes of a call."""
        draw = self._rng.random()
        if draw >= self._total:
            return Fate.FINE
        for fate, rate in self._weather.rates.items():
            draw -= rate
            if draw < 0:
                return fate if _may(fate, verb) else Fate.FINE
        return Fate.FINE

    def loses_hint(self) -> bool:
        """Whether a wait hears of nothing."""
        return self._rng.random() < self._weather.lost_hints

    def latency(self) -> Micros:
        """Draw how long a message takes one way."""
        draw = self._rng.random()
        if draw < self._weather.slowness:
            return round(draw / self._weather.slowness * 3 * SECOND)
        return round(draw * 2_000)

    def moment(self, most: float) -> Micros:
        """Draw a duration up to so many seconds, short ones more often."""
        return round(self._rng.random() ** 2 * most * SECOND)


def _may(fate: Fate, verb: str) -> bool:
    if fate is Fate.TWICE:
        return verb in _REPEATABLE
    if fate is Fate.FORGOTTEN:
        return verb == "claim"
    return True
