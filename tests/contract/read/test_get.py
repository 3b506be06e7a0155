"""Look jobs up by id, in whatever home they are (S50, S51)."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.job import AttemptRecord, JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.jobs import GetRequest
from tests.contract.world import ALL, World, failed, payload, stored

NEVER_USED = UUID("01900000-0000-7000-8000-000000000000")


async def test_a_job_is_given_back_as_it_was_sent(world: World) -> None:
    """S50: every field of a new job can be read again, with what the store added."""
    sent = world.new(
        "acme",
        queue="mail",
        task="mail.send",
        payload=payload(to="x", lines=[1, 2]),
        checksum=2**32 - 1,
        version=3,
        priority=-7,
        delay=90 * SECOND,
        expires_in=10 * MINUTE,
        idempotency_key="fax-7",
        fingerprint=b"\x00\xff",
        dedup_key="só",
        dedup_until="started",
        correlation_id="request-1",
        parent_id=NEVER_USED,
        max_attempts=4,
        timeout=30 * SECOND,
        at_most_once=True,
        tags=("b", "a"),
        metadata=b'{"k":"v"}',
        created_by="ops",
    )
    await world.send(sent)
    assert await world.get(sent.id) == JobRecord(
        id=sent.id,
        tenant="acme",
        queue="mail",
        task="mail.send",
        state=State.DELAYED,
        because="time",
        payload=sent.payload,
        checksum=2**32 - 1,
        version=3,
        priority=-7,
        enqueued_at=world.now,
        run_at=world.now + 90 * SECOND,
        sort_key=world.now + (90 + 7 * 6) * SECOND,
        expires_at=world.now + 10 * MINUTE,
        settled_at=None,
        idempotency_key="fax-7",
        dedup_key="só",
        dedup_until="started",
        correlation_id="request-1",
        parent_id=NEVER_USED,
        max_attempts=4,
        timeout=30 * SECOND,
        at_most_once=True,
        tags=("b", "a"),
        metadata=b'{"k":"v"}',
        created_by="ops",
    )


@pytest.mark.parametrize("state", State)
async def test_a_job_is_found_in_every_state(world: World, state: State) -> None:
    """S50, S51: one id is one record, whichever of the three homes holds it."""
    claim = await world.bring_to(state)
    job = await world.get(claim.job.id)
    assert (job.id, job.state) == (claim.job.id, state)
    assert job.payload == claim.job.payload


async def test_a_running_job_is_read_as_its_claim_has_it(world: World) -> None:
    """S50: the record that a claim carries is the one that is stored."""
    await world.enqueue()
    claim = await world.claim_one()
    assert await world.get(claim.job.id) == claim.job


async def test_a_finished_job_keeps_what_happened_to_it(world: World) -> None:
    """S24, S50: the history of attempts goes with the job into its last home."""
    before = await world.enqueue()
    claim = await world.claim_one()
    world.advance(2)
    await world.settle(claim, failed(message="first"))
    retried_at = world.advance(1)
    last = await world.claim_one()
    ended_at = world.advance(3)
    await world.settle(last)
    ending = stored(failed(message="first"))
    assert await world.get(before.id) == msgspec.structs.replace(
        before,
        state=State.SUCCEEDED,
        run_at=retried_at,
        sort_key=retried_at,
        settled_at=ended_at,
        attempt=2,
        failures=1,
        fence=last.fence,
        attempts=(
            AttemptRecord(1, "w1", before.enqueued_at, retried_at - SECOND, "failed", ending),
            AttemptRecord(2, "w1", retried_at, ended_at, "succeeded"),
        ),
    )


async def test_many_ids_are_answered_from_all_homes_at_once(world: World) -> None:
    """S50, S51: ids may be mixed and named twice; those not found are left out."""
    jobs = {state: (await world.bring_to(state, queue=state.value)).job.id for state in State}
    ids = (*jobs.values(), NEVER_USED, *jobs.values())
    found = await world.store.jobs.get(GetRequest(scope=ALL, ids=ids))
    assert {id: job.state for id, job in found.items()} == {id: state for state, id in jobs.items()}


async def test_asking_for_nothing_is_answered_with_nothing(world: World) -> None:
    """S51: no ids, no jobs; an unknown id is no error."""
    await world.enqueue()
    assert await world.store.jobs.get(GetRequest(scope=ALL, ids=())) == {}
    assert await world.store.jobs.get(GetRequest(scope=ALL, ids=(NEVER_USED,))) == {}


async def test_reading_changes_nothing(world: World) -> None:
    """S51: a due job that is looked at is neither promoted nor expired by it."""
    due = await world.enqueue(delay=SECOND)
    late = await world.enqueue(delay=SECOND, expires_in=2 * SECOND)
    world.advance(5)
    for _ in range(2):
        assert await world.get(due.id) == due
        assert await world.get(late.id) == late
        assert await world.find_all() == [late, due]
