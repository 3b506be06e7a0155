"""Description E: 500 USD a month for tagging by AI, checked before each job (P10)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from fairlane import Context, Job, State, Task
from fairlane.model.instants import SECOND, to_instant
from fairlane.model.journal.entries import PendingEntry
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import PendingRequest
from tests.acceptance.presets import families
from tests.acceptance.working import burst
from tests.acceptance.world import World


async def tagging(world: World, spends: Decimal, entered: list[int]) -> Task[..., Any]:
    """Return a task under the budget of the description, whose jobs spend so much each."""
    app = (await world.open(families(world.url))).app

    async def tag(ctx: Context, number: int) -> None:
        entered.append(number)
        ctx.spend(spends)

    return app.task(name="tag", queue="bulk", budget="ai-tagging")(tag)


async def budget_events(world: World) -> list[PendingEntry]:
    """Return the events of budgets that wait for their number."""
    request = PendingRequest(scope=Scope.all(), journal="events", limit=100)
    entries = (await world.store.journal.pending(request)).entries
    return [one for one in entries if one.entry.kind.startswith("budget")]


async def run(world: World, task: Task[..., Any], *numbers: int) -> list[Job[Any]]:
    """Run a job for each number, one after the other, each by somebody else."""
    jobs = []
    for number in numbers:
        job = await task.using(tenant="acme", created_by=f"user-{number}").aenqueue(number)
        await burst(world.apps[-1])
        jobs.append(await job.arefresh())
    return jobs


async def test_004_bg_1_at_500_dollars_the_next_tagging_job_fails_at_once(world: World) -> None:
    """Dead after one attempt, class `budget`, with no retry to come; a dead letter as any other."""
    task = await tagging(world, Decimal(250), [])
    first, second, late = await run(world, task, 1, 2, 3)
    assert (first.state, second.state) == (State.SUCCEEDED, State.SUCCEEDED)
    assert (late.state, late.attempt, late.run_at) == (State.DEAD, 1, late.run_at)
    assert late.attempts[0].error_class == "budget"
    assert [letter.job.id for letter in (await world.apps[-1].dead.afind()).items] == [late.id]


async def test_004_bg_2_the_handler_is_not_entered(world: World) -> None:
    """It is checked before the execution, whichever worker claims the job."""
    entered: list[int] = []
    task = await tagging(world, Decimal(500), entered)
    await run(world, task, 1, 2, 3)
    assert entered == [1]


async def test_004_bg_3_an_event_at_400_dollars_once_a_month(world: World) -> None:
    """At 80 percent; the jobs after it tell nothing until all is spent."""
    task = await tagging(world, Decimal(100), [])
    await run(world, task, 1, 2, 3, 4)
    (told,) = await budget_events(world)
    body = msgspec.json.decode(told.entry.body)
    assert told.entry.kind == "budget_alert"
    assert (body["share"], body["spent"], body["currency"]) == (80, 400 * 10**6, "USD")
    await run(world, task, 5, 6, 7)
    assert [one.entry.kind for one in await budget_events(world)] == ["budget_alert", "budget_spent"]


async def test_004_bg_4_spend_is_known_by_type_and_by_user(world: World) -> None:
    """And by tenant, for the month."""
    task = await tagging(world, Decimal("0.02"), [])
    await run(world, task, 1, 2, 2)
    spend = await world.apps[-1].budgets.aspend("ai-tagging")
    assert dict(spend.by_task) == {"tag": Decimal("0.06")}
    assert dict(spend.by_creator) == {"user-2": Decimal("0.04"), "user-1": Decimal("0.02")}
    assert dict(spend.by_tenant) == {"acme": Decimal("0.06")}


async def test_004_bg_5_in_a_new_month_tagging_runs_again(world: World) -> None:
    """From the first instant of the month on, and with the whole ceiling."""
    entered: list[int] = []
    task = await tagging(world, Decimal(500), entered)
    await run(world, task, 1, 2)
    (account,) = (await world.apps[-1].budgets.aget("ai-tagging")).accounts
    assert account.period_end is not None
    world.clock.advance((to_instant(account.period_end) - world.clock.now()) / SECOND)
    await run(world, task, 3)
    assert entered == [1, 3]
