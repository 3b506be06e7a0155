"""Which check speaks first, and what an id that is there already answers (S15)."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import HOT, State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import EVERY, QueueRules, SubjectKind, TenantRules
from tests.contract.world import World, ruined

STAGES: dict[str, int] = {
    "unknown_tenant": 1,
    "closed": 2,
    "id_taken": 3,
    "id_repeated": 0,
    "key_mismatch": 4,
    "key_raise": 4,
    "key_repeat": 4,
    "dedup_repeat": 5,
    "queue_full": 6,
    "waiting_limit": 7,
}
"""Everything that can keep a well-formed job from being stored, by the stage that finds it."""

PAIRS = [
    (one, other)
    for one, other in product(STAGES, STAGES)
    if STAGES[one] < STAGES[other] and (one, other) != ("id_repeated", "id_taken")  # there is one id
]

REFUSALS = {
    "unknown_tenant": RefusalKind.UNKNOWN_TENANT,
    "closed": RefusalKind.CLOSED,
    "id_taken": RefusalKind.ID_TAKEN,
    "key_mismatch": RefusalKind.IDEMPOTENCY_MISMATCH,
    "key_raise": RefusalKind.DUPLICATE,
    "queue_full": RefusalKind.QUEUE_FULL,
    "waiting_limit": RefusalKind.WAITING_LIMIT,
}

SPECIAL: dict[str, dict[str, Any]] = {
    "key_mismatch": {"fingerprint": b"other"},
    "key_raise": {"on_duplicate": "raise"},
}


async def obstruct(world: World, name: str, item: dict[str, Any], options: dict[str, Any]) -> UUID | None:
    """Put one obstacle in the way of an item; return the job that it would be answered or refused with."""
    if name == "unknown_tenant":
        options["must_be_declared"] = True
    elif name == "closed":
        await world.close(SubjectKind.QUEUE, "default")
    elif name == "queue_full":
        await world.declare(SubjectKind.QUEUE, "default", QueueRules(max_waiting=0))
    elif name == "waiting_limit":
        limits = {"default": Limits(waiting=0, on_full="reject")}
        await world.declare(SubjectKind.TENANT, EVERY, TenantRules(limits=limits))
    else:
        by_stage: dict[int, dict[str, Any]] = {4: {"idempotency_key": "fax-7"}, 5: {"dedup_key": "sync"}}
        keys = by_stage.get(STAGES[name], {})
        holder = await world.enqueue(queue="elsewhere", **keys)
        item |= keys or {"id": holder.id}
        item |= SPECIAL.get(name, {})
        options |= {"is_repeated": True} if name == "id_repeated" else {}
        return holder.id
    return None


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_the_earlier_check_speaks(world: World, first: str, second: str) -> None:
    """S15: repeated id, tenancy, closed, taken id, key, de-duplication, limits; a repeat counts for none."""
    item: dict[str, Any] = {}
    options: dict[str, Any] = {}
    holder = await obstruct(world, first, item, options)
    await obstruct(world, second, item, options)
    before = await world.find_all()
    reply = await world.send(world.new(**item), **options)
    if first in REFUSALS:
        assert [(one.kind, one.existing) for one in reply.refused] == [(REFUSALS[first], holder)]
        assert reply.enqueued == ()
    else:
        assert reply.refused == ()
        is_own = first == "id_repeated"
        assert [(one.job.id, one.is_created) for one in reply.enqueued] == [(holder, is_own)]
    assert reply.over == ()
    assert await world.find_all() == before


@pytest.mark.parametrize(
    ("kind", "name"),
    [(SubjectKind.QUEUE, "default"), (SubjectKind.TENANT, "acme"), (SubjectKind.TASK, "noop")],
)
async def test_what_is_closed_refuses_repeats_too(world: World, kind: SubjectKind, name: str) -> None:
    """S15, S46: queue, tenant and task alike; open again, the repeat is answered by the first job."""
    keys = {"idempotency_key": "fax-7", "dedup_key": "sync"}
    first = await world.enqueue(**keys)
    await world.close(kind, name)
    assert [one.kind for one in (await world.send(world.new(**keys))).refused] == [RefusalKind.CLOSED]
    await world.reopen(kind, name)
    assert (await world.send(world.new(**keys))).enqueued[0].job == first


async def test_a_repeated_enqueue_under_its_own_keys_is_answered_by_itself(world: World) -> None:
    """S15: sent again whole, an enqueue is no duplicate of itself, whatever it asked to hear of.

    The jobs are those that this enqueue has made, although its first answer was lost.
    """
    batch = [
        world.new(idempotency_key="fax-7", on_duplicate="raise", fingerprint=b"a"),
        world.new(dedup_key="sync"),
        world.new(),
    ]
    first = await world.send(*batch)
    again = await world.send(*batch, is_repeated=True)
    assert [one.job for one in again.enqueued] == [one.job for one in first.enqueued]
    assert [one.is_created for one in again.enqueued] == [True] * 3
    assert (await world.states()) == {State.READY: 3}


async def test_a_repeated_enqueue_that_others_answered_for_is_answered_by_them(world: World) -> None:
    """S15, S13: what another enqueue has made is not created here, however often this one is sent."""
    first = await world.enqueue(idempotency_key="fax-7")
    batch = [
        world.new(idempotency_key="fax-7"),
        world.new(idempotency_key="fax-8"),
        world.new(idempotency_key="fax-8"),
    ]
    expected = [(first.id, False), (batch[1].id, True), (batch[1].id, False)]
    for is_repeated in (False, True, True):
        reply = await world.send(*batch, is_repeated=is_repeated)
        assert [(one.job.id, one.is_created) for one in reply.enqueued] == expected


@pytest.mark.parametrize("on_duplicate", ["return", "raise", "replace_dead"])
async def test_a_repeated_enqueue_knows_its_own_key_after_its_job_is_gone(
    world: World, on_duplicate: str
) -> None:
    """S15, S13: the tombstone of its own job answers; it is no duplicate, and nothing to replace."""
    new = world.new(idempotency_key="fax-7", on_duplicate=on_duplicate)
    await world.send(new)
    await world.run(ruined())
    world.advance(DAY / SECOND)
    assert (await world.prune(dead=DAY)).jobs == 1
    (answer,) = (await world.send(new, is_repeated=True)).enqueued
    assert (answer.job.id, answer.job.state, answer.is_created) == (new.id, State.DEAD, True)
    assert await world.find_all() == []


@pytest.mark.parametrize("state", list(State))
async def test_a_repeated_enqueue_finds_its_id_in_every_home(world: World, state: State) -> None:
    """S15: hot, in history or among the dead letters; as it is now, and unchanged."""
    claim = await world.bring_to(state)
    job = await world.get(claim.job.id)
    world.advance(5)
    reply = await world.send(world.new(id=job.id, tags=("again",)), is_repeated=True)
    assert [(one.job, one.is_created) for one in reply.enqueued] == [(job, True)]
    assert await world.find_all() == [job]


async def test_a_repeated_enqueue_whose_first_sending_was_lost_comes_in(world: World) -> None:
    """S15: jobs that are not stored yet are stored; those that are stay as they were."""
    known = await world.enqueue()
    lost = world.new()
    reply = await world.send(world.new(id=known.id), lost, is_repeated=True)
    assert [(one.job.id, one.is_created) for one in reply.enqueued] == [(known.id, True), (lost.id, True)]


@pytest.mark.parametrize("state", list(State))
async def test_an_id_that_is_there_is_refused_unless_marked_as_repeated(world: World, state: State) -> None:
    """S15: two different jobs under one id are somebody's mistake; the first one stays as it is."""
    claim = await world.bring_to(state)
    job = await world.get(claim.job.id)
    (refusal,) = (await world.send(world.new(id=job.id, queue="other"))).refused
    assert (refusal.kind, refusal.existing) == (RefusalKind.ID_TAKEN, job.id)
    assert await world.find_all() == [job]


