"""A producer without the handler sees its job through: typed arguments, progress, logs; on every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import Context, Fairlane, Progress, State
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import TasksRequest
from fairlane.worker.worker import WorkerRuntime
from tests.servers import schemas, valkey
from tests.stores import MEMORY
from tests.worker.world import QUICK, until_async


class Colour(Enum):
    """What only the worker has."""

    RED = "r"


@asynccontextmanager
async def place(store: str) -> AsyncIterator[str]:
    """Lend the URL of an empty store."""
    if store == "postgres":
        async with schemas.lent_schema() as schema:
            yield schemas.url_of(schema)
    elif store == "redis":
        async with valkey.lent_prefix() as prefix:
            yield valkey.url_of(prefix)
    else:
        with TemporaryDirectory(dir=MEMORY) as folder:
            yield f"sqlite:///{folder}/fairlane.db"


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
async def test_a_producer_without_the_handler_sees_its_job_through(store: str) -> None:
    """S5, S62, S73: text arrives as what the hints name; progress, metadata, then the log."""
    got: list[Any] = []
    release = asyncio.Event()

    async def bill(ctx: Context, when: datetime, prices: dict[str, Decimal], colour: Colour) -> None:
        got.extend([when, prices, colour])
        ctx.progress(0.5, "half way")
        ctx.metadata["step"] = {"of": 3}
        ctx.log.info("counting")
        await release.wait()

    async with (
        place(store) as url,
        Fairlane(url, config={}) as app,
        Fairlane(url, config={}) as stranger,
        asyncio.TaskGroup() as tasks,
    ):
        app.task(name="bill")(bill)
        worker = WorkerRuntime(app, settings=QUICK)
        tasks.create_task(worker.run())

        async def is_published() -> bool:
            known = await stranger.client.store.registry.tasks(TasksRequest(scope=Scope.all()))
            return "bill" in [one.record.name for one in known]

        await until_async(is_published, wanted=True)
        given = {"when": "2026-07-01T10:00:00Z", "prices": {"a": "1.20"}, "colour": "RED"}
        job = await stranger.aenqueue_by_name("bill", given, tenant="acme")

        async def is_half_way() -> bool:
            seen = await job.arefresh()
            return (seen.progress, dict(seen.metadata)) == (Progress(0.5, "half way"), {"step": {"of": 3}})

        await until_async(is_half_way, wanted=True)
        release.set()
        await job.aresult(30)
        worker.stop()
        job = await job.arefresh()
        assert [one.id for one in await stranger.jobs.afind(metadata={"step.of": 3})] == [job.id]
        assert [one async for one in stranger.jobs.aeach(metadata={"step.of": 4})] == []
    when, prices = datetime(2026, 7, 1, 10, tzinfo=UTC), {"a": Decimal("1.20")}
    assert got == [when, prices, Colour.RED]
    assert job.arguments == {"when": when, "prices": prices, "colour": "Colour.RED"}
    assert (job.state, job.progress) == (State.SUCCEEDED, None)
    assert [line.partition(" ")[2] for line in job.logs[1]] == ["INFO counting"]
