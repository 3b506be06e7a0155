"""What a handler writes into its job's metadata: stored by settlements and renewals, fenced, found (S73)."""

from __future__ import annotations

import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import AttemptResult
from fairlane.store.contract.jobs import Scalar
from tests.contract.world import (
    CANCELLED,
    ENDINGS,
    HANDED_BACK,
    SUCCEEDED,
    UNSTARTED,
    World,
    failed,
    payload,
)

GIVEN = b'{"plan":"pro"}'
WRITTEN = b'{"plan":"pro","step":3}'


@pytest.mark.parametrize("ending", ENDINGS)
async def test_metadata_of_a_settlement_replaces_that_of_the_job(world: World, ending: str) -> None:
    """S73: however the attempt ended, in whichever home the job is then."""
    await world.enqueue(metadata=GIVEN)
    claim = await world.claim_one()
    await world.settle_reply(world.verdict(claim, ENDINGS[ending], metadata=WRITTEN))
    job = await world.get(claim.job.id)
    assert job.metadata == WRITTEN
    assert (job.payload, job.tags, job.created_by) == (
        claim.job.payload,
        claim.job.tags,
        claim.job.created_by,
    )


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_settlement_without_metadata_leaves_it(world: World, ending: str) -> None:
    """S73: as it was enqueued."""
    await world.enqueue(metadata=GIVEN)
    claim = await world.claim_one()
    await world.settle_reply(world.verdict(claim, ENDINGS[ending]))
    assert (await world.get(claim.job.id)).metadata == GIVEN


async def test_the_next_attempt_has_what_the_last_one_wrote(world: World) -> None:
    """S73: also in the claim that comes with the settlement."""
    await world.enqueue(metadata=GIVEN)
    claim = await world.claim_one()
    verdict = world.verdict(claim, HANDED_BACK, metadata=WRITTEN)
    reply = await world.settle_reply(verdict, claim=world.claim_request())
    assert reply.claimed is not None
    assert [one.job.metadata for one in reply.claimed.claims] == [WRITTEN] * len(reply.claimed.claims)
    again = reply.claimed.claims[0] if reply.claimed.claims else await world.claim_one()
    await world.settle_reply(world.verdict(again, failed(after=0), metadata=b'{"step":4}'))
    assert (await world.claim_one()).job.metadata == b'{"step":4}'


async def test_each_settlement_of_a_batch_has_its_own(world: World) -> None:
    """S73: some with metadata, some without, beside errors, logs and results."""
    await world.enqueue_many(6, metadata=GIVEN, max_attempts=1)
    claims = await world.claim(6)
    endings: tuple[AttemptResult, ...] = (SUCCEEDED, failed(), CANCELLED, SUCCEEDED, failed(), UNSTARTED)
    verdicts = [
        world.verdict(
            claim, ending, metadata=None if number % 2 else b'{"n":%d}' % number, log=f"line {number}"
        )
        for number, (claim, ending) in enumerate(zip(claims, endings, strict=True))
    ]
    await world.settle_reply(*verdicts)
    for number, claim in enumerate(claims):
        job = await world.get(claim.job.id)
        assert job.metadata == (GIVEN if number % 2 else b'{"n":%d}' % number)
        assert [one.log for one in job.attempts] == ([] if number == 5 else [f"line {number}"])


async def test_a_renewal_stores_metadata_while_the_job_runs(world: World) -> None:
    """S73: so that it outlives the worker; a renewal without any leaves it."""
    await world.enqueue(metadata=GIVEN)
    claim = await world.claim_one()
    await world.renew(claim, metadata=WRITTEN)
    assert (await world.get(claim.job.id)).metadata == WRITTEN
    await world.renew(claim)
    assert (await world.get(claim.job.id)).metadata == WRITTEN
    await world.lose()
    again = await world.claim_one()
    assert (again.job.id, again.job.metadata) == (claim.job.id, WRITTEN)
    await world.settle(again)
    assert (await world.get(claim.job.id)).metadata == WRITTEN


async def test_renewals_of_one_call_have_each_their_own(world: World) -> None:
    """S73: those of other jobs stay."""
    await world.enqueue_many(3, metadata=GIVEN)
    claims = await world.claim(3)
    await world.renew(claims[1], metadata=WRITTEN)
    await world.renew(*claims)
    found = [(await world.get(claim.job.id)).metadata for claim in claims]
    assert found == [GIVEN, WRITTEN, GIVEN]


