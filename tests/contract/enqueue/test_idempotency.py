"""One job per (tenant, idempotency key), for as long as the key lives (S13)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.model.instants import DAY
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import FINISHED, State
from fairlane.model.payload.encoding import fingerprint
from tests.contract.world import SUCCEEDED, World, failed, payload

WEEK = 7 * DAY / 1_000_000
A, B = fingerprint("noop", {"n": 1}), fingerprint("noop", {"n": 2})
KEY: dict[str, Any] = {"idempotency_key": "fax-7", "fingerprint": A}


@pytest.mark.parametrize("state", list(State))
async def test_a_repeat_gives_the_first_job_whatever_its_state(world: World, state: State) -> None:
    """S13: as it is now, not as it was; nothing is stored and nothing in it changes."""
    claim = await world.bring_to(state, **KEY)
    first = await world.get(claim.job.id)
    world.advance(1)
    reply = await world.send(world.new(priority=9, tags=("again",), **KEY))
    assert first.state is state
    assert [(one.job, one.is_created) for one in reply.enqueued] == [(first, False)]
    assert await world.find_all() == [first]


async def test_a_repeat_gives_a_job_that_has_not_been_touched(world: World) -> None:
    """S13: ready and delayed ones before their first claim."""
    for values in ({"idempotency_key": "now"}, {"idempotency_key": "then", "delay": DAY}):
        first = await world.enqueue(**values)
        reply = await world.send(world.new(idempotency_key=values["idempotency_key"]))
        assert [(one.job, one.is_created) for one in reply.enqueued] == [(first, False)]


@pytest.mark.parametrize("state", list(State))
async def test_a_repeat_that_means_something_else_is_refused(world: World, state: State) -> None:
    """S13: another task or other arguments under the same key, whatever became of the first job."""
    claim = await world.bring_to(state, **KEY)
    before = await world.find_all()
    other_task = world.new(task="other", idempotency_key="fax-7", fingerprint=fingerprint("other", {"n": 1}))
    other_arguments = world.new(payload=payload(n=2), idempotency_key="fax-7", fingerprint=B)
    for repeat in (other_task, other_arguments):
        (refusal,) = (await world.send(repeat)).refused
        assert (refusal.kind, refusal.existing) == (RefusalKind.IDEMPOTENCY_MISMATCH, claim.job.id)
    assert await world.find_all() == before


async def test_the_fingerprint_decides_and_not_the_bytes_of_the_payload(world: World) -> None:
    """S13: the same call, encoded in another order or on another queue, is a repeat."""
    first = await world.enqueue(payload=b'{"v":1,"arguments":{"a":1,"b":2}}', **KEY)
    repeat = world.new(payload=b'{"v":1,"arguments":{"b":2,"a":1}}', queue="bulk", **KEY)
    assert (await world.send(repeat)).enqueued[0].job == first


@pytest.mark.parametrize("state", list(State))
async def test_a_caller_may_ask_to_hear_of_every_repeat(world: World, state: State) -> None:
    """S13: `on_duplicate="raise"` refuses with the first job's id; it is the repeat that asks."""
    claim = await world.bring_to(state, **KEY)
    before = await world.find_all()
    (refusal,) = (await world.send(world.new(on_duplicate="raise", **KEY))).refused
    assert (refusal.kind, refusal.existing) == (RefusalKind.DUPLICATE, claim.job.id)
    assert await world.find_all() == before
    assert (await world.send(world.new(on_duplicate="return", **KEY))).refused == ()


async def test_the_first_to_raise_on_duplicates_comes_in_like_any_other(world: World) -> None:
    """S13: there is nothing to hear of yet, and a later caller who does not ask gets the job."""
    first = await world.enqueue(on_duplicate="raise", **KEY)
    assert (await world.send(world.new(**KEY))).enqueued[0].job == first


async def test_a_mismatch_is_named_before_a_duplicate(world: World) -> None:
    """S13: who raises on duplicates and means something else hears the worse of the two."""
    await world.enqueue(**KEY)
    repeat = world.new(idempotency_key="fax-7", fingerprint=B, on_duplicate="raise")
    (refusal,) = (await world.send(repeat)).refused
    assert refusal.kind is RefusalKind.IDEMPOTENCY_MISMATCH


