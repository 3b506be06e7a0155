"""Wake-ups are hints: they come, they may come for nothing, and nothing depends on them (S56)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

import pytest

from fairlane.model.instants import HOUR, SECOND, Micros
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, PolicyChange, QueueRules, SubjectKind
from fairlane.store.contract.registry import WaitRequest, WakeRequest
from tests.contract.world import ALL, World

LONG: Final[Micros] = 10 * SECOND
"""Longer than any wait for a hint that is on its way."""
SHORT: Final[Micros] = 10_000


async def wait(world: World, worker: str = "w1", at_most: Micros = LONG, queue: str = "default") -> bool:
    """Wait for a hint."""
    request = WaitRequest(scope=ALL, worker=worker, queues=(queue,), at_most=at_most)
    return await world.store.registry.wait(request)


async def wake(world: World, queues: tuple[str, ...] = (), workers: tuple[str, ...] = ()) -> None:
    """Leave a hint."""
    await world.store.registry.wake(WakeRequest(scope=ALL, queues=queues, workers=workers))


async def falls_quiet(world: World, worker: str = "w1") -> bool:
    """Whether a wait ends without a hint, once those are heard that are on their way."""
    for _ in range(5):
        if not await wait(world, worker, SHORT):
            return True
    return False


Happening: TypeAlias = Callable[[World], Awaitable[object]]


async def nothing(_: World) -> None:
    """Prepare nothing."""


async def delay(world: World) -> None:
    """Have a job that is not due."""
    await world.enqueue(delay=HOUR)


async def run(world: World) -> None:
    """Have a job that runs."""
    await world.enqueue()
    await world.claim_one()


async def hold(world: World) -> None:
    """Have a job that met a pause."""
    await world.enqueue()
    await world.pause(SubjectKind.QUEUE, "default")
    assert await world.claim() == []


async def hold_tenant(world: World) -> None:
    """Have a job whose tenant is paused."""
    await world.enqueue()
    await world.pause(SubjectKind.TENANT, "acme")
    assert await world.claim() == []


async def hold_task(world: World) -> None:
    """Have a job whose task is paused."""
    await world.enqueue()
    await world.pause(SubjectKind.TASK, "noop")
    assert await world.claim() == []


async def limit(world: World) -> None:
    """Have a job that met a limit."""
    await world.enqueue()
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(running=0)))
    assert await world.claim() == []


async def wait_at_gate(world: World) -> None:
    """Have a job that waits at a gate, which one of another queue holds."""
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.enqueue(queue="other", task="gated")
    await world.enqueue(task="gated")
    await world.claim_one("other")
    assert await world.claim() == []


async def give_place_back(world: World) -> None:
    """End what holds the gate, or all that the limit allows."""
    (running,) = [job for job in await world.find_all() if job.state is State.RUNNING]
    claim = Claim(running, running.fence, 0)
    assert await world.settle(claim) is State.SUCCEEDED


async def wait_for_the_limit(world: World) -> None:
    """Have a tenant whose one job at a time runs, and another job of it that was looked at."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(running=1)))
    await world.enqueue_many(2)
    assert len(await world.claim(2)) == 1


async def die(world: World) -> None:
    """Have a dead letter, and nothing else."""
    await world.condemn((await world.enqueue()).id)


async def run_again(world: World) -> None:
    """Let what is dead run again."""
    await world.rerun(*[letter.job for letter in await world.letters()])


async def run_the_delayed(world: World) -> None:
    """Make delayed jobs ready."""
    await world.run_now(*(job.id for job in await world.find_all()))


async def promote(world: World) -> None:
    """Let time make them ready."""
    world.advance(3_600)
    assert (await world.promote()).promoted == 1


async def cancel(world: World) -> None:
    """Ask what runs to stop."""
    await world.cancel(*(job.id for job in await world.find_all()))


HAPPENINGS: Final[dict[str, tuple[Happening, Happening]]] = {
    "a hint for the queue": (nothing, lambda w: wake(w, queues=("other", "default"))),
    "a hint for the worker": (nothing, lambda w: wake(w, workers=("w1",))),
    "an enqueue": (nothing, lambda w: w.enqueue()),
    "a dead letter that runs again": (die, run_again),
    "a job that is made ready": (delay, run_the_delayed),
    "a job that comes due": (delay, promote),
    "the end of a pause": (hold, lambda w: w.resume(SubjectKind.QUEUE, "default")),
    "a raised limit": (
        limit,
        lambda w: w.override(SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(running=1))),
    ),
    "a wider gate": (wait_at_gate, lambda w: w.override(SubjectKind.GATE, "door", PolicyChange(limit=2))),
    "a place given back at a gate": (wait_at_gate, give_place_back),
    "a place given back under a limit": (wait_for_the_limit, give_place_back),
    "the end of a tenant's pause": (hold_tenant, lambda w: w.resume(SubjectKind.TENANT, "acme")),
    "the end of a task's pause": (hold_task, lambda w: w.resume(SubjectKind.TASK, "noop")),
    "a cancel of what it runs": (run, cancel),
}
"""What wakes a worker that waits for the default queue, and what must be there before."""


@pytest.mark.parametrize("name", HAPPENINGS)
async def test_a_waiting_worker_hears(world: World, name: str) -> None:
    """S56: of each of these while it waits."""
    prepare, happen = HAPPENINGS[name]
    await prepare(world)
    assert await falls_quiet(world)
    heard, _ = await asyncio.gather(wait(world), happen(world))
    assert heard


@pytest.mark.parametrize("name", HAPPENINGS)
async def test_a_hint_that_came_just_before_the_wait_counts(world: World, name: str) -> None:
    """S56: nothing is lost between a claim that found nothing and the wait."""
    prepare, happen = HAPPENINGS[name]
    await prepare(world)
    assert await falls_quiet(world)
    await happen(world)
    assert await wait(world)


async def test_without_a_hint_the_wait_ends_by_its_time(world: World) -> None:
    """S56: it answers False; hints that were heard are not heard for ever."""
    assert await falls_quiet(world)
    await world.enqueue()
    assert await wait(world)
    assert await falls_quiet(world)


async def test_every_waiting_worker_hears_of_its_queue(world: World) -> None:
    """S56: one that hears does not take the hint away from another."""
    names = ("w1", "w2", "w3")
    for name in names:
        assert await falls_quiet(world, name)
    *heard, _ = await asyncio.gather(*(wait(world, name) for name in names), world.enqueue())
    assert heard == [True, True, True]


async def test_hints_are_not_needed_to_find_work(world: World) -> None:
    """S56: a worker that never waited and one that missed the hint claim all the same."""
    await world.enqueue_many(2)
    assert await wait(world)
    assert (await world.claim_one(worker="w1")).job.task == "noop"
    assert (await world.claim_one(worker="w2")).job.task == "noop"


async def test_a_wait_that_is_given_up_takes_no_later_hint_along(world: World) -> None:
    """S56: a worker that stops waiting holds nothing, and hears when it waits again."""
    assert await falls_quiet(world)
    with suppress(TimeoutError):
        await asyncio.wait_for(wait(world), SHORT / SECOND)
    await world.enqueue()
    assert await wait(world)
