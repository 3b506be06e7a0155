"""Explain says why a job is not running: every reason, and which of two goes first (S23, S42-S46)."""

from __future__ import annotations

from itertools import combinations
from typing import Final, get_args
from uuid import UUID

import pytest

from fairlane.model.guards.breaker import Outcomes
from fairlane.model.instants import DAY, MINUTE, SECOND, Instant
from fairlane.model.lifecycle.states import Because, State
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind, TaskRules, TenantRules
from fairlane.model.retry.decision import AttemptResult, Snoozed, Unknown
from fairlane.model.scope import Scope
from fairlane.store.contract.breakers import BreakerOutcomes, ReportRequest
from fairlane.store.contract.jobs import ExplainRequest, Reason, Why
from fairlane.store.contract.registry import LIVE_WITHIN, LeaveRequest
from tests.contract.world import ALL, CANCELLED, SNOOZED, SUCCEEDED, World, failed, ruined

HOLDS: Final = [
    "paused queue",
    "paused tenant",
    "paused task",
    "rate of the queue",
    "running limit",
    "rate of the tenant",
    "breaker",
    "rate of the task",
    "gate",
    "rate of the gate",
    "budget",
    "no worker",
]
"""Everything that can hold a ready job, in the contract's order."""


async def hold(world: World, *holds: str) -> UUID:
    """Make a ready job that is held by exactly these: one start has used up the rates that there are."""
    if "no worker" not in holds:
        await world.register()

    def rate(name: str, limit: int) -> Rate | None:
        return Rate(limit, "minute") if name in holds else None

    queue, tenant = rate("rate of the queue", 1), rate("rate of the tenant", 2)
    task, gate = rate("rate of the task", 3), rate("rate of the gate", 4)
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(rate=queue))
    of_task = TaskRules(rate=task, gate="door", budget="purse", breaker="mail")
    await world.declare(SubjectKind.TASK, "noop", of_task)
    ceiling = 0 if "budget" in holds else 10
    await world.declare(SubjectKind.GATE, "door", GateRules(rate=gate))
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits={"default": Limits(rate=tenant)}))
    await world.enqueue()
    await world.run()
    rules = BudgetRules(ceiling, "USD", "day", on_spent="park")
    await world.declare(SubjectKind.BUDGET, "purse", rules)
    job = await world.enqueue()
    if "running limit" in holds:
        limits = Limits(rate=tenant, running=0)
        await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits={"default": limits}))
    if "breaker" in holds:
        outcomes = BreakerOutcomes("mail", Outcomes("acme", failed=5))
        await world.store.breakers.report(ReportRequest(scope=Scope.all(), reports=(outcomes,)))
    if "gate" in holds:
        await world.declare(SubjectKind.GATE, "door", GateRules(rate=gate, limit=0))
    for kind, name in (
        (SubjectKind.QUEUE, "default"),
        (SubjectKind.TENANT, "acme"),
        (SubjectKind.TASK, "noop"),
    ):
        if f"paused {kind.value}" in holds:
            await world.pause(kind, name, until=world.now + len(name) * SECOND)
    return job.id


def why(hold: str, now: Instant) -> Why:
    """Say what each hold of `hold` is explained as."""
    return {
        "paused queue": Why("paused", "queue default", now + 7 * SECOND, 0),
        "paused tenant": Why("paused", "tenant acme", now + 4 * SECOND, 0),
        "paused task": Why("paused", "task noop", now + 4 * SECOND, 0),
        "rate of the queue": Why("rate", "queue default", now + 60 * SECOND, 0),
        "running limit": Why("running_limit", "tenant acme", None, 0),
        "rate of the tenant": Why("rate", "tenant acme", now + 30 * SECOND, 0),
        "rate of the task": Why("rate", "task noop", now + 20 * SECOND, 0),
        "breaker": Why("breaker", "breaker mail", now + 60 * SECOND, 0),
        "gate": Why("gate", "gate door", None, 0),
        "rate of the gate": Why("rate", "gate door", now + 15 * SECOND, 0),
        "budget": Why("budget", "budget purse", now - now % DAY + DAY, 0),
        "no worker": Why("no_worker", "queue default", None, 0),
    }[hold]


@pytest.mark.parametrize("name", HOLDS)
async def test_each_thing_that_holds_a_ready_job_is_named(world: World, name: str) -> None:
    """S42, S43, S44, S45, S46: the reason, what it is about, and until when if time ends it."""
    id = await hold(world, name)
    assert await world.explain(id) == why(name, world.now)
    assert (await world.claim(1) == []) is (name != "no worker")


@pytest.mark.parametrize(("first", "second"), list(combinations(HOLDS, 2)))
async def test_of_two_holds_the_first_in_order_answers(world: World, first: str, second: str) -> None:
    """S42, S43, S44, S45, S46: every pair, in the order that the contract lists."""
    id = await hold(world, first, second)
    assert await world.explain(id) == why(first, world.now)


async def test_a_ready_job_that_nothing_holds_waits_for_its_turn(world: World) -> None:
    """S42: a live worker serves the queue, and nothing else stands in the way."""
    id = await hold(world)
    assert await world.explain(id) == Why("turn", "queue default", None, 0)


async def test_explaining_does_not_depend_on_a_claim_having_met_the_job(world: World) -> None:
    """S42: the reason is the same before and after the strand was parked, and asking changes nothing."""
    id = await hold(world, "gate")
    before = await world.sight()
    first = await world.explain(id)
    assert await world.sight() == before
    await world.claim(1)
    assert await world.explain(id) == first