async def test_a_key_belongs_to_one_tenant(world: World) -> None:
    """S13, S9: the same key of another tenant is another key, also with other arguments."""
    ours = await world.enqueue("acme", **KEY)
    theirs = await world.enqueue("globex", idempotency_key="fax-7", fingerprint=B)
    assert ours.id != theirs.id
    assert (await world.send(world.new("acme", **KEY))).enqueued[0].job == ours


async def test_a_key_covers_all_queues_of_its_tenant(world: World) -> None:
    """S13: unique per (tenant, key), not per queue."""
    first = await world.enqueue(queue="bulk", **KEY)
    assert (await world.send(world.new(queue="other", **KEY))).enqueued[0].job == first
    assert await world.counts() == {("acme", "bulk", State.READY): 1}


async def test_two_equal_keys_in_a_batch_make_one_job(world: World) -> None:
    """S13, S15: the later item is answered by the earlier, each in its place."""
    items = [world.new(**KEY), world.new(), world.new(**KEY)]
    reply = await world.send(*items)
    answers = [(one.job.id, one.is_created) for one in reply.enqueued]
    assert answers == [(items[0].id, True), (items[1].id, True), (items[0].id, False)]
    assert await world.counts() == {("acme", "default", State.READY): 2}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"fingerprint": B}, RefusalKind.IDEMPOTENCY_MISMATCH),
        ({"fingerprint": A, "on_duplicate": "raise"}, RefusalKind.DUPLICATE),
    ],
)
async def test_a_key_that_is_refused_inside_a_batch_refuses_the_batch(
    world: World, values: dict[str, Any], kind: RefusalKind
) -> None:
    """S13, S12: the key of the earlier item goes with its job; the same again comes in afresh."""
    first = world.new(**KEY)
    reply = await world.send(first, world.new(idempotency_key="fax-7", **values))
    assert [(one.index, one.kind, one.existing) for one in reply.refused] == [(1, kind, first.id)]
    assert (await world.counts(), (await world.census()).idempotency_keys) == ({}, 0)
    assert (await world.send(world.new(**KEY))).enqueued[0].is_created


async def test_a_generated_key_equals_the_id_and_costs_no_row(world: World) -> None:
    """S13: only keys that were given are stored apart from their jobs."""
    jobs = await world.enqueue_many(3)
    assert [job.idempotency_key for job in jobs] == [str(job.id) for job in jobs]
    assert (await world.census()).idempotency_keys == 0
    await world.enqueue(**KEY)
    await world.send(world.new(**KEY))
    assert (await world.census()).idempotency_keys == 1


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_the_key_outlives_its_job(world: World, state: State) -> None:
    """S13: after the job was pruned a repeat gives its tombstone: its id, its end, this item's own values."""
    claim = await world.bring_to(state, **KEY)
    settled_at = world.now
    world.advance(WEEK / 7)
    assert (await world.prune(succeeded=DAY, cancelled=DAY, dead=DAY)).jobs == 1
    assert not await world.is_known(claim.job.id)
    repeat = world.new(tags=("mine",), payload=payload(n=1), **KEY)
    (answer,) = (await world.send(repeat)).enqueued
    husk = answer.job
    assert (husk.id, husk.state, husk.settled_at) == (claim.job.id, state, settled_at)
    assert (husk.tags, husk.payload, husk.idempotency_key) == (("mine",), payload(n=1), "fax-7")
    assert not answer.is_created
    assert await world.counts() == {}


async def test_a_key_whose_job_was_pruned_still_knows_what_it_meant(world: World) -> None:
    """S13: a mismatch and a duplicate are refused for as long as the key lives."""
    claim = await world.bring_to(State.SUCCEEDED, **KEY)
    world.advance(WEEK / 7)
    await world.prune(succeeded=DAY)
    other = await world.send(world.new(idempotency_key="fax-7", fingerprint=B))
    again = await world.send(world.new(on_duplicate="raise", **KEY))
    assert [(one.kind, one.existing) for one in (*other.refused, *again.refused)] == [
        (RefusalKind.IDEMPOTENCY_MISMATCH, claim.job.id),
        (RefusalKind.DUPLICATE, claim.job.id),
    ]


