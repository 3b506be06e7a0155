"""A fence only grows, and whoever shows the wrong one changes nothing (S36)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import cycle
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest

from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, Progress
from fairlane.model.lifecycle.states import State, target
from fairlane.model.policy.overrides import GateRules, SubjectKind, TaskRules
from fairlane.model.retry.decision import AttemptResult
from tests.contract.world import ENDINGS, HANDED_BACK, SUCCEEDED, World, ruined

AGAIN = ("retried", "snoozed", "handed back", "unknown task", "lost")
"""The ends of an attempt after which the job can be claimed once more."""

PROGRESS = Progress(0.5, "half way")


async def test_a_first_fence_is_the_clock_of_the_store(world: World) -> None:
    """S36: in microseconds; jobs claimed at the same instant may have the same one."""
    await world.enqueue_many(2)
    now = world.advance(3.000007)
    claims = await world.claim(2)
    assert [claim.fence for claim in claims] == [now, now]
    assert [claim.job.fence for claim in claims] == [now, now]


async def _end(world: World, claim: Claim, how: str) -> None:
    """End an attempt so that its job is ready at the same instant of the clock or the next lease's end."""
    if how == "lost":
        lost = (await world.lose()).lost
        assert [one.id for one in lost] == [claim.job.id]
    elif await world.settle(claim, ENDINGS[how]) is State.DELAYED:
        assert await world.run_now(claim.job.id) == (claim.job.id,)


@pytest.mark.parametrize("step", [0, 1, -3600], ids=["clock stands still", "goes on", "goes back"])
@pytest.mark.parametrize("how", AGAIN)
async def test_a_fence_grows_with_every_claim_of_a_job(world: World, how: str, step: int) -> None:
    """S36: the last one and one more, or the clock if that is further; no clock takes it back."""
    job = await world.enqueue()
    fences = [(await world.claim_one()).fence]
    for _ in range(3):
        live = Claim(await world.get(job.id), fences[-1], 0)
        await _end(world, live, how)
        assert (await world.get(job.id)).fence == fences[-1]
        world.advance(step)
        fences.append((await world.claim_one()).fence)
        assert fences[-1] == max(fences[-2] + 1, world.now)
    assert fences == sorted(set(fences))


async def test_a_job_keeps_its_last_fence_when_it_is_finished(world: World) -> None:
    """S36: it stays in the record, in whatever home that is."""
    for ending in (SUCCEEDED, ruined()):
        await world.enqueue()
        claim = await world.claim_one()
        await world.settle(claim, ending)
        assert (await world.get(claim.job.id)).fence == claim.fence
        world.advance(1)


# ── the wrong fence, one by one ──────────────────────────────────────────────


class Shown(NamedTuple):
    """What a worker shows of the claim it thinks it has."""

    claim: Claim
    worker: str = "w1"


def _with(claim: Claim, fence: int) -> Claim:
    return Claim(claim.job, fence, claim.lease_until)


async def _older(world: World) -> Shown:
    await world.enqueue()
    older = await world.claim_one()
    await world.settle(older, HANDED_BACK)
    await world.claim_one()
    return Shown(older)


async def _newer(world: World) -> Shown:
    await world.enqueue()
    claim = await world.claim_one()
    return Shown(_with(claim, claim.fence + 1))


async def _other_workers(world: World) -> Shown:
    await world.enqueue()
    return Shown(await world.claim_one(), "w2")


async def _other_jobs(world: World) -> Shown:
    await world.enqueue_many(2)
    first = await world.claim_one()
    world.advance(1)
    second = await world.claim_one()
    return Shown(_with(first, second.fence))


async def _of_a_ready_job(world: World) -> Shown:
    job = await world.enqueue()
    return Shown(Claim(job, 0, 0))


def _after(ending: AttemptResult) -> Callable[[World], Awaitable[Shown]]:
    async def settled(world: World) -> Shown:
        await world.enqueue()
        claim = await world.claim_one()
        await world.settle(claim, ending)
        return Shown(claim)

    return settled


async def _reclaimed(world: World) -> Shown:
    await world.enqueue()
    claim = await world.claim_one()
    await world.lose()
    return Shown(claim)


async def _unknown(world: World) -> Shown:
    await world.enqueue()
    claim = await world.claim_one()
    return Shown(Claim(msgspec.structs.replace(claim.job, id=UUID(int=7)), claim.fence, 0))