async def test_a_hold_that_time_has_ended_is_not_named_any_more(world: World) -> None:
    """S44, S46: the pause lasts four seconds, the rate twenty; then only the order of tenants."""
    id = await hold(world, "paused task", "rate of the task")
    started_at = world.now
    world.advance(3.999_999)
    assert (await world.explain(id)).reason == "paused"
    world.advance(0.000_001)
    assert await world.explain(id) == Why("rate", "task noop", started_at + 20 * SECOND, 0)
    world.advance(16)
    await world.register()
    assert (await world.explain(id)).reason == "turn"


@pytest.mark.parametrize(
    ("silence", "reason"), [(0, "turn"), (LIVE_WITHIN, "turn"), (LIVE_WITHIN + 1, "no_worker")]
)
async def test_a_worker_counts_while_its_last_heartbeat_is_fresh(
    world: World, silence: int, reason: Reason
) -> None:
    """S42: fifteen seconds old is live, anything older is not."""
    job = await world.enqueue()
    await world.register()
    world.advance(silence / SECOND)
    assert (await world.explain(job.id)).reason == reason


async def test_only_a_worker_of_the_queue_counts(world: World) -> None:
    """S42: one that serves other queues, or that has left, is no help."""
    elsewhere, here = await world.enqueue(queue="other"), await world.enqueue()
    await world.register()
    assert (await world.explain(elsewhere.id)) == Why("no_worker", "queue other", None, 0)
    assert (await world.explain(here.id)).reason == "turn"
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w1"))
    assert (await world.explain(here.id)).reason == "no_worker"


@pytest.mark.parametrize(
    ("ending", "reason", "word", "seconds"),
    [
        (None, "time", "time", 60),
        (failed(), "retry", "retry", 1),
        (SNOOZED, "snooze", "snooze", 60),
        (Snoozed(5 * SECOND, "busy"), "snooze", "snooze", 5),
        (Snoozed(5 * SECOND, "mail is down", Because.BREAKER), "snooze", "breaker", 5),
        (Unknown(), "unknown_task", "unknown_task", 5),
        (Unknown(newest=1), "unknown_version", "unknown_version", 5),
    ],
)
@pytest.mark.parametrize("is_paused", [False, True])
async def test_a_delayed_job_says_what_it_waits_for(
    world: World, ending: AttemptResult | None, reason: Reason, word: str, seconds: int, is_paused: bool
) -> None:
    """S23: its because and its time come before anything that would hold it once it is ready."""
    id = (await world.enqueue(delay=MINUTE if ending is None else 0)).id
    if ending is not None:
        await world.settle(await world.claim_one(), ending)
    if is_paused:
        await world.pause(SubjectKind.QUEUE, "default")
    because = str((await world.get(id)).because)
    assert because.partition(":")[0] == word
    assert await world.explain(id) == Why(reason, because, world.now + seconds * SECOND)


@pytest.mark.parametrize("is_paused", [False, True])
async def test_a_running_job_names_its_worker(world: World, is_paused: bool) -> None:
    """S23, S46: it runs, whatever is paused by now; also when it was asked to stop."""
    claim = await world.bring_to(State.RUNNING)
    if is_paused:
        await world.pause(SubjectKind.TENANT, "acme")
    await world.cancel(claim.job.id)
    assert await world.explain(claim.job.id) == Why("running", "worker w1")


@pytest.mark.parametrize(
    ("ending", "word"), [(ruined(), "failed"), (CANCELLED, "chosen"), (SUCCEEDED, "succeeded")]
)
async def test_a_finished_job_says_how_it_ended(world: World, ending: AttemptResult, word: str) -> None:
    """S23: its because, or that it succeeded; pauses do not matter any more."""
    await world.enqueue()
    job = await world.run(ending)
    await world.pause(SubjectKind.QUEUE, "default")
    subject = job.because or "succeeded"
    assert subject.partition(":")[0] == word
    assert await world.explain(job.id) == Why("finished", subject)


async def test_ahead_counts_the_ready_jobs_of_the_same_tenant_and_queue(world: World) -> None:
    """S20: over all its tasks, by sort key and then id; others' jobs, queues and later ones do not count."""
    await world.enqueue_many(2)
    await world.enqueue(task="other")
    job = await world.enqueue()
    await world.enqueue(task="other")
    await world.enqueue("globex", priority=9)
    await world.enqueue(queue="elsewhere", priority=9)
    await world.enqueue(delay=SECOND, priority=9)
    assert (await world.explain(job.id)).ahead == 3
    await world.enqueue(priority=1)
    assert (await world.explain(job.id)).ahead == 4
    await world.edit(job.id, priority=2)
    assert (await world.explain(job.id)).ahead == 0


async def test_an_unknown_id_is_not_explained(world: World) -> None:
    """S9: nor is another tenant's."""
    job = await world.enqueue()
    store = world.store.jobs
    assert await store.explain(ExplainRequest(scope=ALL, id=world.new().id)) is None
    assert await store.explain(ExplainRequest(scope=Scope("globex"), id=job.id)) is None


async def test_every_reason_of_the_contract_is_explained_here(world: World) -> None:
    """S23: the tables above leave no reason out."""
    ready = {why(name, 0).reason for name in HOLDS}
    others = {"turn", "time", "retry", "snooze", "unknown_task", "unknown_version", "running", "finished"}
    assert {*ready, *others} == set(get_args(Reason))