async def test_a_key_is_gone_after_its_time(world: World) -> None:
    """S13: seven days after the job settled, to the microsecond; then the key makes a new job."""
    claim = await world.bring_to(State.SUCCEEDED, **KEY)
    world.advance(WEEK - 0.000001)
    assert (await world.prune(succeeded=DAY)).keys == 0
    assert (await world.send(world.new(**KEY))).enqueued[0].job.id == claim.job.id
    world.advance(0.000001)
    assert (await world.prune(succeeded=DAY)).keys == 1
    assert (await world.census()).idempotency_keys == 0
    (answer,) = (await world.send(world.new(idempotency_key="fax-7", fingerprint=B))).enqueued
    assert answer.is_created
    assert answer.job.id != claim.job.id


async def test_the_life_of_a_key_counts_from_the_settling(world: World) -> None:
    """S13: an old job that has just settled has a young key; one that never settled keeps its own."""
    waiting = await world.enqueue(idempotency_key="waiting", delay=100 * DAY)
    await world.enqueue(**KEY)
    world.advance(10 * WEEK)
    claim = await world.claim_one()
    await world.settle(claim, SUCCEEDED)
    reply = await world.prune(succeeded=0, keys=1)
    assert (reply.jobs, reply.keys) == (1, 0)
    assert (await world.send(world.new(idempotency_key="waiting"))).enqueued[0].job == waiting


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_a_key_never_goes_before_its_job(world: World, state: State) -> None:
    """S13: if a job is stored for longer than its key, the key stays as long as the job."""
    claim = await world.bring_to(state, **KEY)
    world.advance(3 * WEEK)
    reply = await world.prune(succeeded=30 * DAY, cancelled=30 * DAY, dead=30 * DAY, keys=DAY)
    assert (reply.jobs, reply.keys) == (0, 0)
    (answer,) = (await world.send(world.new(**KEY))).enqueued
    assert (answer.job, answer.is_created) == (await world.get(claim.job.id), False)


async def test_a_retry_changes_nothing_about_the_key(world: World) -> None:
    """S13: it is the job's for life, over all its attempts."""
    await world.enqueue(**KEY)
    for _ in range(2):
        job = await world.run(failed())
        assert (await world.send(world.new(**KEY))).enqueued[0].job == job
        world.advance(2)
    assert (await world.census()).idempotency_keys == 1


async def test_repeats_at_the_same_time_make_one_job(world: World) -> None:
    """S13: one of them creates it, all get it, in every interleaving."""
    replies = await asyncio.gather(*(world.send(world.new(**KEY)) for _ in range(12)))
    answers = [reply.enqueued[0] for reply in replies]
    assert len({answer.job.id for answer in answers}) == 1
    assert sum(answer.is_created for answer in answers) == 1
    assert await world.counts() == {("acme", "default", State.READY): 1}


async def test_batches_at_the_same_time_share_their_keys(world: World) -> None:
    """S13, S12: overlapping batches sent in different orders neither double a key nor block each other."""
    keys = [f"k{n}" for n in range(10)]
    orders = (keys, keys[::-1], keys[5:] + keys[:5])
    replies = await asyncio.gather(
        *(world.send(*(world.new(idempotency_key=key) for key in order)) for order in orders)
    )
    for order, reply in zip(orders, replies, strict=True):
        assert [one.job.idempotency_key for one in reply.enqueued] == order
    assert sum(one.is_created for reply in replies for one in reply.enqueued) == len(keys)
    assert await world.counts() == {("acme", "default", State.READY): len(keys)}


async def test_a_repeat_at_the_time_of_the_settling_gets_the_job(world: World) -> None:
    """S13: hot or in history, it is in exactly one of them, and the repeat finds it there."""
    await world.enqueue(**KEY)
    claim = await world.claim_one()
    sends = [world.send(world.new(**KEY)) for _ in range(6)]
    first, _, last = await asyncio.gather(
        asyncio.gather(*sends[:3]), world.settle(claim), asyncio.gather(*sends[3:])
    )
    for reply in (*first, *last):
        assert [(one.job.id, one.is_created) for one in reply.enqueued] == [(claim.job.id, False)]
    assert (await world.states()) == {State.SUCCEEDED: 1}
