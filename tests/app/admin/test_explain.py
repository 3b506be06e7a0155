"""`app.jobs.explain`: every reason, with its subject, its end, the jobs ahead, and advice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, get_args

import pytest

from fairlane import Breaker, Budget, ErrorClass, Fairlane, Gate, Job, Limits, Rate, Waiting
from fairlane.app.task.rules import declared_rules
from fairlane.model.failure import Failure
from fairlane.model.instants import SECOND, to_datetime
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.retry.decision import Failed, Snoozed, Succeeded, Unknown
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import Reason
from fairlane.store.contract.policies import HoldRequest, PutRequest
from fairlane.store.contract.registry import RegisterRequest, WorkerRecord
from tests.app.world import WORKER, World, note


class Scene:
    """An application, a worker, and a job of tenant acme behind another one."""

    def __init__(self, world: World) -> None:
        """Make the application; nothing is stored yet."""
        self.world = world
        self.app: Fairlane = world.app(
            config={},
            gates=[Gate("door", 1)],
            breakers=[Breaker("mail")],
            budgets=[Budget("ai", 10, "USD", per="day", on_spent="park")],
        )
        declare = self.app.task(name="note", gate="door", breaker="mail", budget="ai")
        self.task = declare(note).using(tenant="acme")

    async def begin(self, *, has_worker: bool = True) -> None:
        """Write down what a worker does at its start."""
        rules = PutRequest(scope=Scope.all(), rules=declared_rules(self.app))
        await self.world.oracle.policies.put(rules)
        record = WorkerRecord(id=WORKER, host="h", pid=1, version="1", queues=("default",), slots=1)
        if has_worker:
            request = RegisterRequest(scope=Scope.all(), record=record, renew_every=4 * SECOND)
            await self.world.oracle.registry.register(request)

    async def run(self, ending: Any) -> None:
        """Run the next job to this end."""
        await self.world.settle(await self.world.claim(), ending)

    def after(self, seconds: float) -> datetime:
        """Return that instant."""
        return to_datetime(self.world.clock.now() + round(seconds * SECOND))


Act = Callable[[Scene], Awaitable[None]]


async def paused_queue(scene: Scene) -> None:
    """Pause the queue for a while."""
    await scene.app.queues.apause("default", reason="deploy", until=scene.after(60), who="ops")


async def paused_tenant(scene: Scene) -> None:
    """Pause the tenant without end."""
    await scene.app.tenants.apause("acme", reason="they asked", who="lea")


async def paused_task(scene: Scene) -> None:
    """Pause the task, which has no namespace of its own yet."""
    subject = Subject(SubjectKind.TASK, "note")
    request = HoldRequest(scope=Scope.all(), subject=subject, who="ops", reason="broken")
    await scene.world.oracle.policies.pause(request)


async def limited(scene: Scene) -> None:
    """Let the tenant run nothing."""
    await scene.app.tenants.aset("acme", limits=Limits(running=0))


async def rated(scene: Scene) -> None:
    """Use up the queue's rate."""
    await scene.app.queues.aset("default", rate=Rate(1, "minute"))
    await scene.task.using(priority=100).aenqueue("first")
    await scene.run(Succeeded())


async def gated(scene: Scene) -> None:
    """Fill the gate."""
    await scene.task.using(priority=100).aenqueue("first")
    await scene.world.claim()


async def broken(scene: Scene) -> None:
    """Open the breaker."""
    await scene.app.breakers.aopen("mail", reason="it is down")


async def spent(scene: Scene) -> None:
    """Leave the budget no room."""
    await scene.app.budgets.aset("ai", ceiling=0)


async def nothing(scene: Scene) -> None:
    """Leave it as it is."""


