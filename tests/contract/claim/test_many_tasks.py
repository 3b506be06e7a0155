"""A tenant with many tasks is served as one with few is: by due time and priority, then id (S19, S20)."""

from __future__ import annotations

import random
from typing import Any

from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import WAITING, State
from fairlane.model.policy.overrides import GateRules, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.inspection import InspectRequest
from tests.contract.world import ALL, CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore

TASKS = 40
ENDS = (SUCCEEDED, SUCCEEDED, failed(), SNOOZED, HANDED_BACK, CANCELLED)


async def _settle(world: World, claims: list[Claim], *endings: Any) -> None:
    endings = endings or (SUCCEEDED,) * len(claims)
    reply = await world.settle_reply(*map(world.verdict, claims, endings))
    assert len(reply.settled) == len(claims)


async def _send(world: World, rng: random.Random) -> list[Any]:
    new = [
        world.new(
            rng.choice(("acme", "acme", "globex")),
            task=f"task{rng.randrange(TASKS)}",
            priority=rng.randint(-3, 3),
            delay=rng.choice((0, 0, 0, SECOND)),
            expires_in=rng.choice((None, None, 20 * SECOND)),
        )
        for _ in range(TASKS)
    ]
    return [one.job for one in (await world.send(*new)).enqueued]


async def _live(world: World) -> list[Any]:
    """Let much happen to jobs of many tasks; return all that was seen of it."""
    rng, seen, open_claims = random.Random(TASKS), list[Any](), list[Claim]()
    await world.put_gate("door", "task0", "task1", "task2", "task3")
    for step in range(6):
        jobs = await _send(world, rng)
        await world.declare(SubjectKind.GATE, "door", GateRules(limit=(0, 2, 1, 0, 0, 3)[step]))
        await (world.pause if step % 3 == 1 else world.resume)(SubjectKind.TASK, "task5")
        await (world.pause if step == 2 else world.resume)(SubjectKind.TENANT, "acme")
        seen.append(await world.cancel(*(job.id for job in rng.sample(jobs, 5))))
        for job in rng.sample(jobs, 8):
            seen.append((await world.edit(job.id, priority=rng.randint(-9, 9))).answer)
        seen += [[job.id for job in await world.peek(50, scope=one)] for one in (Scope("acme"), ALL)]
        open_claims += await world.claim(25)
        seen += [[claim.job.id for claim in open_claims], *[await world.explain(job.id) for job in jobs[:9]]]
        rng.shuffle(open_claims)
        ended, open_claims = open_claims[5:], open_claims[:5]
        await _settle(world, ended, *(rng.choice(ENDS) for _ in ended))
        world.advance(rng.choice((0.5, 2, 9)))
        await world.renew(*open_claims)
    await _settle(world, open_claims)
    return seen


async def _drain(world: World) -> list[Any]:
    """Let everything be served that is left."""
    await world.declare(SubjectKind.GATE, "door", GateRules())
    served = []
    while not WAITING.isdisjoint(await world.states()):
        world.advance(61)
        while claims := await world.claim(100):
            served.append([claim.job.id for claim in claims])
            await _settle(world, claims)
    return served


async def test_whatever_happens_to_jobs_of_many_tasks_they_are_served_in_their_order(world: World) -> None:
    """S19, S42, S44, S65: pauses, gates, cancels, edits, retries, expiry; the oracle says what is right."""
    clock = DrivenClock()
    oracle = World(OracleStore(clock), clock)
    assert await _live(world) == await _live(oracle)
    await world.check_invariants()
    assert await _drain(world) == await _drain(oracle)
    assert await world.states() == await oracle.states()


async def test_a_thousand_tasks_of_one_tenant_are_one_line(world: World) -> None:
    """S19: looked at and served by key and id; then three of the tasks go on with more jobs."""
    new = [world.new(task=f"task{n * 7 % 1_000}", priority=n % 5) for n in range(1_100)]
    jobs = [one.job for one in (await world.send(*new)).enqueued]
    order = [job.id for job in sorted(jobs, key=lambda job: (job.sort_key, job.id.bytes))]
    assert (await world.explain(order[700])).ahead == 700
    assert len((await world.store.upkeep.inspect(InspectRequest(scope=ALL))).tasks) == 1_000
    assert [job.id for job in await world.peek(90)] == order[:90]
    served: list[Any] = []
    while claims := await world.claim(100):
        served += [claim.job.id for claim in claims]
        await _settle(world, claims)
    assert served == order
    few = [await world.enqueue(task=f"task{n}") for n in (3, 1, 2)]
    assert [job.id for job in await world.peek()] == [job.id for job in few]
    assert [claim.job.id for claim in await world.claim(9)] == [job.id for job in few]
    assert await world.states() == {State.SUCCEEDED: 1_100, State.RUNNING: 3}
