"""A job id is in exactly one of three homes at every step of its life (S50)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from uuid import UUID

import pytest

from fairlane.model.instants import HOUR
from fairlane.model.lifecycle.states import State, home
from fairlane.model.retry.decision import AttemptResult
from tests.contract.world import CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed, ruined

Step: TypeAlias = Callable[[World, UUID], Awaitable[object]]


async def lose(world: World, _: UUID) -> None:
    """Claim the job, unless it runs, and let the lease run out."""
    await world.claim()
    await world.lose()


async def come_due(world: World, _: UUID) -> None:
    """Wait for its time."""
    world.advance(60)
    await world.promote()


async def expire(world: World, _: UUID) -> None:
    """Wait until it is too late to start it."""
    world.advance(3_600)
    await world.expire()


STEPS: Final[dict[str, Step]] = {
    "claim": lambda world, _: world.claim_one(),
    "succeed": lambda world, _: world.run(SUCCEEDED),
    "fail": lambda world, _: world.run(failed()),
    "ruin": lambda world, _: world.run(ruined()),
    "snooze": lambda world, _: world.run(SNOOZED),
    "hand back": lambda world, _: world.run(HANDED_BACK),
    "give up": lambda world, _: world.run(CANCELLED),
    "run now": lambda world, id: world.run_now(id),
    "cancel": lambda world, id: world.cancel(id),
    "condemn": lambda world, id: world.condemn(id),
    "edit": lambda world, id: world.edit(id, tags=("new",)),
    "purge": lambda world, _: world.purge(),
    "come due": come_due,
    "expire": expire,
    "lose": lose,
}

LIVES: Final = [
    "succeed:succeeded",
    "fail:delayed, come due:ready, succeed:succeeded",
    "fail:delayed, come due:ready, fail:dead",
    "lose:ready, lose:ready, lose:ready, lose:ready, lose:dead",
    "ruin:dead",
    "snooze:delayed, run now:ready, hand back:ready, give up:cancelled",
    "snooze:delayed, condemn:dead",
    "snooze:delayed, cancel:cancelled",
    "snooze:delayed, purge:cancelled",
    "snooze:delayed, expire:cancelled",
    "edit:ready, condemn:dead",
    "cancel:cancelled",
    "purge:cancelled",
    "expire:cancelled",
    "claim:running, cancel:running, purge:running, expire:running, lose:cancelled",
]
"""What befalls a job of two attempts that expires after an hour, and its state after each step."""


async def be_in_one_home(world: World, id: UUID, state: State) -> None:
    """Ask every verb that reads for the only job there is."""
    job = await world.get(id)
    assert job.state is state
    assert await world.find_all() == [job]
    assert [letter.job for letter in await world.letters()] == [job] * (state is State.DEAD)
    assert (await world.letter(id) is not None) is (state is State.DEAD)
    assert await world.counts() == {("acme", "default", state): 1}
    assert (await world.census()).homes == {home(state): 1}


@pytest.mark.parametrize("life", LIVES)
async def test_a_job_is_in_exactly_one_home_at_every_step(world: World, life: str) -> None:
    """S50: hot while it lives, then history or dead letters; never two homes, never none."""
    id = (await world.enqueue(max_attempts=2, expires_in=HOUR)).id
    await be_in_one_home(world, id, State.READY)
    for name, state in (step.split(":") for step in life.split(", ")):
        await STEPS[name](world, id)
        await be_in_one_home(world, id, State(state))


async def test_a_job_is_never_out_of_sight_while_it_moves(world: World) -> None:
    """S50, S51: whoever looks while jobs change homes finds each of them once."""
    ids = {job.id for job in await world.enqueue_many(4)}
    claims = await world.claim(4)
    endings: list[AttemptResult] = [SUCCEEDED, ruined(), CANCELLED, SNOOZED]
    settlements = [world.verdict(claim, ending) for claim, ending in zip(claims, endings, strict=True)]
    looks, reply = await asyncio.gather(
        asyncio.gather(*(world.find_all() for _ in range(8))), world.settle_reply(*settlements)
    )
    assert len(reply.settled) == 4
    for look in looks:
        assert sorted(job.id for job in look) == sorted(ids)


@pytest.mark.parametrize("ending", [failed(), SNOOZED, HANDED_BACK, None], ids=str)
async def test_a_job_keeps_its_queue_for_life(world: World, ending: AttemptResult | None) -> None:
    """S11: retried, snoozed, handed back or lost, it is claimed where it was enqueued, and nowhere else."""
    job = await world.enqueue(queue="mail")
    if ending is None:
        await world.claim_one("mail")
        await world.lose()
    else:
        await world.run(ending, "mail")
    await come_due(world, job.id)
    assert await world.counts() == {("acme", "mail", State.READY): 1}
    assert await world.claim(1, "default") == []
    assert (await world.claim_one("mail")).job.id == job.id
