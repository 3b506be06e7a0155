"""A claim has several ways to one answer, many at once or one after the other: all are held to the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlane.model.job import Claim
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import QueueRules, Rules, Subject, SubjectKind, TenantRules
from tests.contract.world import CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, UNSTARTED, World
from tests.oracle.clock import DrivenClock
from tests.stores import Opener, open_oracle, open_postgres

ENDINGS = (SUCCEEDED, SUCCEEDED, HANDED_BACK, SNOOZED, CANCELLED)
ENDINGS_AHEAD = (*ENDINGS, UNSTARTED, UNSTARTED, UNSTARTED)
CAREFUL: tuple[dict[str, Any], ...] = (
    *({} for _ in range(20)),
    {"at_most_once": True},
    {"max_attempts": 1},
    {"dedup_key": "k", "dedup_until": "started"},
)
"""What jobs are sent with where claims go ahead: now and then something that ends the part ahead (S68)."""
WEIGHTS = (0.01, 0.5, 1.0, 1.0, 2.0, 7.0, 1000.0)
STEPS = 25
ONE_BY_ONE = Rate(1_000_000, "second", burst=100_000)
"""A rate that never binds: claims must still ask it before each start."""


async def enqueue_some(
    world: World, rng: random.Random, tenants: list[str], tasks: list[str], *, is_ahead: bool = False
) -> None:
    """Enqueue a batch: some with a priority, some delayed, some that expire soon."""
    jobs = [
        world.new(
            rng.choice(tenants),
            task=rng.choice(tasks),
            priority=rng.choice((0, 0, 0, 5, -5)),
            delay=rng.choice((0, 0, 0, 2_000_000)),
            expires_in=rng.choice((None, None, None, 3_000_000)),
            **(rng.choice(CAREFUL) if is_ahead else {}),
        )
        for _ in range(rng.randint(1, 30))
    ]
    await world.send(*jobs)


def limits_of_one(rng: random.Random) -> dict[str, Limits]:
    """Leave most tenants without limits of their own."""
    return rng.choice(({}, {}, {"default": Limits(running=2)}, {"*": Limits()}))


async def history(
    opener: Opener,
    seed: int,
    *,
    is_one_by_one: bool = False,
    is_limited: bool = True,
    is_ahead: bool = False,
) -> list[object]:
    """Live through a random history in which only limits hold anybody; return what was answered."""
    rng, clock = random.Random(seed), DrivenClock()
    tenants = [f"t{number}" for number in range(rng.choice((1, 2, 5, 40)))]
    tasks = [f"k{number}" for number in range(rng.choice((1, 1, 3)))]
    answers: list[object] = []
    held: list[Claim] = []
    async with opener(clock) as store:
        world = World(store, clock)
        rules: dict[Subject, Rules] = {
            Subject(SubjectKind.TENANT, tenant): TenantRules(
                weight=rng.choice(WEIGHTS), limits=limits_of_one(rng) if is_limited else {}
            )
            for tenant in tenants[:: 2 if is_limited else 7]
        }
        limits = rng.choice((Limits(), Limits(running=1), Limits(running=3))) if is_limited else Limits()
        rate = ONE_BY_ONE if is_one_by_one else None
        await world.put({**rules, Subject(SubjectKind.QUEUE, "default"): QueueRules(limits, rate)})
        for _ in range(STEPS):
            act = rng.random()
            if act < 0.45:
                await enqueue_some(world, rng, tenants, tasks, is_ahead=is_ahead)
            elif act < 0.85:
                most, headroom = rng.choice((1, 2, 7, 30, 100)), rng.choice((0, 0, 1))
                answers.append([job.id for job in await world.peek(most)])
                ahead = rng.choice((0, 1, most // 2, most)) if is_ahead else 0
                reply = await world.claim_reply(most, headroom=headroom, ahead=ahead)
                held += reply.claims
                claimed = [(claim.job.id, claim.fence, claim.job.attempt) for claim in reply.claims]
                answers.append((claimed, reply.next_due_at, reply.is_ahead_cut))
            elif held:
                ended = [held.pop(rng.randrange(len(held))) for _ in range(rng.randint(1, len(held)))]
                endings = ENDINGS_AHEAD if is_ahead else ENDINGS
                await world.settle_reply(*(world.verdict(claim, rng.choice(endings)) for claim in ended))
            clock.advance(rng.choice((0, 0.000_001, 1.0)))
        await world.check_invariants()
    return answers


@pytest.mark.parametrize("seed", range(16))
async def test_many_at_once_are_served_as_one_after_the_other(seed: int) -> None:
    """S41, S45: both ways give the oracle's order, fences and times."""
    expected = await history(open_oracle, seed)
    assert await history(open_postgres, seed) == expected
    assert await history(open_postgres, seed, is_one_by_one=True) == expected


@pytest.mark.parametrize("seed", range(100, 106))
async def test_what_is_chosen_by_a_shorter_way_is_what_is_next(seed: int) -> None:
    """S41, S42: without limits, a lone tenant's jobs and one of each tenant are in the oracle's order."""
    expected = await history(open_oracle, seed, is_limited=False)
    assert await history(open_postgres, seed, is_limited=False) == expected


@pytest.mark.parametrize("is_limited", [False, True], ids=["plain", "limited"])
@pytest.mark.parametrize("seed", range(200, 208))
async def test_the_part_ahead_ends_where_the_oracle_says(seed: int, *, is_limited: bool) -> None:
    """S68: however many are chosen at once, and whatever came back unstarted before."""
    expected = await history(open_oracle, seed, is_limited=is_limited, is_ahead=True)
    assert await history(open_postgres, seed, is_limited=is_limited, is_ahead=True) == expected
