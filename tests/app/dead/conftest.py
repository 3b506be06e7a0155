"""Fixtures: a task with hints whose jobs die, and a hand that lets them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import date
from typing import Any, TypeAlias

import pytest

from fairlane import ErrorClass, Fairlane, Job, Task
from tests.app.world import World

Die: TypeAlias = Callable[..., Coroutine[Any, Any, Job[Any]]]


def bill(order: int, day: date = date(2026, 7, 1), who: str = "ada") -> None:
    """Take what the tests of arguments change."""


@pytest.fixture
def billing(app: Fairlane) -> Task[..., None]:
    """A task with hints, for tenant acme."""
    return app.task(name="bill")(bill).using(tenant="acme")


@pytest.fixture
def die(world: World, billing: Task[..., None]) -> Die:
    """Return a function that enqueues a job and lets it die."""

    async def die(
        order: int = 7,
        *,
        message: str = "no line",
        kind: ErrorClass = ErrorClass.NON_RETRYABLE,
        task: Task[..., None] | None = None,
        **options: Any,
    ) -> Job[Any]:
        job = await (task or billing).using(**options).aenqueue(order)
        await world.fail(message, kind, queue=job.queue)
        world.clock.advance(1)
        return await job.arefresh()

    return die
