"""No attempt that goes wrong harms the others of its batch, whichever store its worker has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import Backoff, Cancel, Context, Fairlane, Job, Lane, ResultGone, Snooze, State
from fairlane.store.contract.claims import SettleRequest
from fairlane.worker import round_trip
from fairlane.worker.worker import WorkerRuntime
from tests.servers import schemas, valkey
from tests.stores import MEMORY

ODD = "nul \x00, half \udc80, long " + "x" * 100_000
LANES = [Lane("main", 2, ["default"])]
NEVER = Backoff.never()


class Unwritable(Exception):  # noqa: N818 (what a store might meet)
    """What no store raises on purpose."""


@pytest.fixture(params=["postgres", "redis", "sqlite"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Fairlane]:
    """An application on an empty store of each kind."""
    async with AsyncExitStack() as stack:
        if request.param == "postgres":
            url = schemas.url_of(await stack.enter_async_context(schemas.lent_schema()))
        elif request.param == "redis":
            url = valkey.url_of(await stack.enter_async_context(valkey.lent_prefix()))
        else:
            folder = stack.enter_context(TemporaryDirectory(dir=MEMORY))
            url = f"sqlite:///{Path(folder)}/fairlane.db"
        app = Fairlane(url, config={})
        stack.push_async_callback(app.aclose)
        yield app


async def _burst(app: Fairlane) -> None:
    await WorkerRuntime(app, burst=True, duties=False, lanes=LANES).run()


async def _states(jobs: list[Job[Any]]) -> list[State]:
    return [(await job.arefresh()).state for job in jobs]


async def test_whatever_a_handler_says_is_settled(app: Fairlane) -> None:
    """Errors, reasons, lines and results that no store could hold as they are."""

    @app.task(name="raises", retry=NEVER)
    async def raises(ctx: Context) -> None:
        ctx.log.warning("nul \x00")
        ctx.progress(0.5, ODD)
        raise ValueError(ODD)

    @app.task(name="cancels")
    async def cancels() -> None:
        raise Cancel(ODD)

    @app.task(name="snoozes")
    async def snoozes() -> None:
        raise Snooze(3600, ODD)

    @app.task(name="returns")
    async def returns() -> str:
        return ODD

    @app.task(name="good")
    async def good() -> int:
        return 7

    tasks = [raises, cancels, snoozes, returns, good]
    jobs = [await task.using(tenant="acme").aenqueue() for task in tasks for _ in range(2)]
    await _burst(app)
    expected = [State.DEAD, State.CANCELLED, State.DELAYED, State.SUCCEEDED, State.SUCCEEDED]
    assert await _states(jobs) == [state for state in expected for _ in range(2)]
    with pytest.raises(ResultGone, match="its result was dropped: result"):
        await jobs[6].aresult()
    assert await jobs[8].aresult() == 7


async def test_a_settlement_that_the_store_raises_on_fails_its_attempt_alone(
    app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its batch are settled as they should be, and the lane goes on claiming."""

    @app.task(name="bad", retry=NEVER)
    async def bad() -> str:
        return "bad"

    @app.task(name="good")
    async def good() -> str:
        return "good"

    jobs: list[Job[Any]] = []
    for _ in range(3):
        jobs += [await bad.using(tenant="acme").aenqueue(), await good.using(tenant="acme").aenqueue()]

    def request(**options: Any) -> SettleRequest:
        if any(one.result is not None and b"bad" in one.result for one in options["settlements"]):
            message = "cannot be written"
            raise Unwritable(message)
        return SettleRequest(**options)

    monkeypatch.setattr(round_trip, "SettleRequest", request)
    await _burst(app)
    assert await _states(jobs) == [State.DEAD, State.SUCCEEDED] * 3
    assert (await jobs[0].arefresh()).attempts[-1].message == "cannot be written"
