"""`fairlane explain`: each reason of the contract, one by one, as an operator reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, get_args
from uuid import UUID

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind, TaskRules, TenantRules
from fairlane.model.retry.decision import Unknown
from fairlane.store.contract.jobs import Reason
from tests.cli.shell import Shell
from tests.contract.breakers.scene import guard, trip
from tests.contract.world import SNOOZED, SUCCEEDED, World, failed

Scene = Callable[[World], Awaitable[UUID]]


async def turn(world: World) -> UUID:
    """Two wait before it, and a worker is there."""
    await world.register()
    await world.enqueue_many(2)
    return (await world.enqueue()).id


async def later(world: World) -> UUID:
    """Enqueued for a later time."""
    return (await world.enqueue(delay=90 * SECOND)).id


async def retry(world: World) -> UUID:
    """Failed once."""
    await world.enqueue()
    return (await world.run(failed(message="no line"))).id


async def snooze(world: World) -> UUID:
    """Asked to come back."""
    await world.enqueue()
    return (await world.run(SNOOZED)).id


async def unknown_task(world: World) -> UUID:
    """Claimed by a worker that does not have its task."""
    await world.enqueue()
    return (await world.run(Unknown())).id


async def unknown_version(world: World) -> UUID:
    """Claimed by a worker with older code."""
    await world.enqueue(version=3)
    return (await world.run(Unknown(newest=2))).id


async def paused(world: World) -> UUID:
    """Its tenant is paused for a while."""
    job = await world.enqueue()
    await world.pause(SubjectKind.TENANT, "acme", until=world.now + 7 * MINUTE)
    world.advance(60)
    return job.id


async def running_limit(world: World) -> UUID:
    """Its tenant runs all that it may."""
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits={"default": Limits(running=1)}))
    await world.enqueue()
    job = await world.enqueue()
    await world.claim_one()
    return job.id


async def rate(world: World) -> UUID:
    """The queue has had its start of this minute."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(rate=Rate(1, "minute")))
    await world.enqueue()
    job = await world.enqueue()
    await world.claim_one()
    return job.id


async def gate(world: World) -> UUID:
    """The gate of its task is full."""
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.enqueue()
    job = await world.enqueue()
    await world.claim_one()
    return job.id


async def breaker(world: World) -> UUID:
    """What its task calls is down."""
    await guard(world, "noop")
    job = await world.enqueue()
    await trip(world)
    return job.id


async def budget(world: World) -> UUID:
    """Its budget has no room."""
    await world.put_budget("ai", "noop", ceiling=0)
    return (await world.enqueue()).id


async def no_worker(world: World) -> UUID:
    """No worker serves its queue."""
    return (await world.enqueue()).id


async def running(world: World) -> UUID:
    """It runs."""
    await world.enqueue()
    return (await world.claim_one()).job.id


async def finished(world: World) -> UUID:
    """It has ended."""
    await world.enqueue()
    return (await world.run(SUCCEEDED)).id


