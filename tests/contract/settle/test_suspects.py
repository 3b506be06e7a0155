"""A job that lost its worker runs alone next time; the third crash or the fifth is its last (S39, S40)."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import is_poison
from tests.contract.world import ENDINGS, HANDED_BACK, SUCCEEDED, World, failed

CRASHED = failed(ErrorClass.CRASH, "the child was killed")

ORDERLY = [name for name in ENDINGS if name not in {"handed back", "unknown task"}]


async def _make_suspect(world: World, **values: int) -> Claim:
    await world.enqueue(**values)  # type: ignore[arg-type]
    claim = await world.claim_one()
    await world.lose()
    return claim


async def test_a_lost_lease_makes_a_suspect_and_nothing_else_does(world: World) -> None:
    """S39: another job of the worker, which was settled, is no suspect; nor is one that only waited."""
    lost, settled, waiting = await world.enqueue_many(3)
    _, other = await world.claim(2)
    await world.settle(other, HANDED_BACK)
    await world.lose()
    suspects = [(await world.get(job.id)).is_suspect for job in (lost, settled, waiting)]
    assert suspects == [True, False, False]


async def test_the_next_claim_of_a_suspect_says_so(world: World) -> None:
    """S39: the worker knows by its record that it has to run alone; another job of the claim does not."""
    lost = await _make_suspect(world)
    await world.enqueue()
    first, second = await world.claim(2)
    assert (first.job.id, first.job.is_suspect, second.job.is_suspect) == (lost.job.id, True, False)


@pytest.mark.parametrize("ending", ORDERLY)
async def test_an_orderly_end_clears_the_suspicion(world: World, ending: str) -> None:
    """S39, S40: whatever the end says; the crashes stay on the record, those of its own begin anew."""
    await _make_suspect(world, max_attempts=50)
    await _crash(world, "child")
    claim = await world.claim_one()
    assert (claim.job.is_suspect, claim.job.crashes, claim.job.crashes_alone) == (True, 2, 1)
    await world.settle(claim, ENDINGS[ending])
    job = await world.get(claim.job.id)
    assert (job.is_suspect, job.crashes, job.crashes_alone) == (False, 2, 0)


async def test_a_cleared_suspect_runs_among_others_again(world: World) -> None:
    """S39: its next claim is a plain one."""
    await _make_suspect(world)
    await world.settle(await world.claim_one(), failed())
    world.advance(60)
    assert not (await world.claim_one()).job.is_suspect


async def test_handing_a_suspect_back_settles_no_suspicion(world: World) -> None:
    """S32, S39: it was never started, so that nothing was learnt of it."""
    await _make_suspect(world)
    await _crash(world, "child")
    claim = await world.claim_one()
    await world.settle(claim, HANDED_BACK)
    job = await world.get(claim.job.id)
    assert (job.is_suspect, job.crashes, job.crashes_alone, job.failures) == (True, 2, 1, 1)
    assert (await world.claim_one()).job.is_suspect


async def test_the_death_of_a_jobs_own_child_is_a_failure_and_a_crash_of_its_own(world: World) -> None:
    """S24, S39, S40: the worker lives and reports it; the job is a suspect and retried."""
    await world.enqueue()
    job = await world.run(CRASHED)
    assert (job.state, job.failures, job.is_suspect) == (State.DELAYED, 1, True)
    assert (job.crashes, job.crashes_alone) == (1, 1)


async def test_a_loss_is_a_crash_but_neither_a_failure_nor_its_own(world: World) -> None:
    """S24, S39: the worker died, so that any of its jobs may be the cause, or none. Its own count anew."""
    await world.enqueue(max_attempts=50)
    await _crash(world, "child")
    await _crash(world, "lease")
    job = await world.get((await world.claim_one()).job.id)
    assert (job.failures, job.crashes, job.crashes_alone, job.is_suspect) == (1, 2, 0, True)


async def _crash(world: World, by: str, max_crashes: int = 3) -> State:
    """Let the one job there is crash once more; say where it stands then."""
    claim = await world.claim_one()
    if by == "lease":
        world.advance(12)
        (lost,) = (await world.reclaim()).lost
        return lost.state
    reply = await world.settle_reply(world.verdict(claim, CRASHED, max_crashes=max_crashes))
    world.advance(3600)
    return reply.settled[0].state


KINDS = {"l": "lease", "c": "child"}


@pytest.mark.parametrize(
    ("crashes", "max_crashes", "dies"),
    [
        ("lcc", 3, True),
        ("ccc", 3, True),
        ("llcc", 3, True),
        ("clcc", 3, True),
        ("llc", 3, False),
        ("ccl", 3, False),
        ("clcl", 3, False),
        ("clclc", 3, True),  # the fifth
        ("llll", 3, False),
        ("lllll", 3, True),
        ("llllc", 3, True),
        ("lc", 2, False),
        ("cc", 2, True),
        ("cccc", 5, False),
        ("ccccc", 5, True),
        ("l", 1, False),
        ("c", 1, True),
        ("lc", 1, True),
    ],
)
async def test_a_job_dies_at_the_third_crash_if_the_last_two_were_its_own_and_at_the_fifth(
    world: World, crashes: str, max_crashes: int, *, dies: bool
) -> None:
    """S40: until then it runs again; only crashes of its own cost an attempt."""
    job = await world.enqueue(max_attempts=50)
    states = [await _crash(world, KINDS[one], max_crashes) for one in crashes]
    goes_on = [State.READY if one == "l" else State.DELAYED for one in crashes]
    assert states == [*goes_on[:-1], State.DEAD if dies else goes_on[-1]]
    record = await world.get(job.id)
    assert (record.crashes, record.attempt) == (len(crashes), len(crashes))
    assert record.failures == crashes.count("c")
    assert is_poison(record.crashes, record.crashes_alone, max_crashes) is dies


@pytest.mark.parametrize(("crashes", "count"), [("lcc", 3), ("lllll", 5)])
async def test_a_poisonous_job_is_a_dead_letter_of_class_crash(
    world: World, crashes: str, count: int
) -> None:
    """S40: it says how often it crashed, and it never runs again."""
    job = await world.enqueue(max_attempts=50)
    for one in crashes:
        await _crash(world, KINDS[one])
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.error_class, letter.job.because) == (ErrorClass.CRASH, f"exhausted: crashed {count} times")
    assert letter.job.is_suspect
    assert await world.claim(5) == []


async def test_an_orderly_end_between_two_crashes_begins_the_count_of_its_own_anew(world: World) -> None:
    """S39, S40: three crashes and one of them its own before the snooze: still not condemned."""
    job = await world.enqueue(max_attempts=50)
    await _crash(world, "lease")
    await _crash(world, "child")
    await world.settle(await world.claim_one(), ENDINGS["snoozed"])
    world.advance(60)
    assert await _crash(world, "child") is State.DELAYED
    record = await world.get(job.id)
    assert (record.crashes, record.crashes_alone) == (3, 1)


async def test_the_neighbours_of_a_killer_lose_no_attempt(world: World) -> None:
    """S25, S39: six jobs of another tenant are lost with it, once; only the killer ends."""
    killer = await world.enqueue("mallory", max_attempts=50)
    neighbours = await world.enqueue_many(6, max_attempts=1)
    await world.claim(7)
    await world.lose()
    for claim in await world.claim(7):
        await world.settle(claim, CRASHED if claim.job.tenant == "mallory" else SUCCEEDED)
    world.advance(60)
    assert await _crash(world, "child") is State.DEAD
    states = {(await world.get(job.id)).state for job in neighbours}
    assert (states, (await world.get(killer.id)).failures) == ({State.SUCCEEDED}, 2)


async def test_a_suspect_harms_nobody_elses_turn(world: World) -> None:
    """S39, S41: suspects and other jobs come in the fair order; each claim has its own mark."""
    lost = await _make_suspect(world)
    await world.send(world.new("globex"), world.new("acme"), world.new("globex"))
    claims = await world.claim(9, lease=60 * SECOND)
    assert [(claim.job.tenant, claim.job.is_suspect) for claim in claims] == [
        ("acme", True),
        ("globex", False),
        ("acme", False),
        ("globex", False),
    ]
    assert claims[0].job.id == lost.job.id
