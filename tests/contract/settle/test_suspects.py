"""A job that lost its worker runs alone next time, and the third time is its last (S39, S40)."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import is_poison
from tests.contract.world import ENDINGS, HANDED_BACK, World, failed

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


@pytest.mark.parametrize("isolates", [True, False])
async def test_a_suspect_runs_alone_where_the_worker_isolates(world: World, *, isolates: bool) -> None:
    """S39: the claim says so; a worker that cannot isolate is not told to, and may still run it."""
    lost = await _make_suspect(world)
    await world.enqueue()
    first, second = await world.claim(2, isolates=isolates)
    assert (first.job.id, first.job.is_suspect, first.is_alone) == (lost.job.id, True, isolates)
    assert (second.job.is_suspect, second.is_alone) == (False, False)


@pytest.mark.parametrize("ending", ORDERLY)
async def test_an_orderly_end_clears_the_suspicion(world: World, ending: str) -> None:
    """S39, S40: whatever the end says; the crashes stay on the record, those alone begin anew."""
    await _make_suspect(world)
    await world.claim_one(isolates=True)
    await world.lose()
    claim = await world.claim_one(isolates=True)
    assert (claim.is_alone, claim.job.crashes, claim.job.crashes_alone) == (True, 2, 1)
    await world.settle(claim, ENDINGS[ending])
    job = await world.get(claim.job.id)
    assert (job.is_suspect, job.crashes, job.crashes_alone) == (False, 2, 0)


async def test_a_cleared_suspect_runs_among_others_again(world: World) -> None:
    """S39: its next claim is a plain one."""
    await _make_suspect(world)
    await world.settle(await world.claim_one(isolates=True), failed())
    world.advance(60)
    claim = await world.claim_one(isolates=True)
    assert (claim.is_alone, claim.job.is_suspect) == (False, False)


async def test_handing_a_suspect_back_settles_no_suspicion(world: World) -> None:
    """S32, S39: it was never started, so that nothing was learnt of it."""
    await _make_suspect(world)
    await world.claim_one(isolates=True)
    await world.lose()
    claim = await world.claim_one(isolates=True)
    await world.settle(claim, HANDED_BACK)
    job = await world.get(claim.job.id)
    assert (job.is_suspect, job.crashes, job.crashes_alone, job.failures) == (True, 2, 1, 2)
    assert (await world.claim_one(isolates=True)).is_alone


async def test_the_death_of_a_jobs_own_child_counts_like_a_lost_lease(world: World) -> None:
    """S39, S40: the worker lives and reports it: a crash, a failure, a suspect, to be retried alone."""
    await world.enqueue()
    job = await world.run(CRASHED)
    assert (job.state, job.crashes, job.crashes_alone, job.failures, job.is_suspect) == (
        State.DELAYED,
        1,
        0,
        1,
        True,
    )
    world.advance(60)
    claim = await world.claim_one(isolates=True)
    assert claim.is_alone
    await world.settle(claim, CRASHED)
    again = await world.get(job.id)
    assert (again.crashes, again.crashes_alone, again.failures) == (2, 1, 2)


async def _crash(world: World, *, alone: bool, by: str, max_crashes: int = 3) -> State:
    """Let the one job there is crash once more; say where it stands then."""
    claim = await world.claim_one(isolates=alone)
    assert claim.is_alone == (alone and claim.job.is_suspect)
    if by == "lease":
        world.advance(12)
        (lost,) = (await world.reclaim(max_crashes=max_crashes)).lost
        return lost.state
    reply = await world.settle_reply(world.verdict(claim, CRASHED, max_crashes=max_crashes))
    world.advance(3600)
    return reply.settled[0].state


@pytest.mark.parametrize("by", ["lease", "child"])
@pytest.mark.parametrize(
    ("alone", "max_crashes", "dies"),
    [
        ("ftt", 3, True),
        ("ttt", 3, True),  # the first cannot be alone: nobody suspected it
        ("fft", 3, False),
        ("fftt", 3, True),
        ("ftft", 3, False),
        ("ftftt", 3, True),
        ("ffffffff", 3, False),
        ("ft", 2, False),
        ("ftt", 2, True),
        ("fttt", 5, False),
        ("ftttt", 5, True),
        ("f", 1, False),
        ("ft", 1, True),
    ],
)
async def test_a_job_dies_of_its_crashes_only_if_the_last_were_alone(
    world: World, by: str, alone: str, max_crashes: int, *, dies: bool
) -> None:
    """S40: at the third by default, the last two alone; until then it is retried."""
    job = await world.enqueue(max_attempts=50)
    states = [await _crash(world, alone=one == "t", by=by, max_crashes=max_crashes) for one in alone]
    goes_on = State.READY if by == "lease" else State.DELAYED
    assert states == [goes_on] * (len(alone) - 1) + [State.DEAD if dies else goes_on]
    record = await world.get(job.id)
    assert (record.crashes, record.failures, record.attempt) == (len(alone), len(alone), len(alone))
    assert is_poison(record.crashes, record.crashes_alone, max_crashes) is dies


@pytest.mark.parametrize("by", ["lease", "child"])
async def test_a_poisonous_job_is_a_dead_letter_of_class_crash(world: World, by: str) -> None:
    """S40: it says how often it crashed, and it never runs again."""
    job = await world.enqueue(max_attempts=50)
    for alone in (False, True, True):
        await _crash(world, alone=alone, by=by)
    letter = await world.letter(job.id)
    assert letter is not None
    assert (letter.error_class, letter.job.because) == (ErrorClass.CRASH, "exhausted: crashed 3 times")
    assert letter.job.is_suspect
    assert await world.claim(5, isolates=True) == []


async def test_losses_and_deaths_of_the_child_are_counted_together(world: World) -> None:
    """S40: a lost lease, then two deaths alone, one of each kind."""
    await world.enqueue(max_attempts=50)
    assert await _crash(world, alone=False, by="child") is State.DELAYED
    assert await _crash(world, alone=True, by="lease") is State.READY
    assert await _crash(world, alone=True, by="child") is State.DEAD


async def test_an_orderly_end_between_two_crashes_begins_the_count_alone_anew(world: World) -> None:
    """S39, S40: three crashes and one of them alone before the snooze: still not condemned."""
    job = await world.enqueue(max_attempts=50)
    await _crash(world, alone=False, by="lease")
    await _crash(world, alone=True, by="lease")
    await world.settle(await world.claim_one(isolates=True), ENDINGS["snoozed"])
    world.advance(60)
    assert await _crash(world, alone=True, by="lease") is State.READY
    record = await world.get(job.id)
    assert (record.crashes, record.crashes_alone) == (3, 0)


async def test_workers_that_do_not_isolate_condemn_nobody_before_the_attempts_are_spent(world: World) -> None:
    """S25, S40: each crash is a failure too, and only those end the job there."""
    job = await world.enqueue(max_attempts=6)
    states = [await _crash(world, alone=False, by="lease") for _ in range(6)]
    assert states == [State.READY] * 5 + [State.DEAD]
    record = await world.get(job.id)
    assert (record.failures, record.crashes, record.crashes_alone) == (6, 6, 0)
    assert record.because == "exhausted: worker w1 stopped renewing its lease"


async def test_a_suspect_harms_nobody_elses_turn(world: World) -> None:
    """S39, S41: suspects and other jobs come in the fair order; each claim has its own mark."""
    lost = await _make_suspect(world)
    await world.send(world.new("globex"), world.new("acme"), world.new("globex"))
    claims = await world.claim(9, isolates=True, lease=60 * SECOND)
    assert [(claim.job.tenant, claim.is_alone) for claim in claims] == [
        ("acme", True),
        ("globex", False),
        ("acme", False),
        ("globex", False),
    ]
    assert claims[0].job.id == lost.job.id