SCENES: Final[dict[str, tuple[Scene, str, str]]] = {
    "turn": (
        turn,
        "ready",
        (
            "Reason: turn (queue default).\nAhead: 2 jobs of its tenant go first in this queue.\n"
            "Advice: It waits for its turn."
        ),
    ),
    "time": (
        later,
        "delayed",
        (
            "Reason: time, until 2027-01-15 08:01:30 UTC (in 1m 30s).\n"
            "Advice: It was enqueued for a later time."
        ),
    ),
    "retry": (
        retry,
        "delayed",
        (
            "Reason: retry (retryable: no line), until 2027-01-15 08:00:01 UTC (in 1s).\n"
            "Advice: Its last attempt failed;"
        ),
    ),
    "snooze": (
        snooze,
        "delayed",
        "Reason: snooze, until 2027-01-15 08:01:00 UTC (in 1m).\nAdvice: Its handler asked",
    ),
    "unknown_task": (
        unknown_task,
        "delayed",
        "Reason: unknown_task, until 2027-01-15 08:00:05 UTC (in 5s).\nAdvice: The worker that claimed it",
    ),
    "unknown_version": (
        unknown_version,
        "delayed",
        (
            "Reason: unknown_version (it is of version 3, and the worker knows 2), "
            "until 2027-01-15 08:00:05 UTC (in 5s).\nAdvice: Its arguments are newer"
        ),
    ),
    "paused": (
        paused,
        "ready",
        (
            "Reason: paused (tenant acme paused by ops: maintenance), "
            "until 2027-01-15 08:07:00 UTC (in 6m).\n"
            "Ahead: 0 jobs of its tenant go first in this queue.\n"
            "Advice: Nothing of this is claimed until the pause ends."
        ),
    ),
    "running_limit": (
        running_limit,
        "ready",
        (
            "Reason: running_limit (tenant acme).\nAhead: 0 jobs of its tenant go first in this queue.\n"
            "Advice: Its tenant runs as many jobs"
        ),
    ),
    "rate": (
        rate,
        "ready",
        (
            "Reason: rate (queue default), until 2027-01-15 08:01:00 UTC (in 1m).\n"
            "Ahead: 0 jobs of its tenant go first in this queue.\nAdvice: Starts are spaced out"
        ),
    ),
    "gate": (
        gate,
        "ready",
        (
            "Reason: gate (gate door).\nAhead: 0 jobs of its tenant go first in this queue.\n"
            "Advice: Its gate is full."
        ),
    ),
    "breaker": (
        breaker,
        "ready",
        (
            "Reason: breaker (breaker mail), until 2027-01-15 08:01:00 UTC (in 1m).\n"
            "Ahead: 0 jobs of its tenant go first in this queue.\n"
            "Advice: What its task calls has failed too often."
        ),
    ),
    "budget": (
        budget,
        "ready",
        (
            "Reason: budget (budget ai), until 2027-01-16 00:00:00 UTC (in 16h).\n"
            "Ahead: 0 jobs of its tenant go first in this queue.\n"
            "Advice: Its budget has no room for another job."
        ),
    ),
    "no_worker": (
        no_worker,
        "ready",
        (
            "Reason: no_worker (queue default).\nAhead: 0 jobs of its tenant go first in this queue.\n"
            "Advice: No live worker serves its queue."
        ),
    ),
    "running": (running, "running", "Reason: running (worker w1).\nAdvice: It is running."),
    "finished": (finished, "succeeded", "Reason: finished (succeeded).\nAdvice: It has ended"),
}
"""Each reason: how it arises, the job's state then, and what is printed."""


@pytest.mark.parametrize("reason", SCENES)
def test_each_reason_is_explained_in_sentences(store: Shell, reason: str) -> None:
    """Which job, why, until when, how many go first, what to do."""
    scene, state, told = SCENES[reason]
    id = store.in_store(scene)
    shown = store.output_of("explain", str(id))
    assert shown.startswith(f"Job {id} of task noop, tenant acme, queue default, is {state}.\n{told}")
    assert shown.endswith(".\n")


@pytest.mark.parametrize("reason", SCENES)
def test_each_reason_is_a_word_for_programs(store: Shell, reason: str) -> None:
    """The same facts as values."""
    scene, state, _ = SCENES[reason]
    id = store.in_store(scene)
    (told,) = store.run("explain", str(id), "--json").objects
    assert (told["id"], told["state"], told["reason"]) == (str(id), state, reason)
    assert told["advice"]


def test_no_reason_of_the_contract_is_left_out() -> None:
    """A new reason needs a scene here."""
    assert set(SCENES) == set(get_args(Reason))


def test_one_job_ahead_is_said_in_the_singular(store: Shell) -> None:
    """People read it."""

    async def second(world: World) -> UUID:
        await world.enqueue()
        return (await world.enqueue()).id

    assert "Ahead: 1 job of its tenant goes first in this queue.\n" in store.output_of(
        "explain", str(store.in_store(second))
    )


def test_secrets_in_an_error_are_not_explained(store: Shell) -> None:
    """S6: the subject of a retry is the message of its error."""

    async def work(world: World) -> UUID:
        await world.enqueue()
        return (await world.run(failed(message="password=hunter2"))).id

    id = str(store.in_store(work))
    assert "hunter2" not in store.output_of("explain", id) + store.output_of("explain", id, "--json")
