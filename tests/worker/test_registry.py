"""A worker in the registry: its record, states and counts; and how little an idle worker asks."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from fairlane import Fairlane, Lane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.scope import Scope
from fairlane.runtime.memory import is_memory_known
from fairlane.store.contract.registry import TasksRequest, WorkersRequest
from tests.worker.world import World, until


async def test_a_worker_introduces_itself_and_its_tasks(world: World) -> None:
    """Application, pid, queues, slots; tasks with their queue, version and aliases."""
    app = world.app(name="shop", lanes=[Lane("a", 2, ["default"]), Lane("b", 3, ["mail", "default"])])

    @app.task(name="send", queue="mail", version=2, aliases=["mail.send"])
    async def send() -> None: ...

    async with world.working(app) as worker:
        (view,) = await app.client.store.registry.workers(WorkersRequest(scope=Scope.all()))
        (task,) = await app.client.store.registry.tasks(TasksRequest(scope=Scope.all(), names=("mail.send",)))
    record = view.record
    assert (record.id, record.pid, record.queues, record.slots) == (
        worker.id,
        os.getpid(),
        ("default", "mail"),
        5,
    )
    assert record.labels == ("app=shop",)
    assert (task.record.name, task.record.queue, task.record.version) == ("send", "mail", 2)


async def test_heartbeats_say_what_the_worker_does(world: World, app: Fairlane) -> None:
    """S122: idle, busy with how many, draining; how many attempts it has settled; and what it uses."""
    release = asyncio.Event()

    @app.task(name="slow", max_attempts=1)
    async def slow(*, is_bad: bool) -> None:
        await release.wait()
        if is_bad:
            raise ValueError

    async with world.working(app):
        await until(lambda: any(one.state == "idle" for one in world.requests("heartbeat")))
        jobs = [await slow.using(tenant="acme").aenqueue(is_bad=is_bad) for is_bad in (True, False, False)]
        busy = ("busy", 3)
        await until(lambda: busy in [(one.state, one.running) for one in world.requests("heartbeat")])
        release.set()
        for job in jobs:
            await world.ended(job)
        done = ("idle", 3, 1)
        await until(
            lambda: done in [(one.state, one.settled, one.failed) for one in world.requests("heartbeat")]
        )
        last = world.requests("heartbeat")[-1]
        assert (last.memory is not None) is is_memory_known()
        assert last.memory is None or last.memory > 1_000_000
        assert last.cpu >= 0


@pytest.mark.parametrize(("duties", "most"), [(True, 2.0), (False, 1.0)])
async def test_an_idle_worker_asks_its_store_at_most_twice_a_second(
    world: World, app: Fairlane, *, duties: bool, most: float
) -> None:
    """With the default settings, after its start; waiting for a hint is not counted."""
    async with world.working(app, settings=WorkerSettings(), duties=duties):
        await until(lambda: bool(world.requests("reclaim" if duties else "heartbeat")))
        before, at, beats = len(world.asked), time.monotonic(), len(world.requests("heartbeat"))
        await until(lambda: len(world.requests("heartbeat")) == beats + 2)
        asked = [verb for verb, *_ in world.asked[before:] if verb != "wait"]
        assert len(asked) <= most * (time.monotonic() - at) + 2, asked
