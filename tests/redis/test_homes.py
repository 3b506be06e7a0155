"""What is decided between two calls is written only if nothing has changed in between."""

from __future__ import annotations

from fairlane.model.lifecycle import State
from fairlane.model.moves import stopped
from fairlane.store.redis.homes import Change, Homes
from fairlane.store.redis.rows import Kept
from tests.contract.world import ALL, World


def homes_of(world: World) -> Homes:
    """Give the way in which rare verbs read and write."""
    return world.store.jobs._homes  # type: ignore[attr-defined,no-any-return]


async def test_a_job_that_was_claimed_meanwhile_is_left_alone(world: World) -> None:
    """S30, S36: a cancel that was decided about a ready job changes nothing in a running one."""
    job = await world.enqueue()
    homes = homes_of(world)
    now, found = await homes.get((job.id,))
    claim = await world.claim_one()
    cancelled = stopped(job, State.CANCELLED, "asked", now)
    assert await homes.write([Change(found[job.id], cancelled)], now) == []
    assert await world.settle(claim) is State.SUCCEEDED


async def test_a_job_that_changed_meanwhile_is_decided_anew(world: World) -> None:
    """S30: until what was read is still so when it is written."""
    job = await world.enqueue()
    homes = homes_of(world)
    seen: list[State] = []
    real = homes.write

    async def claimed_first(changes: list[Change], now: int) -> object:
        if len(seen) == 1:
            await world.claim_one()
        return await real(changes, now)

    homes.write = claimed_first  # type: ignore[assignment,method-assign]

    def decide(now: int, kept: Kept) -> Change | None:
        seen.append(kept.job.state)
        return Change(kept, stopped(kept.job, State.CANCELLED, "asked", now)) if len(seen) == 1 else None

    assert await homes.change(ALL, (job.id,), decide) == ()
    assert seen == [State.READY, State.RUNNING]
