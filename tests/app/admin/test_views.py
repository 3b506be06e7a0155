"""`app.queues.stats`, `app.gates`, `app.tasks`, `app.workers`, and drains of tenants and tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane import Fairlane, Gate, Queue, Rate, Task, TenantMismatch, WorkerLane
from fairlane.app.task.record import task_record_of
from fairlane.app.task.rules import declared_rules
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import LaneRecord, RegisterRequest, WorkerRecord
from tests.app.world import World, note

ALL = Scope.all()


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application with a gate and two queues, written to the store as a worker does."""
    made = world.app(queues=[Queue("bulk"), Queue("mail")], gates=[Gate("door", 2)])
    made.task(name="note", queue="bulk", gate="door")(note)
    asyncio.run(world.oracle.policies.put(PutRequest(scope=ALL, rules=declared_rules(made))))
    return made


@pytest.fixture
def task(app: Fairlane) -> Task[..., None]:
    """A plain task, for tenant acme."""
    return app.task(name="plain", queue="mail")(note).using(tenant="acme")


async def register(world: World, app: Fairlane, **values: Any) -> None:
    """Let a worker introduce itself."""
    record = WorkerRecord(
        id="w1",
        host="box",
        pid=7,
        version="1",
        queues=("bulk", "mail"),
        slots=3,
        tasks=tuple(task_record_of(task, app.settings) for task in app.client.registry),
        lanes=(LaneRecord("fast", 1, ("mail",)), LaneRecord("slow", 2, ("bulk",))),
        **values,
    )
    await world.oracle.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND))


# ── stats ────────────────────────────────────────────────────────────────────


