"""Batches come in whole or not at all, and what comes in comes back byte for byte (S5, S12)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from fairlane.model.errors import TenantMismatch
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import MAX_BATCH_SIZE, EnqueueReply
from tests.contract.world import World, payload

ODD_JSON = (
    b'{ "v":1 ,\n\t"arguments":{"b":1.0,"a":1e3,"z":9223372036854775807,"a0":-0.0,'
    b'"esc":"\\u0000\\u00e9\\ud83d\\ude00\\/","raw":"\xc3\xa9\xf0\x9f\x98\x80","":[],"b ":{},"n":null}}'
)
"""Legal JSON that no two encoders write alike: spaces, escapes, signs, the order and repetition of keys."""


# ── what comes in ────────────────────────────────────────────────────────────


async def test_a_new_job_is_ready_with_nothing_behind_it(world: World) -> None:
    """S5: every field of a plain job, spelled out; what was not given has its default."""
    new = world.new(payload=payload(to="ada"), checksum=7)
    reply = await world.send(new)
    expected = JobRecord(
        id=new.id,
        tenant="acme",
        queue="default",
        task="noop",
        state=State.READY,
        because=None,
        payload=payload(to="ada"),
        checksum=7,
        version=1,
        priority=0,
        enqueued_at=world.now,
        run_at=world.now,
        sort_key=world.now,
        expires_at=None,
        settled_at=None,
        idempotency_key=str(new.id),
        dedup_key=None,
        dedup_until="settled",
        correlation_id=str(new.id),
        parent_id=None,
        max_attempts=5,
        timeout=None,
        at_most_once=False,
        tags=(),
        metadata=b"{}",
        created_by=None,
    )
    assert (reply.refused, reply.over) == ((), ())
    assert [(one.job, one.is_created) for one in reply.enqueued] == [(expected, True)]
    assert await world.get(new.id) == expected


async def test_a_job_keeps_every_value_it_was_given(world: World) -> None:
    """S5: every field with a value of its own, read back by id, by page and by claim."""
    values = {
        "payload": ODD_JSON,
        "checksum": 2**32 - 1,
        "version": 3,
        "priority": -100,
        "expires_at": world.now + HOUR + 1,
        "idempotency_key": "fax-7",
        "dedup_key": "fax",
        "dedup_until": "started",
        "correlation_id": "order 7",
        "parent_id": UUID(int=2**128 - 1),
        "max_attempts": 25,
        "timeout": 90 * SECOND + 1,
        "at_most_once": True,
        "tags": ("vip", "region=eu", "é"),
        "metadata": b'{"trace":"\\u0000", "n":1.0}',
        "created_by": "Ada Löw <ada@example.org>",
    }
    names = {"queue": "bulk", "task": "pkg.Fax:send", "fingerprint": b"\x00\xff" * 8}
    job = await world.enqueue("acme", **names, **values)
    assert {name: getattr(job, name) for name in values} == values
    assert (job.tenant, job.queue, job.task) == ("acme", "bulk", "pkg.Fax:send")
    assert job.sort_key == world.now + 600 * SECOND
    assert await world.find_all() == [await world.get(job.id)] == [job]
    claim = await world.claim_one("bulk")
    assert {name: getattr(claim.job, name) for name in values} == values


@pytest.mark.parametrize("state", list(State))
async def test_payload_and_metadata_are_the_same_bytes_in_every_state(world: World, state: State) -> None:
    """S5: no store decodes, sorts, shortens or re-encodes JSON on any of its ways."""
    claim = await world.bring_to(state, payload=ODD_JSON, metadata=b'{"a":1.0, "a":"\\u00e9"}')
    job = await world.get(claim.job.id)
    assert (job.state, job.payload, job.metadata) == (state, ODD_JSON, b'{"a":1.0, "a":"\\u00e9"}')


async def test_a_large_payload_is_kept_to_its_last_byte(world: World) -> None:
    """S5: one of the largest size that is allowed."""
    body = payload(text="é" * 524_270)
    assert 1_048_560 < len(body) <= 1_048_576
    job = await world.enqueue(payload=body)
    assert (await world.get(job.id)).payload == body
    assert (await world.claim_one()).job.payload == body


async def test_the_order_of_tags_is_kept(world: World) -> None:
    """S5: tags are a list as given, found by each of them whole."""
    job = await world.enqueue(tags=("zeta", "alpha", "key=value"))
    assert (await world.get(job.id)).tags == ("zeta", "alpha", "key=value")
    assert await world.find_all(tag="alpha") == [job]
    assert [await world.find_all(tag=part) for part in ("alp", "key", "value", "zeta,alpha")] == [[]] * 4


async def test_a_result_is_kept_byte_for_byte(world: World) -> None:
    """S5, S34: results are encoded like payloads and no more touched than they."""
    await world.enqueue()
    result = ODD_JSON.replace(b"arguments", b"result")
    assert (await world.run(Succeeded(result))).result == result


# ── batches ──────────────────────────────────────────────────────────────────


async def test_a_batch_is_answered_item_by_item_in_its_order(world: World) -> None:
    """S12: new ones, repeats and later ones each stand where they were sent."""
    known = await world.enqueue(idempotency_key="known")
    items = [
        world.new("globex", delay=HOUR),
        world.new(idempotency_key="known"),
        world.new(priority=100),
        world.new("globex", queue="bulk"),
    ]
    reply = await world.send(*items)
    answers = [(one.job.id, one.is_created) for one in reply.enqueued]
    assert answers == [(items[0].id, True), (known.id, False), (items[2].id, True), (items[3].id, True)]
    for one in reply.enqueued:
        assert await world.get(one.job.id) == one.job


async def test_an_empty_batch_is_answered_with_nothing(world: World) -> None:
    """S12: and stores nothing, repeated or not."""
    assert await world.send() == EnqueueReply()
    assert await world.send(is_repeated=True, must_be_declared=True) == EnqueueReply()
    assert await world.counts() == {}


async def test_a_full_batch_comes_in_whole(world: World) -> None:
    """S12: exactly 1,000 jobs; in the claims they keep the order in which they were sent."""
    items = [world.new(payload=payload(n=n)) for n in range(MAX_BATCH_SIZE)]
    reply = await world.send(*items)
    assert [one.job.id for one in reply.enqueued] == [item.id for item in items]
    assert await world.counts() == {("acme", "default", State.READY): MAX_BATCH_SIZE}
    first = await world.claim(5)
    assert [claim.job.payload for claim in first] == [payload(n=n) for n in range(5)]


async def test_a_heavy_batch_comes_in_whole(world: World) -> None:
    """S12, S5: fifteen payloads of nearly the largest size, within the sixteen megabytes of a batch."""
    bodies = [payload(n=n, text="x" * 1_048_500) for n in range(15)]
    await world.send(*(world.new(payload=body) for body in bodies))
    assert [claim.job.payload for claim in await world.claim(15)] == bodies


async def test_a_full_batch_with_one_refused_item_leaves_nothing(world: World) -> None:
    """S12: the last of 1,000 is refused, and the other 999 with it."""
    await world.close(SubjectKind.TASK, "shut")
    items = [world.new() for _ in range(MAX_BATCH_SIZE - 1)]
    reply = await world.send(*items, world.new(task="shut"))
    assert [refusal.index for refusal in reply.refused] == [MAX_BATCH_SIZE - 1]
    assert await world.counts() == {}


async def test_every_refusal_of_a_batch_is_listed_and_nothing_is_stored(world: World) -> None:
    """S12: in the order of the items, each with its reason; keys and counts of the good ones are undone."""
    holder = await world.enqueue(idempotency_key="taken", fingerprint=b"one")
    await world.close(SubjectKind.TASK, "shut")
    await world.declare(SubjectKind.QUEUE, "full", QueueRules(max_waiting=0))
    await world.declare(SubjectKind.QUEUE, "bulk", QueueRules(limits=Limits(waiting=1, on_full="reject")))
    before = await world.find_all()
    books = await world.census()
    reply = await world.send(
        world.new(task="shut"),
        world.new(idempotency_key="free", dedup_key="free"),
        world.new(idempotency_key="taken", fingerprint=b"two"),
        world.new(queue="full"),
        world.new(queue="bulk"),
        world.new(queue="bulk"),
    )
    assert (reply.enqueued, reply.over) == ((), ())
    assert [(one.index, one.kind, one.existing) for one in reply.refused] == [
        (0, RefusalKind.CLOSED, None),
        (2, RefusalKind.IDEMPOTENCY_MISMATCH, holder.id),
        (3, RefusalKind.QUEUE_FULL, None),
        (5, RefusalKind.WAITING_LIMIT, None),
    ]
    assert await world.find_all() == before
    assert await world.census() == books
    again = await world.send(world.new(idempotency_key="free", dedup_key="free"), world.new(queue="bulk"))
    assert [one.is_created for one in again.enqueued] == [True, True]


async def test_a_refusal_names_its_item_tenant_and_queue(world: World) -> None:
    """S12: enough for one clear error, the reason of whoever closed it included."""
    await world.close(SubjectKind.QUEUE, "bulk")
    (refusal,) = (await world.send(world.new(), world.new("globex", queue="bulk"))).refused
    assert (refusal.index, refusal.kind) == (1, RefusalKind.CLOSED)
    assert (refusal.tenant, refusal.queue) == ("globex", "bulk")
    assert "queue bulk" in refusal.detail
    assert "maintenance" in refusal.detail


async def test_a_batch_that_names_a_foreign_tenant_is_refused_whole(world: World) -> None:
    """S12, S9: outright, before anything of it is stored."""
    with pytest.raises(TenantMismatch):
        await world.send(world.new("acme"), world.new("globex"), scope=Scope("acme"))
    assert await world.counts() == {}


async def test_a_batch_becomes_visible_at_once(world: World) -> None:
    """S12: whoever counts or claims meanwhile meets all of it or none, never a part."""
    batches = [[world.new(f"t{n}") for _ in range(20)] for n in range(4)]

    async def look() -> dict[tuple[str, str, State], int]:
        return await world.counts()

    looks = [look() for _ in range(12)]
    answers = await asyncio.gather(*looks[:6], *(world.send(*batch) for batch in batches), *looks[6:])
    for answer in answers:
        if isinstance(answer, dict):
            assert set(answer.values()) <= {20}
    assert set((await world.counts()).values()) == {20}


async def test_jobs_of_one_instant_are_handed_out_in_the_order_of_their_ids(world: World) -> None:
    """S12, S20: over several batches, and whatever the order inside the batch."""
    items = [world.new() for _ in range(6)]
    await world.send(*reversed(items[:3]))
    await world.send(*reversed(items[3:]))
    assert [claim.job.id for claim in await world.claim(6)] == [item.id for item in items]
