"""Two applications with one task name on one store: neither takes the other's jobs unnoticed."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import ConfigError, Fairlane
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import WorkersRequest, WorkerView
from tests.worker.world import World, events


def declare(app: Fairlane, module: str, *, with_note: bool = False) -> None:
    """Declare the task as if it stood in a module."""

    async def plain(to: str) -> None: ...

    async def noted(to: str, note: str) -> None: ...

    handler: Any = noted if with_note else plain
    handler.__module__ = module
    app.task(name="mail")(handler)


async def test_another_application_with_a_task_of_this_name_keeps_a_worker_from_starting(
    world: World,
) -> None:
    """The error names both, and the worker that is there; the first one goes on."""
    shop, billing = world.app(name="shop"), world.app(name="billing")
    declare(shop, "shop.jobs")
    declare(billing, "billing.jobs")
    async with world.working(shop) as first:
        with pytest.raises(ConfigError) as told:
            await world.burst(billing)
        assert len(await workers(shop)) == 1
    text = str(told.value)
    assert told.value.key == "task mail"
    assert "'billing'" in text
    assert "'shop'" in text
    assert first.id in text
    await world.burst(billing)


async def workers(app: Fairlane) -> tuple[WorkerView, ...]:
    """List who is registered."""
    return await app.client.store.registry.workers(WorkersRequest(scope=Scope.all()))


@pytest.mark.parametrize(
    ("module", "with_note", "is_told"),
    [("jobs", False, False), ("jobs", True, True), ("other.jobs", False, True)],
)
async def test_what_may_be_one_application_is_warned_of_and_starts(
    world: World, caplog: pytest.LogCaptureFixture, module: str, with_note: bool, is_told: bool
) -> None:
    """Neither has a name of its own: another module, or other arguments, may be old and new code."""
    old, new = world.app(), world.app()
    declare(old, "jobs")
    declare(new, module, with_note=with_note)
    async with world.working(old), world.working(old):
        await world.burst(new)
    assert events(caplog).count("task_conflict") == is_told