async def test_stats_tell_states_retries_and_the_oldest(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S51: ready, running, delayed, retrying, dead, and how long the oldest has waited, in one call."""
    await task.aenqueue("dies")
    await world.fail(queue="mail")
    await task.aenqueue("is tried again")
    await world.fail(kind=ErrorClass.RETRYABLE, queue="mail")
    await task.using(delay=3600).aenqueue("later")
    oldest = await task.aenqueue("runs")
    waiting = await task.aenqueue("waits")
    await world.claim("mail")
    world.clock.advance(90)
    await task.aenqueue("waits, too")
    stats = await app.queues.astats("mail")
    numbers = (stats.ready, stats.running, stats.delayed, stats.retrying, stats.dead)
    assert numbers == (2, 1, 2, 1, 1)
    assert (stats.because, stats.is_complete) == ({"retry": 1, "time": 1}, True)
    assert (stats.oldest_at, stats.oldest_minutes) == (waiting.enqueued_at, 1.5)
    assert oldest.id != waiting.id
    assert stats.looked_at > 0


async def test_stats_of_all_queues_are_by_name_also_of_empty_ones(
    app: Fairlane, task: Task[..., None]
) -> None:
    """Declared ones are there, and what nobody waits in has no oldest."""
    await task.aenqueue("x")
    stats = await app.queues.astats()
    assert {name: one.ready for name, one in stats.items()} == {"bulk": 0, "default": 0, "mail": 1}
    assert (stats["bulk"].oldest_at, stats["bulk"].oldest_minutes) == (None, None)
    assert (await app.queues.astats("unknown")).ready == 0
    assert (await app.queues.astats())["mail"].ready == 1


async def test_stats_say_when_they_did_not_look_at_everything(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """S51: numbers by state stay exact; what comes next to be claimed stands for the oldest."""
    for _ in range(3):
        await task.aenqueue("x")
        await world.succeed(queue="mail")
    for _ in range(3):
        await task.using(delay=60).aenqueue("x")
    ready = await task.aenqueue("x")
    stats = await app.queues.astats("mail", most=2)
    assert (stats.ready, stats.delayed, stats.is_complete) == (1, 3, False)
    assert stats.oldest_at == ready.enqueued_at


# ── gates ────────────────────────────────────────────────────────────────────


async def test_a_gate_shows_its_free_places(world: World, app: Fairlane) -> None:
    """S43: places, those that are held, and those that are free."""
    for _ in range(3):
        await app.aenqueue_by_name("note", {"text": "x"}, tenant="acme")
    claim = await world.claim("bulk")
    gate = await app.gates.aget("door")
    assert (gate.limit, gate.used, gate.free, gate.override) == (2, 1, 1, None)
    assert claim.job.task == "note"
    assert [(one.name, one.free) for one in await app.gates.alist()] == [("door", 1)]
    assert (await app.gates.aget("other")).free is None


async def test_a_gates_limit_is_changed_at_run_time(world: World, app: Fairlane) -> None:
    """S54: it lies above what is declared, value by value, and ends by a reset."""
    await app.aenqueue_by_name("note", {"text": "x"}, tenant="acme")
    await world.claim("bulk")
    gate = await app.gates.aset("door", limit=0, note="the door is broken", who="ann")
    assert (gate.limit, gate.used, gate.free) == (0, 1, 0)
    assert gate.override is not None
    assert (gate.override.who, gate.override.note, gate.declared) == (
        "ann",
        "the door is broken",
        {"limit": 2, "rate": None},
    )
    gate = await app.gates.aset("door", rate=Rate(5))
    assert (gate.limit, gate.rate) == (0, Rate(5))
    assert (await app.gates.areset("door")).limit == 2
    assert (await app.gates.aset("door", limit=7)).limit == 7
    assert (await app.gates.areset("door")).limit == 2
    assert [one.name for one in (await app.gates.alist())] == ["door"]


# ── tasks ────────────────────────────────────────────────────────────────────


async def test_published_tasks_are_listed_with_what_holds_for_them(world: World, app: Fairlane) -> None:
    """S33, S54: from their workers' records and the store's policies."""
    await register(world, app)
    (task,) = await app.tasks.alist()
    assert (task.name, task.queue, task.gate, task.version) == ("note", "bulk", "door", 1)
    assert task.seen_at is not None
    assert task.timeout == 1800
    assert (await app.tasks.aset("note", rate=Rate(9), who="ann")).rate == Rate(9)
    assert (await app.tasks.areset("note")).rate is None
    assert (await app.tasks.aget("nobody")).seen_at is None
    assert (await app.tasks.aset("note", rate=Rate(3))).rate == Rate(3)
    assert (await app.tasks.areset("note")).override is None


def test_a_task_is_paused_and_closed_from_python(world: World, app: Fairlane) -> None:
    """S46: by its name, with a reason."""
    app.tasks.pause("note", reason="broken", who="ann")
    app.tasks.close("note", reason="gone")
    task = app.tasks.get("note")
    assert task.paused is not None
    assert (task.paused.who, task.paused.reason) == ("ann", "broken")
    assert task.closed is not None
    app.tasks.resume("note")
    app.tasks.reopen("note")
    assert [one.name for one in app.tasks.list()] == ["note"]
    assert (app.tasks.get("note").paused, app.tasks.get("note").closed) == (None, None)
    app.tasks.pause("shop.Mail:send", reason="a task's name may hold more than a queue's")


# ── workers ──────────────────────────────────────────────────────────────────


async def test_workers_are_listed_with_lanes_and_the_last_heartbeat(world: World, app: Fairlane) -> None:
    """Who is there, what it serves; and who was not heard of."""
    await register(world, app)
    (worker,) = await app.workers.alist()
    assert (worker.id, worker.host, worker.pid, worker.slots, worker.held) == ("w1", "box", 7, 3, 0)
    assert worker.lanes == (
        WorkerLane(name="fast", slots=1, queues=("mail",)),
        WorkerLane(name="slow", slots=2, queues=("bulk",)),
    )
    assert (worker.is_live, worker.tasks) == (True, ("note",))
    world.clock.advance(16)
    assert [(one.state, one.is_live) for one in (await app.workers.alist())] == [("silent", False)]
    assert (await app.workers.alist(live=True)) == ()


# ── drains ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("space", ["tenants", "tasks"])
async def test_a_tenant_or_a_task_is_drained_like_a_queue(
    world: World, app: Fairlane, task: Task[..., None], space: str
) -> None:
    """S46: paused, then waited for until nothing of it runs; the pause stays."""
    name = {"tenants": "acme", "tasks": "plain"}[space]
    clock = world.drive(app)
    await task.aenqueue("runs")
    await task.aenqueue("waits")
    await task.using(tenant="globex").aenqueue("another tenant's")
    claim = await world.claim("mail")
    clock.meanwhile.append(lambda: world.settle(claim, Succeeded(None)))
    spaces = {"tenants": app.tenants, "tasks": app.tasks}
    assert await spaces[space].adrain(name, reason="deploy")
    assert len(clock.waits) == 1
    held = (
        (await app.tenants.aget("acme")).paused if space == "tenants" else (await app.tasks.aget(name)).paused
    )
    assert held is not None


@pytest.mark.parametrize("space", ["tenants", "tasks"])
async def test_a_drain_by_close_waits_for_what_is_ready_and_gives_up_in_time(
    world: World, app: Fairlane, task: Task[..., None], space: str
) -> None:
    """S46: nothing new is taken in; what is ready counts as left, what is delayed does not."""
    name = {"tenants": "acme", "tasks": "plain"}[space]
    world.drive(app)
    await task.using(delay=3600).aenqueue("later")
    await task.aenqueue("ready")
    spaces = {"tenants": app.tenants, "tasks": app.tasks}
    assert not await spaces[space].adrain(name, reason="move", by="close", timeout=1)
    await world.succeed(queue="mail")
    assert await spaces[space].adrain(name, reason="move", by="close", timeout=1)
    with pytest.raises(ValueError, match="use pause or close"):
        await spaces[space].adrain(name, reason="x", by="axe")  # type: ignore[arg-type]


# ── walls ────────────────────────────────────────────────────────────────────


def test_what_belongs_to_all_is_refused_inside_a_tenant(world: World, app: Fairlane) -> None:
    """S9: queues, tasks, gates and workers; the store is not asked. `as_system` may."""
    calls = (
        app.queues.stats,
        lambda: app.queues.stats("mail"),
        app.tasks.list,
        lambda: app.tasks.get("note"),
        lambda: app.tasks.pause("note", reason="x"),
        lambda: app.tasks.drain("note", reason="x"),
        lambda: app.tasks.set("note", rate=None),
        app.gates.list,
        lambda: app.gates.get("door"),
        lambda: app.gates.set("door", limit=9),
        lambda: app.gates.reset("door"),
        app.workers.list,
        lambda: app.tenants.drain("globex", reason="x"),
    )
    world.asked.clear()
    with app.tenant("acme"):
        for call in calls:
            with pytest.raises(TenantMismatch):
                call()
    assert world.asked == []
    with app.as_system(reason="look"):
        assert [gate.name for gate in app.gates.list()] == ["door"]
        assert app.workers.list() == ()
