"""Description E at work: the slots of each family, and screenshots behind their gate."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import State, Task
from tests.acceptance.presets import E_SLOTS, families
from tests.acceptance.working import Stage, at_work, until
from tests.acceptance.world import World


async def staged(world: World, stage: Stage, gate: int) -> dict[str, Task[..., Any]]:
    """Return the families of description E with a task of each on the stage."""
    app = (await world.open(families(world.url, gate=gate))).app
    return {
        name: app.task(
            name=f"staged-{name}", queue=name, gate="screenshots" if name == "screenshot" else None
        )(stage.handler(name))
        for name in E_SLOTS
    }


async def test_004_qf_1_each_family_has_its_slots(world: World, stage: Stage) -> None:
    """Twenty, ten, three, five and eight at once, and never more."""
    tasks = await staged(world, stage, gate=100)
    for task in tasks.values():
        await world.fill(task, 25)
    async with at_work(world.apps[-1]):
        await until(lambda: stage.present.total() == sum(E_SLOTS.values()))
        for name in E_SLOTS:
            stage.let_go(name)
        await until(lambda: len(stage.ended) == 125)
    assert stage.most == E_SLOTS


@pytest.mark.parametrize("gate", [2, 100])
async def test_004_cc_1_no_more_than_three_screenshots_run_at_once(
    world: World, stage: Stage, gate: int
) -> None:
    """The lane bounds each worker; the gate, where it is narrower, all of them together."""
    tasks = await staged(world, stage, gate)
    await world.fill(tasks["screenshot"], 12)
    async with at_work(world.apps[-1]):
        await until(lambda: stage.present["screenshot"] == min(3, gate))
        assert (await world.apps[-1].jobs.acount())[State.RUNNING] == min(3, gate)
        stage.let_go("screenshot")
        await until(lambda: stage.count("screenshot") == 12)
    assert stage.most["screenshot"] == min(3, gate)