async def test_an_id_twice_in_one_batch_is_refused(world: World) -> None:
    """S15, S12: the later item sees the earlier one."""
    job = world.new()
    reply = await world.send(job, world.new(id=job.id))
    (refusal,) = reply.refused
    assert (refusal.index, refusal.kind, refusal.existing) == (1, RefusalKind.ID_TAKEN, job.id)
    assert await world.counts() == {}


@pytest.mark.parametrize("state", list(State))
async def test_the_id_of_another_tenant_never_answers(world: World, state: State) -> None:
    """S15, S9: a repeated enqueue is refused, says nothing of whose id it is, and touches nothing."""
    claim = await world.bring_to(state, "globex")
    theirs = await world.get(claim.job.id)
    (refusal,) = (await world.send(world.new("acme", id=theirs.id), is_repeated=True)).refused
    assert (refusal.kind, refusal.existing, refusal.tenant) == (RefusalKind.ID_TAKEN, None, "acme")
    assert await world.find_all() == [theirs]


@pytest.mark.parametrize("state", sorted(HOT))
async def test_the_id_of_another_tenant_is_taken(world: World, state: State) -> None:
    """S15, S50: an id is in one home, and of one tenant."""
    claim = await world.bring_to(state, "globex")
    theirs = await world.get(claim.job.id)
    (refusal,) = (await world.send(world.new("acme", id=theirs.id))).refused
    assert (refusal.kind, refusal.existing) == (RefusalKind.ID_TAKEN, None)
    assert await world.find_all() == [theirs]


async def test_one_enqueue_sent_several_times_at_once_makes_one_job(world: World) -> None:
    """S15: the id is looked up in the same step in which the job is stored."""
    job = world.new()
    replies = await asyncio.gather(*(world.send(job, is_repeated=True) for _ in range(10)))
    answers = [reply.enqueued[0] for reply in replies]
    assert {answer.job.id for answer in answers} == {job.id}
    assert all(answer.is_created for answer in answers)
    assert await world.counts() == {("acme", "default", State.READY): 1}


async def test_a_repeat_at_the_time_of_the_settling_finds_its_id(world: World) -> None:
    """S15: on its way from one home to another a job is never in none."""
    job = await world.enqueue()
    claim = await world.claim_one()
    again = [world.send(world.new(id=job.id), is_repeated=True) for _ in range(8)]
    replies, _ = await asyncio.gather(asyncio.gather(*again), world.settle(claim))
    for reply in replies:
        assert [(one.job.id, one.is_created) for one in reply.enqueued] == [(job.id, True)]
    assert (await world.states()) == {State.SUCCEEDED: 1}