READY: list[tuple[str, Act, Reason, str, float | None]] = [
    ("queue", paused_queue, "paused", "queue default paused by ops: deploy", 60),
    ("tenant", paused_tenant, "paused", "tenant acme paused by lea: they asked", None),
    ("task", paused_task, "paused", "task note paused by ops: broken", None),
    ("running", limited, "running_limit", "tenant acme", None),
    ("rate", rated, "rate", "queue default", 60),
    ("gate", gated, "gate", "gate door", None),
    ("breaker", broken, "breaker", "breaker mail", None),
    ("budget", spent, "budget", "budget ai", 16 * 3600),
    ("turn", nothing, "turn", "queue default", None),
]


@pytest.mark.parametrize(
    ("act", "reason", "subject", "until"), [one[1:] for one in READY], ids=[one[0] for one in READY]
)
async def test_a_ready_job_says_what_holds_it(
    world: World, act: Act, reason: Reason, subject: str, until: float | None
) -> None:
    """What it is, until when if time ends it, and how many of its tenant go first."""
    scene = Scene(world)
    await scene.begin()
    await scene.task.using(priority=50).aenqueue("ahead")
    job = await scene.task.aenqueue("x")
    await act(scene)
    why = await scene.app.jobs.aexplain(job.id)
    end = None if until is None else scene.after(until)
    assert why == Waiting(reason, subject, end, 1, why.advice)
    assert len(why.advice) > 20


async def test_a_pause_is_told_to_a_tenant_that_may_see_the_job(world: World) -> None:
    """Also where the queue, which is not its own, is what is paused."""
    scene = Scene(world)
    await scene.begin()
    job = await scene.task.aenqueue("x")
    await paused_queue(scene)
    with scene.app.tenant("acme"):
        assert (await scene.app.jobs.aexplain(job.id)).subject == "queue default paused by ops: deploy"


async def test_a_queue_without_a_worker_says_so(world: World) -> None:
    """The commonest reason of all on the first day."""
    scene = Scene(world)
    await scene.begin(has_worker=False)
    job = await scene.task.aenqueue("x")
    why = await scene.app.jobs.aexplain(job.id)
    assert (why.reason, why.subject, why.until, why.ahead) == ("no_worker", "queue default", None, 0)
    assert "Start one" in why.advice


FAILURE = Failure(ErrorClass.TRANSIENT, "OSError", "no line", "trace")


@pytest.mark.parametrize(
    ("options", "ending", "reason", "seconds"),
    [
        ({"delay": 60}, None, "time", 60),
        ({}, Failed(FAILURE, 30 * SECOND), "retry", 30),
        ({}, Snoozed(90 * SECOND), "snooze", 90),
        ({}, Unknown(), "unknown_task", 5),
        ({}, Unknown(newest=1), "unknown_version", 5),
    ],
)
async def test_a_delayed_job_says_until_when(
    world: World, options: dict[str, Any], ending: Any, reason: Reason, seconds: float
) -> None:
    """And how to skip the wait."""
    scene = Scene(world)
    await scene.begin()
    job: Job[None] = await scene.task.using(**options).aenqueue("x")
    if ending is not None:
        await scene.run(ending)
    why = await scene.app.jobs.aexplain(job.id)
    assert (why.reason, why.until, why.ahead) == (reason, scene.after(seconds), None)
    assert why.subject
    assert "run_now" in why.advice


async def test_a_job_that_runs_or_has_ended_says_that(world: World) -> None:
    """Where it runs, and how it ended."""
    scene = Scene(world)
    await scene.begin()
    job = await scene.task.aenqueue("x")
    claim = await world.claim()
    why = await scene.app.jobs.aexplain(job.id)
    assert (why.reason, why.subject) == ("running", f"worker {WORKER}")
    await world.settle(claim, Succeeded())
    why = await scene.app.jobs.aexplain(job.id)
    assert (why.reason, why.subject, why.until, why.ahead) == ("finished", "succeeded", None, None)


def test_no_reason_is_left_out_here() -> None:
    """A new one needs a case, and advice."""
    delayed = {"time", "retry", "snooze", "unknown_task", "unknown_version"}
    seen = {one[2] for one in READY} | delayed | {"no_worker", "running", "finished"}
    assert seen == set(get_args(Reason))
