"""`fairlane queues stats`, `gates`, `tasks`, `workers`, drains, and groups without a command."""

from __future__ import annotations

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.policy.overrides import GateRules, SubjectKind
from fairlane.store.contract.registry import LaneRecord, RegisterRequest, TaskRecord, WorkerRecord
from tests.cli.shell import Shell
from tests.contract.world import ALL, World, failed


async def register(world: World) -> None:
    """Let a worker with two lanes and a task introduce itself."""
    record = WorkerRecord(
        id="w1",
        host="box",
        pid=7,
        version="1",
        queues=("default",),
        slots=3,
        tasks=(TaskRecord(name="noop", queue="default", timeout=90 * SECOND),),
        lanes=(LaneRecord("fast", 1, ("default",)), LaneRecord("slow", 2, ("default",))),
    )
    await world.store.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=4 * SECOND))


def test_stats_show_each_queue_in_a_row(store: Shell) -> None:
    """Ready, running, delayed, retrying, dead, and how long the oldest has waited."""
    store.in_store(lambda world: world.enqueue())
    store.in_store(lambda world: world.run(failed()))
    store.in_store(lambda world: world.enqueue(delay=MINUTE))
    store.in_store(lambda world: world.enqueue())
    store.clock.advance(90)
    title, row = store.output_of("queues", "stats").splitlines()
    assert title.split() == ["QUEUE", "READY", "RUNNING", "DELAYED", "RETRYING", "DEAD", "OLDEST"]
    assert row.split() == ["default", "1", "0", "2", "1", "0", "1.5", "min"]
    (one,) = store.run("queues", "stats", "default", "--json").objects
    assert (one["retrying"], one["because"], one["is_complete"]) == (1, {"retry": 1, "time": 1}, True)
    ran = store.run("queues", "stats", "default", "--most", "1")
    assert "Not all jobs were read" in ran.err


def test_gates_show_free_places(store: Shell) -> None:
    """S43: its limit, what is held, what is free; and who has changed it."""

    async def fill(world: World) -> None:
        await world.put_gate("door", "noop")
        await world.declare(SubjectKind.GATE, "door", GateRules(limit=3))
        await world.enqueue()
        await world.claim(1)

    store.in_store(fill)
    title, row = store.output_of("gates").splitlines()
    assert title.split() == ["GATE", "LIMIT", "USED", "FREE", "RATE", "SET", "BY"]
    assert row.split() == ["door", "3", "1", "2", "-", "-"]
    assert store.run("limits", "gate", "door", "--limit", "1", "--note", "slow").code == 0
    shown = store.output_of("gates", "show", "door")
    assert "free   0\n" in shown
    assert ": slow" in shown
    (one,) = store.run("gates", "list", "--json").objects
    assert (one["limit"], one["used"], one["free"]) == (1, 1, 0)
    assert one["override"]["note"] == "slow"


def test_tasks_are_listed_and_shown(store: Shell) -> None:
    """The published tasks and their limits."""
    assert "No task is known" in store.output_of("tasks")
    store.in_store(register)
    store.run("pause", "task", "noop", "--note", "broken")
    assert "noop" in store.output_of("tasks")
    shown = store.output_of("tasks", "show", "noop")
    assert "timeout    1m 30s" in shown or "timeout    90s" in shown
    assert "broken" in shown
    (one,) = store.run("tasks", "list", "--json").objects
    assert (one["name"], one["queue"], one["paused"]["reason"]) == ("noop", "default", "broken")


def test_workers_show_their_lanes(store: Shell) -> None:
    """Each with its slots, for programs."""
    store.in_store(register)
    (one,) = store.run("workers", "--json").objects
    assert one["lanes"][0] == {"name": "fast", "slots": 1, "queues": ["default"]}


@pytest.mark.parametrize(("group", "name"), [("tenants", "acme"), ("tasks", "noop")])
def test_a_tenant_or_a_task_is_drained(store: Shell, group: str, name: str) -> None:
    """S46: it says that it waits, and how to let it go on; what still runs is exit code 1."""
    kind = group.removesuffix("s")
    store.in_store(lambda world: world.enqueue())
    ran = store.run(group, "drain", name, "--note", "deploy", "--json")
    assert (ran.code, ran.objects) == (0, [{kind: name, "answer": "drained"}])
    assert f"Waiting for {kind} {name}" in ran.err
    store.run("resume", kind, name)
    store.in_store(lambda world: world.claim(1))
    ran = store.run(group, "drain", name, "--note", "deploy", "--timeout", "0s")
    assert ran.code == 1
    assert f"continue with `fairlane resume {kind} {name}`" in ran.out


@pytest.mark.parametrize("group", ["jobs", "queues", "tenants", "workers", "tasks", "gates"])
def test_a_group_without_a_command_lists(store: Shell, group: str) -> None:
    """As with `list`, and as JSON if that is asked for."""
    store.in_store(lambda world: world.enqueue())
    listing = [group] if group == "workers" else [group, "list"]
    assert store.output_of(group) == store.output_of(*listing)
    assert store.run(group, "--json").objects == store.run(*listing, "--json").objects


@pytest.mark.parametrize("text", ["x" * 2_001, "a\x07b"])
@pytest.mark.parametrize(
    "command",
    [
        ("pause", "queue", "default"),
        ("close", "queue", "default"),
        ("resume", "queue", "default"),
        ("limits", "queue", "default", "--max-waiting", "3"),
        ("drain", "default"),
        ("tenants", "drain", "acme"),
        ("tenants", "purge", "acme", "--yes"),
        ("tenants", "forget", "acme", "--yes"),
        ("cancel", "01900000-0000-7000-8000-000000000001"),
    ],
)
def test_a_note_that_cannot_be_kept_is_a_usage_error(
    store: Shell, command: tuple[str, ...], text: str
) -> None:
    """S3: 2,000 characters, and none that a terminal would obey; nothing is done."""
    ran = store.run(*command, "--note", text)
    assert (ran.code, ran.out) == (2, "")
    assert "use at most 2,000, and no control characters" in ran.err


def test_advice_names_the_command(store: Shell) -> None:
    """The advice names a command, not a method."""
    job = store.in_store(lambda world: world.enqueue(delay=MINUTE))
    assert f"`fairlane run-now {job.id}` makes it ready" in store.output_of("explain", str(job.id))
    (told,) = store.run("explain", str(job.id), "--json").objects
    assert (told["reason"], "run_now" in told["advice"]) == ("time", False)


def test_an_end_that_differs_is_told_in_options(store: Shell) -> None:
    """S54: the method's words become the command's."""
    assert store.run("limits", "gate", "door", "--limit", "1", "--for", "1h").code == 0
    ran = store.run("limits", "gate", "door", "--limit", "2")
    assert ran.code == 2
    assert "give the same --until, or --reset it first" in ran.err
