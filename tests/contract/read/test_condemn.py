"""A waiting job may be condemned to the dead letters (S23, S64)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import HOUR
from fairlane.model.lifecycle.states import Because, State, because
from fairlane.model.policy.overrides import GateRules, SubjectKind, TaskRules
from fairlane.store.contract.dead import DeadLetter
from tests.contract.world import World, failed


@pytest.mark.parametrize("delay", [0, HOUR])
@pytest.mark.parametrize("reason", ["", "the customer has left", "ä" * 400])
async def test_a_waiting_job_becomes_a_dead_letter(world: World, delay: int, reason: str) -> None:
    """S23, S64: at once, with the reason, and never having run."""
    job = await world.enqueue(delay=delay, payload=b"raw", tags=("t",))
    now = world.advance(1)
    assert await world.condemn(job.id, reason=reason) == (job.id,)
    word = because(Because.CONDEMNED, reason)
    after = msgspec.structs.replace(job, state=State.DEAD, because=word, settled_at=now)
    assert await world.get(job.id) == after
    assert await world.letter(job.id) == DeadLetter(after, None)
    assert await world.counts() == {("acme", "default", State.DEAD): 1}
    world.advance(2 * 3_600)
    await world.promote()
    assert await world.claim() == []


@pytest.mark.parametrize("state", [state for state in State if state not in {State.DELAYED, State.READY}])
async def test_a_job_that_does_not_wait_is_not_condemned(world: World, state: State) -> None:
    """S23, S64: running and finished jobs stay as they are, to the last field."""
    claim = await world.bring_to(state)
    world.advance(1)
    before = await world.sight()
    assert await world.condemn(claim.job.id, reason="too late") == ()
    assert await world.sight() == before


async def test_of_many_those_that_moved_are_named_in_order(world: World) -> None:
    """S64: once each, also if named twice; unknown ones are left out."""
    await world.enqueue()
    running = await world.claim_one()
    ready, delayed = await world.enqueue(), await world.enqueue(delay=HOUR)
    asked = (delayed.id, running.job.id, world.new().id, ready.id, delayed.id)
    assert await world.condemn(*asked) == (delayed.id, ready.id)
    assert await world.condemn(*asked) == ()
    assert await world.condemn() == ()


async def test_a_condemned_job_frees_what_only_living_jobs_hold(world: World) -> None:
    """S13, S14, S16: the de-duplication key is free, the idempotency key is not."""
    sent = world.new(dedup_key="d", idempotency_key="k", fingerprint=b"f")
    await world.send(sent)
    await world.condemn(sent.id)
    again = await world.send(world.new(dedup_key="d"), world.new(idempotency_key="k", fingerprint=b"f"))
    assert [one.is_created for one in again.enqueued] == [True, False]
    assert again.enqueued[1].job.id == sent.id
    assert [(one.waiting, one.running) for one in (await world.census()).tenants] == [(1, 0)]


async def test_a_condemned_job_keeps_the_failures_it_had(world: World) -> None:
    """S24, S64: attempts and counters stay, and the letter has the class of the last failure."""
    await world.enqueue()
    retried = await world.run(failed(ErrorClass.TRANSIENT))
    await world.condemn(retried.id, reason="enough")
    letter = await world.letter(retried.id)
    assert letter is not None
    assert letter.error_class is ErrorClass.TRANSIENT
    assert letter.job == msgspec.structs.replace(
        retried, state=State.DEAD, because="condemned: enough", settled_at=world.now
    )


async def test_condemning_the_head_of_a_strand_lets_the_next_one_pass(world: World) -> None:
    """S42, S64: also while the strand waits at a full gate; the gate's count is untouched."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    _, second, third = await world.enqueue_many(3)
    claim = await world.claim_one()
    assert await world.claim() == []
    await world.condemn(second.id)
    assert await world.claim() == []
    await world.settle(claim)
    assert (await world.claim_one()).job.id == third.id