STALE: dict[str, Callable[[World], Awaitable[Shown]]] = {
    "an older fence": _older,
    "a newer fence": _newer,
    "another worker's": _other_workers,
    "another job's": _other_jobs,
    "of a job never claimed": _of_a_ready_job,
    "of a job handed back": _after(HANDED_BACK),
    "of a job to be retried": _after(ENDINGS["retried"]),
    "of a finished job": _after(SUCCEEDED),
    "of a dead job": _after(ruined()),
    "of a reclaimed job": _reclaimed,
    "of an unknown job": _unknown,
}


@pytest.mark.parametrize("ending", ["succeeded", "retried", "ruined", "handed back"])
@pytest.mark.parametrize("case", STALE)
async def test_settling_with_the_wrong_fence_changes_nothing(world: World, case: str, ending: str) -> None:
    """S36: the answer is stale, and every record, counter and dead letter is as before."""
    claim, worker = await STALE[case](world)
    before = await world.sight()
    world.advance(0.5)
    reply = await world.settle_reply(world.verdict(claim, ENDINGS[ending]), worker=worker)
    assert (reply.stale, reply.settled) == ((claim.job.id,), ())
    assert await world.sight() == before


@pytest.mark.parametrize("case", STALE)
async def test_renewing_with_the_wrong_fence_changes_nothing(world: World, case: str) -> None:
    """S36: no lease and no progress changes, and a caller without the claim is told of no cancel."""
    claim, worker = await STALE[case](world)
    await world.cancel(*(job.id for job in await world.find_all(states=frozenset({State.RUNNING}))))
    before = await world.sight()
    world.advance(0.5)
    reply = await world.renew(claim, worker=worker, progress=PROGRESS)
    assert (reply.stale, reply.cancel_asked) == ((claim.job.id,), ())
    assert await world.sight() == before


async def test_the_right_fence_still_works_after_every_wrong_one(world: World) -> None:
    """S36: refusing a caller without the claim costs the holder nothing."""
    await world.enqueue()
    claim = await world.claim_one()
    for fence, worker in ((claim.fence - 1, "w1"), (claim.fence + 1, "w1"), (claim.fence, "w2"), (0, "w1")):
        stranger = _with(claim, fence)
        assert (await world.renew(stranger, worker=worker)).stale == (claim.job.id,)
        assert (await world.settle_reply(world.verdict(stranger), worker=worker)).stale == (claim.job.id,)
    assert (await world.renew(claim)).stale == ()
    assert await world.settle(claim) is State.SUCCEEDED


# ── batches ──────────────────────────────────────────────────────────────────


async def _mixed(world: World) -> tuple[list[Claim], list[Claim]]:
    """Return three good claims of w1 and four bad ones: older, newer, another worker's, another job's."""
    await world.enqueue_many(7)
    claims = await world.claim(6)
    older = claims[3]
    await world.settle(older, HANDED_BACK)
    world.advance(1)
    again = await world.claim_one()
    assert again.job.id == older.job.id
    foreign = await world.claim_one(worker="w2")
    newer, other = _with(claims[4], claims[4].fence + 1), _with(claims[5], again.fence)
    return claims[:3], [older, newer, foreign, other]


def _shuffled(good: list[Claim], bad: list[Claim]) -> list[Claim]:
    return [bad[0], good[0], bad[1], good[1], bad[2], good[2], bad[3]]


async def test_a_batch_settles_the_fresh_and_refuses_only_the_stale(world: World) -> None:
    """S36: each settlement stands alone, wherever it stands in the batch."""
    good, bad = await _mixed(world)
    before = {claim.job.id: await world.get(claim.job.id) for claim in bad}
    reply = await world.settle_reply(*(world.verdict(claim) for claim in _shuffled(good, bad)))
    assert {(one.id, one.state) for one in reply.settled} == {(one.job.id, State.SUCCEEDED) for one in good}
    assert sorted(reply.stale) == sorted(claim.job.id for claim in bad)
    assert {id: await world.get(id) for id in before} == before


async def test_a_batch_renews_the_fresh_and_refuses_only_the_stale(world: World) -> None:
    """S36: each renewal stands alone, wherever it stands in the batch."""
    good, bad = await _mixed(world)
    before = {claim.job.id: await world.get(claim.job.id) for claim in bad}
    now = world.advance(3)
    reply = await world.renew(*_shuffled(good, bad), progress=PROGRESS)
    assert sorted(reply.stale) == sorted(claim.job.id for claim in bad)
    assert reply.lease_until == now + 12 * SECOND
    for claim in good:
        renewed = msgspec.structs.replace(claim.job, lease_until=reply.lease_until, progress=PROGRESS)
        assert await world.get(claim.job.id) == renewed
    assert {id: await world.get(id) for id in before} == before


