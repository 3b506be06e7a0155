"""What only some worlds have: breakers around a provider that goes down, and budgets.

It is drawn apart from all else, so that a seed without guards goes the way that it always went.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from fairlane import Breaker, Budget
from fairlane.model.policy.declared import BreakerPer, OnOpen

ZONE: Final = "America/Los_Angeles"
"""Where the day changes in the first seconds of a run."""


class Guards(msgspec.Struct, frozen=True):
    """What one run declares."""

    per: tuple[BreakerPer, BreakerPer] = ("all", "tenant")
    on_open: OnOpen = "snooze"
    ramp: int = 4
    ceiling: str = "2"

    @property
    def breakers(self) -> list[Breaker]:
        """One that a task names, and one that handlers pass."""
        calls, texts = self.per
        return [
            Breaker("calls", failures=3, window=4, open_for=1, ramp=self.ramp, per=calls),
            Breaker("texts", failures=2, window=4, open_for=0.7, ramp=2, per=texts, on_open=self.on_open),
        ]

    @property
    def budgets(self) -> list[Budget]:
        """One of all tenants that lets jobs wait, and one of each that lets them die."""
        day: dict[str, Any] = {"currency": "USD", "per": "day", "timezone": ZONE}
        return [
            Budget("ai", self.ceiling, estimate="0.4", on_spent="park", **day),
            Budget("shop", "1", estimate="0.3", on_spent="fail", per_tenant=True, **day),
        ]


class Provider:
    """What guarded jobs call."""

    is_down = False

    def call(self) -> None:
        """Answer, or fail."""
        if self.is_down:
            raise ConnectionError("as planned")


def draw_guards(seed: int) -> tuple[Random, Guards | None]:
    """Draw whether a run has guards, and which."""
    rng = Random(f"guards {seed}")
    if rng.random() >= 0.4:
        return rng, None
    both: tuple[BreakerPer, ...] = ("all", "tenant")
    return rng, Guards(
        per=(rng.choice(both), rng.choice(both)),
        on_open=rng.choice(("snooze", "fail")),
        ramp=rng.choice((1, 2, 4, 8)),
        ceiling=rng.choice(("0.9", "2", "5")),
    )


async def go_up_and_down(provider: Provider, rng: Random, is_over: Callable[[], bool]) -> None:
    """Let the provider fail for a while, again and again."""
    while not is_over():
        await asyncio.sleep(rng.random() * 2)
        provider.is_down = not is_over()
        await asyncio.sleep(rng.random() * 3)
        provider.is_down = False
