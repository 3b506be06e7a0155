"""Handlers spend, and do not start once their budget is spent (S59, S113)."""

from __future__ import annotations

import asyncio
import logging
from decimal import Decimal
from typing import Any

import pytest

from fairlane import Budget, ConfigError, Context, Fairlane, State
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ReclaimRequest
from tests.worker.world import LONG, World, until, until_async

AI = Budget("ai", "1.00", "USD", estimate="0.25")


async def spent(app: Fairlane) -> Decimal:
    """Return what is spent of the budget."""
    return (await app.budgets.aget("ai")).spent


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_a_handler_spends_is_counted_with_its_end(world: World, *, is_async: bool) -> None:
    """S113: the sum of its calls, however the attempt ends, and no call of its own."""
    app = world.app(budgets=[AI])

    def work(ctx: Context, ends: str) -> None:
        ctx.spend(Decimal("0.01"))
        ctx.spend(0.02, "USD")
        if ends == "raises":
            message = "after it was paid"
            raise ValueError(message)

    async def awork(ctx: Context, ends: str) -> None:
        work(ctx, ends)

    task = app.task(name="tag", budget="ai", max_attempts=1)(awork if is_async else work)
    await task.using(tenant="acme").aenqueue("well")
    await task.using(tenant="acme").aenqueue("raises")
    await world.burst(app)
    assert await spent(app) == Decimal("0.06")
    sent = [one.spent for request in world.requests("settle") for one in request.settlements]
    assert sent == [30_000, 30_000]


async def test_what_a_running_handler_spends_is_counted_with_the_next_renewal(world: World) -> None:
    """S113: nobody waits for the end of a long job."""
    app = world.app(budgets=[AI])
    go = asyncio.Event()

    @app.task(name="tag", budget="ai")
    async def tag(ctx: Context) -> None:
        ctx.spend("0.40")
        await go.wait()
        ctx.spend("0.05")

    await tag.using(tenant="acme").aenqueue()
    async with world.working(app):
        await until_async(lambda: spent(app), Decimal("0.40"))
        go.set()
        await until_async(lambda: spent(app), Decimal("0.45"))


async def test_a_spent_budget_makes_jobs_dead_without_entering_their_handler(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """S59: class `budget`, no retry; a plain handler and an async one."""
    caplog.set_level(logging.ERROR, "fairlane")
    app = world.app(budgets=[Budget("ai", "1.00", "USD", estimate="0.50")])
    entered: list[int] = []

    def work(ctx: Context, number: int) -> None:
        entered.append(number)
        ctx.spend(1)

    async def awork(ctx: Context, number: int) -> None:
        work(ctx, number)

    tasks = [app.task(name=name, budget="ai")(fn) for name, fn in (("plain", work), ("async", awork))]
    first = await tasks[0].using(tenant="acme").aenqueue(0)
    await world.burst(app)
    late = [await task.using(tenant="acme").aenqueue(1) for task in tasks]
    await world.burst(app)
    assert entered == [0]
    assert (await first.arefresh()).state is State.SUCCEEDED
    for job in late:
        dead = await job.arefresh()
        assert (dead.state, dead.attempt) == (State.DEAD, 1)
        assert dead.attempts[0].error_class == "budget"
    assert "is spent until its period ends" in caplog.text


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (-1, None, "negative"),
        (float("nan"), None, "finite"),
        (0.1 + 0.2, None, "more than 6 decimals"),
        ("much", None, "no amount"),
        (1, "EUR", "'EUR' is not the currency of budget ai, USD"),
    ],
    ids=str,
)
async def test_a_bad_amount_is_one_clear_error_and_counts_nothing(
    world: World, amount: Any, currency: str | None, text: str
) -> None:
    """S113: what was spent before it stays counted."""
    app = world.app(budgets=[AI])
    raised: list[str] = []

    @app.task(name="tag", budget="ai")
    async def tag(ctx: Context) -> None:
        ctx.spend("0.10")
        try:
            ctx.spend(amount, currency)
        except ValueError as error:
            raised.append(str(error))

    await tag.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert text in raised[0]
    assert await spent(app) == Decimal("0.10")


async def test_a_task_without_a_budget_cannot_spend(world: World) -> None:
    """S113: the error says what to do."""
    app = world.app(budgets=[AI])
    raised: list[str] = []

    @app.task(name="plain")
    async def plain(ctx: Context) -> None:
        try:
            ctx.spend(1)
        except ConfigError as error:
            raised.append(str(error))

    await plain.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert raised == ["task plain has no budget: declare it with budget=, or in [tasks]"]


async def test_what_a_lost_attempt_spends_is_counted_and_it_hears_that_it_is_lost(world: World) -> None:
    """S113: its stale settlement tells of it, beside what the next attempt spends."""
    app = world.app(budgets=[Budget("ai", 10, "USD", estimate="0.25")])
    began: list[int] = []
    raised: list[str] = []

    @app.task(name="slow", budget="ai")
    async def slow(ctx: Context) -> None:
        began.append(ctx.attempt)
        if ctx.attempt == 1:
            try:
                await asyncio.Event().wait()
            finally:
                try:
                    ctx.spend(3)
                except Exception as error:  # the public class is asserted by its name  # noqa: BLE001
                    raised.append(type(error).__name__)
        ctx.spend(1)

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, duties=False, settings=LONG) as worker:
        await until(lambda: began == [1])
        world.ahead = 200_000 * SECOND
        reply = await app.client.store.claims.reclaim(ReclaimRequest(scope=Scope.all()))
        assert [lost.id for lost in reply.lost] == [job.id]
        await world.ended(job)
        await until(lambda: worker.running == 0)
        await until_async(lambda: spent(app), Decimal("4.00"))
    assert raised == ["ClaimLost"]


async def test_an_undeclared_budget_is_refused_when_a_worker_starts(world: World) -> None:
    """S59: it would bound nothing."""
    app = world.app(budgets=[AI])

    @app.task(name="tag", budget="aii")
    async def tag() -> None: ...

    with pytest.raises(ConfigError, match=r"budget aii is not declared.*did you mean 'ai'"):
        await world.burst(app)


async def test_two_tasks_cannot_declare_one_budget_differently(world: World) -> None:
    """S59: nobody could say which holds."""
    app = world.app()
    app.task(name="one", budget=Budget("ai", 1, "USD"))(lambda: None)
    app.task(name="two", budget=Budget("ai", 2, "USD"))(lambda: None)
    with pytest.raises(ConfigError, match="declared twice"):
        await world.burst(app)


async def test_a_budget_of_a_decorator_is_declared_by_it(world: World) -> None:
    """S59: as a gate is; the file's values would win."""
    app = world.app()

    @app.task(name="tag", budget=AI)
    async def tag(ctx: Context) -> None:
        ctx.spend("0.5")

    await tag.using(tenant="acme").aenqueue()
    await world.burst(app)
    assert await spent(app) == Decimal("0.50")