async def test_a_stale_worker_changes_nothing(world: World) -> None:
    """S73, S36: neither by a renewal nor by a settlement."""
    await world.enqueue(metadata=GIVEN)
    old = await world.claim_one()
    await world.lose()
    await world.renew(old, metadata=WRITTEN)
    assert (await world.get(old.job.id)).metadata == GIVEN
    await world.claim_one()
    await world.renew(old, metadata=WRITTEN)
    await world.settle_reply(world.verdict(old, SUCCEEDED, metadata=WRITTEN))
    assert (await world.get(old.job.id)).metadata == GIVEN


async def test_who_ends_a_claim_for_its_worker_leaves_what_was_renewed(world: World) -> None:
    """S73, S31, S72: stuck or revoked."""
    await world.enqueue_many(2, timeout=SECOND, on_stuck="requeue")
    claims = await world.claim(2)
    await world.renew(*claims, metadata=WRITTEN)
    await world.revoke(claims[0].job.id, how="return")
    world.advance(2)
    await world.take_stuck()
    found = [await world.get(claim.job.id) for claim in claims]
    assert [(job.state, job.metadata) for job in found] == [(State.READY, WRITTEN), (State.DELAYED, WRITTEN)]


@pytest.mark.parametrize("size", [1, 240, 300, 70_000])
@pytest.mark.parametrize("big", [10, 300, 70_000])
async def test_every_size_beside_every_payload(world: World, size: int, big: int) -> None:
    """S73: nothing else of the job is touched."""
    job = await world.enqueue(
        payload=payload(text="x" * big),
        checksum=7,
        metadata=GIVEN,
        tags=("red", "blue"),
        created_by="ann",
        parent_id=world.new().id,
        timeout=HOUR,
        stuck_after=2 * HOUR,
        on_stuck="requeue",
        max_attempts=300,
        version=300,
    )
    written = b'{"text":"%s"}' % (b"y" * size)
    claim = await world.claim_one()
    await world.renew(claim, metadata=written)
    running = await world.get(job.id)
    assert running.metadata == written
    await world.settle_reply(world.verdict(claim, HANDED_BACK, metadata=b"{}"))
    again = await world.claim_one()
    names = ("payload", "checksum", "tags", "created_by", "parent_id", "timeout", "stuck_after", "on_stuck")
    for found in (running, again.job):
        assert {name: getattr(found, name) for name in (*names, "max_attempts", "version")} == {
            name: getattr(job, name) for name in (*names, "max_attempts", "version")
        }
    assert again.job.metadata == b"{}"


# ── found by it ──────────────────────────────────────────────────────────────

HOLDS: tuple[tuple[str, Scalar], ...] = (
    ("step", 3),
    ("plan", "pro"),
    ("done", True),
    ("error", None),
    ("rate", 0.5),
    ("at.page", 7),
    ("seen.1", "b"),
)
HOLDS_NOT: tuple[tuple[str, Scalar], ...] = (
    ("step", "3"),
    ("step", 3.0),
    ("done", 1),
    ("plan", "PRO"),
    ("nothing", None),
    ("at", 7),
    ("seen.2", "b"),
    ("arguments.n", 1),
)
WHOLE = b'{"step":3,"plan":"pro","done":true,"error":null,"rate":0.5,"at":{"page":7},"seen":["a","b"]}'


@pytest.mark.parametrize("state", list(State))
async def test_jobs_are_found_by_their_metadata(world: World, state: State) -> None:
    """S73, S51: plain values at dotted paths, compared by type, in jobs of every state."""
    await world.enqueue("globex", queue="other", metadata=b'{"step":4}')
    claim = await world.bring_to(state, metadata=WHOLE, payload=payload(n=1))
    for pair in HOLDS:
        assert [job.id for job in await world.find_all(metadata=(pair,))] == [claim.job.id], pair
    for pair in HOLDS_NOT:
        assert await world.find_all(metadata=(pair,)) == [], pair
    assert await world.find_all(metadata=HOLDS, where=(("n", 1),)) == [await world.get(claim.job.id)]
    assert await world.find_all(metadata=(("step", 3), ("plan", "free"))) == []
    assert await world.find_all(metadata=(("step", 3),), where=(("n", 2),)) == []


async def test_jobs_are_found_by_the_metadata_that_was_written_last(world: World) -> None:
    """S73: not by that of the enqueue, and page by page."""
    await world.enqueue_many(5, metadata=b'{"step":1}')
    claims = await world.claim(5)
    await world.renew(*claims[:2], metadata=b'{"step":2}')
    await world.settle_reply(world.verdict(claims[2], failed(ErrorClass.TIMEOUT), metadata=b'{"step":2}'))
    found = await world.find_all(metadata=(("step", 2),), page=1)
    assert {job.id for job in found} == {claim.job.id for claim in claims[:3]}
    assert len(await world.find_all(metadata=(("step", 1),))) == 2
