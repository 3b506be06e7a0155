"""A waiting job may be edited, and nothing else may (S64)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.instants import HOUR, LAST_INSTANT, MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.contract.jobs import EditReply
from tests.contract.world import World, failed, payload

WAITING = [0, HOUR]
"""The delays of a ready and of a delayed job."""


@pytest.mark.parametrize("delay", WAITING)
@pytest.mark.parametrize(
    "values",
    [
        {"tags": ("new", "er")},
        {"tags": ()},
        {"expires_at": None},
        {"expires_at": 1_900_000_000_000_000},
        {"payload": payload(x=2), "checksum": 77, "version": 4},
        {"payload": payload(x=2)},
        {"tags": ("a",), "expires_at": None, "version": 2},
        {},
    ],
    ids=lambda values: ",".join(values) or "nothing",
)
async def test_what_is_given_is_changed_and_all_else_stays(
    world: World, delay: int, values: dict[str, Any]
) -> None:
    """S64: tags, expiry and arguments of a ready and of a delayed job."""
    job = await world.enqueue(
        delay=delay, expires_in=2 * HOUR, tags=("old",), payload=payload(x=1), priority=3
    )
    world.advance(1)
    after = msgspec.structs.replace(job, **values)
    assert await world.edit(job.id, **values) == EditReply("edited", after)
    assert await world.get(job.id) == after


@pytest.mark.parametrize("delay", WAITING)
@pytest.mark.parametrize("priority", [-100, 0, 100])
async def test_a_new_priority_moves_the_place_and_nothing_else(
    world: World, delay: int, priority: int
) -> None:
    """S20, S64: the place is counted from when the job was or is due, not from now."""
    job = await world.enqueue(delay=delay, priority=7)
    world.advance(1)
    after = msgspec.structs.replace(job, priority=priority, sort_key=sort_key(job.run_at, priority))
    assert await world.edit(job.id, priority=priority) == EditReply("edited", after)
    assert await world.get(job.id) == after


async def test_claims_follow_an_edited_priority(world: World) -> None:
    """S20, S64: up, down, and by id where places are equal."""
    first, second, third, fourth = await world.enqueue_many(4)
    await world.edit(third.id, priority=1)
    await world.edit(first.id, priority=-1)
    await world.edit(fourth.id, priority=0)
    assert [job.id for job in await world.peek()] == [third.id, second.id, fourth.id, first.id]
    assert [claim.job.id for claim in await world.claim(4)] == [third.id, second.id, fourth.id, first.id]


@pytest.mark.parametrize("seconds", [1, 59, 61, 3_600])
async def test_the_time_of_a_delayed_job_can_be_moved(world: World, seconds: int) -> None:
    """S20, S64: earlier and later; it becomes claimable then and not before."""
    job = await world.enqueue(delay=MINUTE, priority=2)
    run_at = world.now + seconds * SECOND
    after = msgspec.structs.replace(job, run_at=run_at, sort_key=sort_key(run_at, 2))
    assert await world.edit(job.id, run_at=run_at) == EditReply("edited", after)
    assert (await world.claim_reply()).next_due_at == run_at
    world.advance(seconds - 0.000_001)
    assert await world.claim() == []
    world.advance(0.000_001)
    assert (await world.claim_one()).job.id == job.id


@pytest.mark.parametrize("field", ["run_at", "expires_at"])
async def test_a_time_beyond_all_instants_is_refused(world: World, field: str) -> None:
    """S2, S64: the last one is fine, a microsecond more changes nothing."""
    job = await world.enqueue(delay=MINUTE)
    values: dict[str, Any] = {field: LAST_INSTANT + 1}
    with pytest.raises(ValueError, match=f"{field} is 9007199254740993"):
        await world.edit(job.id, **values)
    assert await world.get(job.id) == job
    values[field] = LAST_INSTANT
    assert (await world.edit(job.id, **values)).answer == "edited"
    assert getattr(await world.get(job.id), field) == LAST_INSTANT


@pytest.mark.parametrize("earlier", [0, 1, HOUR])
async def test_a_time_in_the_past_makes_a_delayed_job_ready_now(world: World, earlier: int) -> None:
    """S2, S64: it is stored as now, and the job has no because any more."""
    job = await world.enqueue(delay=MINUTE, priority=-1)
    now = world.advance(1)
    after = msgspec.structs.replace(
        job, state=State.READY, because=None, run_at=now, sort_key=sort_key(now, -1)
    )
    assert await world.edit(job.id, run_at=now - earlier) == EditReply("edited", after)
    assert await world.get(job.id) == after
    assert await world.counts() == {("acme", "default", State.READY): 1}


async def test_the_time_of_a_retry_can_be_moved_too(world: World) -> None:
    """S64: it is still a retry, and its counters stay."""
    await world.enqueue()
    job = await world.run(failed())
    run_at = world.now + HOUR
    after = msgspec.structs.replace(job, run_at=run_at, sort_key=run_at)
    assert await world.edit(job.id, run_at=run_at) == EditReply("edited", after)


async def test_a_job_that_is_due_keeps_its_place_when_something_else_is_edited(world: World) -> None:
    """S20, S64: only a new time or priority may change its place, promoted or not."""
    due = await world.enqueue(delay=SECOND)
    world.advance(2)
    other = await world.enqueue()
    reply = await world.edit(due.id, tags=("new",))
    assert reply.job is not None
    assert (reply.job.run_at, reply.job.sort_key) == (due.run_at, due.sort_key)
    assert [claim.job.id for claim in await world.claim(2)] == [due.id, other.id]


async def test_only_a_delayed_job_has_a_time_to_move(world: World) -> None:
    """S64: a ready job answers `not_delayed`, and none of the edit is stored."""
    job = await world.enqueue()
    assert await world.edit(job.id, run_at=world.now + SECOND, priority=9) == EditReply("not_delayed")
    assert await world.get(job.id) == job


@pytest.mark.parametrize("state", [state for state in State if state not in {State.DELAYED, State.READY}])
@pytest.mark.parametrize(
    "values",
    [{"priority": 9}, {"run_at": 0}, {"tags": ("x",)}, {"expires_at": 1}, {"payload": b"{}"}],
    ids=str,
)
async def test_a_job_that_does_not_wait_is_not_edited(
    world: World, state: State, values: dict[str, Any]
) -> None:
    """S64: running and finished jobs stay as they are, to the last field."""
    claim = await world.bring_to(state)
    before = await world.sight()
    assert await world.edit(claim.job.id, **values) == EditReply("not_waiting")
    assert await world.sight() == before


async def test_an_unknown_job_is_not_edited(world: World) -> None:
    """S64: the answer says so."""
    assert await world.edit(world.new().id, priority=1) == EditReply("not_found")


async def test_an_edited_expiry_is_obeyed(world: World) -> None:
    """S21, S64: set, moved into the past, taken off."""
    short, late, free = await world.enqueue_many(3, expires_in=MINUTE)
    await world.edit(short.id, expires_at=world.now + SECOND)
    await world.edit(late.id, expires_at=world.now - SECOND)
    await world.edit(free.id, expires_at=None)
    assert await world.expire() == 1
    world.advance(1)
    assert await world.expire() == 1
    world.advance(120)
    assert await world.expire() == 0
    assert [(await world.get(job.id)).because for job in (short, late, free)] == ["expired", "expired", None]
    assert (await world.claim_one()).job.id == free.id


async def test_a_claim_carries_the_edited_arguments(world: World) -> None:
    """S64: the worker gets what was edited, and only that."""
    job = await world.enqueue(payload=payload(x=1))
    await world.edit(job.id, payload=payload(x=2), checksum=5, version=2, tags=("t",))
    claim = await world.claim_one()
    carried = claim.job.payload, claim.job.checksum, claim.job.version, claim.job.tags
    assert carried == (payload(x=2), 5, 2, ("t",))


async def test_keys_stay_with_an_edited_job(world: World) -> None:
    """S13, S14, S64: a repeat of the first request still finds the job, whatever it was made into."""
    sent = world.new(idempotency_key="k", fingerprint=b"f", dedup_key="d", delay=HOUR)
    await world.send(sent)
    edited = await world.edit(sent.id, payload=payload(x=2), run_at=world.now, priority=5)
    again = await world.send(
        world.new(idempotency_key="k", fingerprint=b"f"), world.new(dedup_key="d", fingerprint=b"g")
    )
    assert [(one.job, one.is_created) for one in again.enqueued] == [(edited.job, False)] * 2
    assert (await world.census()).idempotency_keys == (await world.census()).dedup_keys == 1


async def test_an_edit_is_never_refused_by_a_limit(world: World) -> None:
    """S16, S64: limits are checked at enqueue only."""
    job = await world.enqueue(delay=HOUR)
    limits = Limits(waiting=0, on_full="reject")
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=limits, max_waiting=0))
    assert (await world.edit(job.id, run_at=world.now)).answer == "edited"


async def test_an_edited_job_stays_in_its_home_and_counts_once(world: World) -> None:
    """S50, S64: books and counts are those of one waiting job."""
    job = await world.enqueue(delay=HOUR)
    books = await world.census()
    await world.edit(job.id, run_at=0, tags=("x",), priority=100)
    assert await world.census() == books
    assert [one.state for one in await world.find_all()] == [State.READY]


async def test_an_edited_job_keeps_its_place_in_the_line_at_a_gate(world: World) -> None:
    """S43, S64: what waits at a gate is not woken by a new value, however far the others have come since."""
    await world.put_gate("door", "gated")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=1))
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    first = await world.enqueue("first", task="gated")
    await world.enqueue_many(6, "busy")
    assert await world.tenants_served(3) == ["busy"] * 3
    await world.enqueue("second", task="gated")
    assert await world.tenants_served(9) == ["busy"] * 3
    await world.edit(first.id, tags=("new",))
    assert await world.claim(9) == []
    await world.settle(holder)
    assert await world.tenants_served(9) == ["first"]
