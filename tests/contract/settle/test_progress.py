"""Progress travels with renewals, and the log is stored when the attempt ends (S62)."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from fairlane.model.job import Progress
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import AttemptResult
from tests.contract.world import CANCELLED, HANDED_BACK, LEASE, SNOOZED, SUCCEEDED, World, failed, ruined

HALF, MOST = Progress(0.5, "half way"), Progress(0.875, "größtenteils")

ENDINGS: Final[dict[str, AttemptResult]] = {
    "succeeded": SUCCEEDED,
    "failed": failed(),
    "ruined": ruined(),
    "snoozed": SNOOZED,
    "handed back": HANDED_BACK,
    "cancelled": CANCELLED,
}


async def test_a_renewal_brings_the_newest_progress(world: World) -> None:
    """S62: each value replaces the one before, also by a smaller one, and one without keeps it."""
    claim = await world.bring_to(State.RUNNING)
    assert claim.job.progress is None
    for progress, kept in ((HALF, HALF), (MOST, MOST), (None, MOST), (HALF, HALF)):
        now = world.advance(4)
        await world.renew(claim, progress=progress)
        assert await world.get(claim.job.id) == msgspec.structs.replace(
            claim.job, progress=kept, lease_until=now + LEASE
        )


@pytest.mark.parametrize("progress", [Progress(0.0), Progress(1.0), Progress(0.1 + 0.2, "x" * 500)], ids=str)
async def test_progress_is_kept_exactly(world: World, progress: Progress) -> None:
    """S62: the fraction to the last bit, and the note."""
    claim = await world.bring_to(State.RUNNING)
    await world.renew(claim, progress=progress)
    assert (await world.get(claim.job.id)).progress == progress


async def test_each_job_has_its_own_progress(world: World) -> None:
    """S62: in one renewal for all that a worker runs, and under its fence only."""
    await world.enqueue_many(2)
    one, two = await world.claim(2)
    await world.renew(one, progress=HALF)
    await world.renew(two, progress=MOST)
    stale = msgspec.structs.replace(one, fence=one.fence - 1)
    assert (await world.renew(stale, two, progress=Progress(1.0))).stale == (one.job.id,)
    assert (await world.get(one.job.id)).progress == HALF
    assert (await world.get(two.job.id)).progress == Progress(1.0)


@pytest.mark.parametrize("ending", ENDINGS)
async def test_progress_ends_with_the_attempt(world: World, ending: str) -> None:
    """S62: it is the word of a running handler."""
    claim = await world.bring_to(State.RUNNING)
    await world.renew(claim, progress=HALF)
    await world.settle(claim, ENDINGS[ending])
    assert (await world.get(claim.job.id)).progress is None


async def test_progress_of_a_lost_attempt_ends_when_it_is_reclaimed(world: World) -> None:
    """S38, S62: it is there up to then, lease or no lease; the next attempt begins without."""
    claim = await world.bring_to(State.RUNNING)
    await world.renew(claim, progress=HALF)
    world.advance(60)
    assert (await world.get(claim.job.id)).progress == HALF
    await world.reclaim()
    assert (await world.get(claim.job.id)).progress is None
    assert (await world.claim_one()).job.progress is None


async def test_asking_to_cancel_keeps_the_progress(world: World) -> None:
    """S30, S62: the handler still runs."""
    claim = await world.bring_to(State.RUNNING)
    await world.renew(claim, progress=HALF)
    await world.cancel(claim.job.id)
    assert (await world.get(claim.job.id)).progress == HALF


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_log_is_stored_with_its_attempt(world: World, ending: str) -> None:
    """S62: however the attempt ended; one that logged nothing has none."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.settle_reply(world.verdict(claim, ENDINGS[ending], log="eins\nzwei\n"))
    (attempt,) = (await world.get(claim.job.id)).attempts
    assert attempt.log == "eins\nzwei\n"


async def test_each_attempt_has_its_own_log(world: World) -> None:
    """S24, S62: in order, with attempts between that logged nothing."""
    await world.enqueue()
    for log in ("first", None, "third"):
        claim = await world.claim_one()
        await world.settle_reply(world.verdict(claim, HANDED_BACK, log=log))
    job = await world.get(claim.job.id)
    assert [(one.number, one.log) for one in job.attempts] == [(1, "first"), (2, None), (3, "third")]


async def test_a_stale_settlement_leaves_no_log(world: World) -> None:
    """S36, S62: the attempt was lost, and says so."""
    claim = await world.bring_to(State.RUNNING)
    await world.lose()
    await world.settle_reply(world.verdict(claim, log="too late"))
    (attempt,) = (await world.get(claim.job.id)).attempts
    assert (attempt.outcome, attempt.log) == ("lost", None)


async def test_a_long_log_is_kept_whole(world: World) -> None:
    """S62: up to the 16 KB that a handler may keep."""
    log = "ü" * 8_192
    await world.enqueue()
    claim = await world.claim_one()
    await world.settle_reply(world.verdict(claim, log=log))
    assert (await world.get(claim.job.id)).attempts[0].log == log


async def test_a_list_shows_the_same_progress_and_logs_as_a_look_at_one_job(world: World) -> None:
    """S51, S62: while a handler runs and after it ended."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.settle_reply(world.verdict(claim, HANDED_BACK, log="first"))
    claim = await world.claim_one()
    await world.renew(claim, progress=HALF)
    (found,) = await world.find_all()
    assert (found.progress, [one.log for one in found.attempts]) == (HALF, ["first"])
    await world.settle_reply(world.verdict(claim, log="second"))
    (found,) = await world.find_all()
    assert (found.progress, [one.log for one in found.attempts]) == (None, ["first", "second"])