async def test_a_batch_may_end_each_attempt_in_its_own_way(world: World) -> None:
    """S36, S23: all endings side by side, one stale among them."""
    await world.enqueue_many(len(ENDINGS) + 1)
    *claims, stale = await world.claim(len(ENDINGS) + 1)
    await world.settle(stale)
    verdicts = [world.verdict(claim, ending) for claim, ending in zip(claims, ENDINGS.values(), strict=True)]
    reply = await world.settle_reply(*verdicts[:4], world.verdict(stale, ruined()), *verdicts[4:])
    assert reply.stale == (stale.job.id,)
    states = {one.id: one.state for one in reply.settled}
    expected = ["succeeded", "delayed", "dead", "delayed", "dead", "cancelled", "ready", "delayed"]
    assert [states[claim.job.id] for claim in claims] == [State(word) for word in expected]
    for id, state in states.items():
        assert (await world.get(id)).state is state


async def test_a_batch_over_several_queues_ends_each_job_in_its_own_way(world: World) -> None:
    """S36: whatever the order of ids and queues, no job gets the end of another."""
    queues = ("mail", "bulk", "default")
    for number in range(9):
        await world.enqueue(queue=queues[number % 3])
    claims = await world.claim(9, queue_requests=[(queue, 3) for queue in queues])
    claims = sorted(claims, key=lambda claim: claim.job.id.int * 7919 % 1009)  # neither order
    endings = dict(zip((claim.job.id for claim in claims), cycle(ENDINGS.values()), strict=False))
    reply = await world.settle_reply(*(world.verdict(claim, endings[claim.job.id]) for claim in claims))
    assert len(reply.settled) == 9
    for claim in claims:
        job = await world.get(claim.job.id)
        verdict = world.verdict(claim, endings[job.id])
        assert (job.state, job.because) == (target(verdict.event), verdict.because)
        assert [attempt.outcome for attempt in job.attempts] == [verdict.outcome]


async def test_an_attempt_is_settled_once_within_a_batch_too(world: World) -> None:
    """S36, S63: of two settlements of one claim in a request, one is accepted and one is stale."""
    await world.enqueue()
    claim = await world.claim_one()
    reply = await world.settle_reply(world.verdict(claim), world.verdict(claim, ruined()))
    assert reply.stale == (claim.job.id,)
    (settled,) = reply.settled
    job = await world.get(claim.job.id)
    assert (settled.id, settled.state, len(job.attempts)) == (job.id, job.state, 1)


# ── at once ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "endings",
    [[SUCCEEDED] * 8, [SUCCEEDED, ruined(), HANDED_BACK, ENDINGS["snoozed"]] * 2],
    ids=["the same verdict", "different verdicts"],
)
async def test_of_many_settlements_at_once_exactly_one_is_accepted(
    world: World, endings: list[AttemptResult]
) -> None:
    """S36, S63: at most one accepted settlement per attempt, under any interleaving."""
    await world.enqueue()
    claim = await world.claim_one()
    verdicts = [world.verdict(claim, ending) for ending in endings]
    replies = await asyncio.gather(*(world.settle_reply(verdict) for verdict in verdicts))
    accepted = [settled for reply in replies for settled in reply.settled]
    job = await world.get(claim.job.id)
    assert [(one.id, one.state) for one in accepted] == [(job.id, job.state)]
    assert [reply.stale for reply in replies].count((job.id,)) == 7
    assert len(job.attempts) == 1


async def test_settle_and_reclaim_at_once_leave_one_of_them_the_winner(world: World) -> None:
    """S36, S37: a late settlement is either accepted or stale, and the reclaim took the others."""
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=6))
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.enqueue_many(6)
    claims = await world.claim(6)
    world.advance(12)
    settling = asyncio.gather(*(world.settle_reply(world.verdict(claim)) for claim in claims))
    settles, reclaimed = await asyncio.gather(settling, world.reclaim())
    settled = {one.id for reply in settles for one in reply.settled}
    stale = {id for reply in settles for id in reply.stale}
    lost = {one.id for one in reclaimed.lost}
    assert settled | lost == {claim.job.id for claim in claims}
    assert (settled & lost, stale) == (set(), lost)
    assert (await world.census()).gates == ()
