"""Forgetting a tenant erases the contents and logs of its jobs; that they existed remains (S52)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import HOUR, SECOND
from fairlane.model.job import AttemptRecord, JobRecord
from fairlane.model.lifecycle.states import FINISHED, State
from fairlane.model.retry.decision import AttemptResult, Failed, PermanentFailure, Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import MAX_BATCH_SIZE
from fairlane.store.contract.upkeep import ForgetReply, ForgetRequest
from tests.contract.world import ALL, CANCELLED, SUCCEEDED, World, payload

PERSONAL: Final[dict[str, Any]] = {
    "payload": payload(name="Zoe"),
    "checksum": 5,
    "tags": ("zoe",),
    "metadata": b'{"ip":"::1"}',
    "correlation_id": "zoe-1",
    "created_by": "zoe@example.org",
    "idempotency_key": "zoe",
    "fingerprint": b"f",
    "dedup_key": "zoe",
}
TROUBLE: Final = Failure(ErrorClass.TRANSIENT, "ZoeError", "Zoe is out", "trace of Zoe")

ENDINGS: Final[dict[State, AttemptResult]] = {
    State.SUCCEEDED: Succeeded(b'"Zoe"'),
    State.CANCELLED: CANCELLED,
    State.DEAD: PermanentFailure(TROUBLE),
}


async def forget(
    world: World, tenant: str = "acme", limit: int = 1_000, cursor: str | None = None
) -> ForgetReply:
    """Make one bounded pass."""
    request = ForgetRequest(scope=Scope(tenant), reason="asked to", who="ops", limit=limit, cursor=cursor)
    return await world.store.upkeep.forget(request)


def husk(job: JobRecord) -> JobRecord:
    """Say what is left of a finished job."""
    return msgspec.structs.replace(
        job,
        payload=b"",
        checksum=0,
        result=None if job.result is None else b"",
        because=None if job.because is None else job.because.partition(":")[0],
        tags=(),
        metadata=b"{}",
        created_by=None,
        idempotency_key=str(job.id),
        dedup_key=None,
        correlation_id=str(job.id),
        attempts=tuple(
            AttemptRecord(
                one.number,
                one.worker,
                one.started_at,
                one.ended_at,
                one.outcome,
                None if one.failure is None else Failure(one.failure.error_class, "", ""),
            )
            for one in job.attempts
        ),
    )


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_what_a_finished_job_carried_and_said_is_erased(world: World, state: State) -> None:
    """S52: payload, result, tags, metadata, keys, names and errors; times, counters and classes stay."""
    await world.enqueue(**PERSONAL)
    claim = await world.claim_one()
    await world.settle_reply(world.verdict(claim, Failed(TROUBLE), log="Zoe called"))
    world.advance(1)
    job = await world.run(ENDINGS[state])
    counts = await world.counts()
    world.advance(1)
    assert await forget(world) == ForgetReply(erased=1)
    left = await world.get(job.id)
    assert left == husk(job)
    assert "zoe" not in repr(left).lower()
    assert await world.find_all() == [left]
    assert await world.counts() == counts
    assert [letter.job for letter in await world.letters()] == [left] * (state is State.DEAD)


@pytest.mark.parametrize("delay", [0, HOUR])
async def test_a_waiting_job_is_cancelled_and_erased(world: World, delay: int) -> None:
    """S52: because `purged`, in the same pass, and never runs."""
    job = await world.enqueue(delay=delay, **PERSONAL)
    now = world.advance(1)
    assert await forget(world) == ForgetReply(erased=1)
    cancelled = msgspec.structs.replace(job, state=State.CANCELLED, because="purged", settled_at=now)
    assert await world.get(job.id) == husk(cancelled)
    world.advance(7_200)
    await world.promote()
    assert await world.claim() == []


@pytest.mark.parametrize("ending", [SUCCEEDED, Failed(TROUBLE)], ids=["succeeded", "failed"])
async def test_a_running_job_is_asked_to_stop_and_erased_by_a_later_pass(
    world: World, ending: AttemptResult
) -> None:
    """S30, S52: its handler still needs the arguments; whatever end it takes, nothing is left then."""
    await world.enqueue(**PERSONAL)
    claim = await world.claim_one()
    assert await forget(world) == ForgetReply(erased=0, running=1)
    running = await world.get(claim.job.id)
    assert running == msgspec.structs.replace(claim.job, is_cancel_asked=True, because="asked: asked to")
    assert (await world.renew(claim)).cancel_asked == (claim.job.id,)
    assert await forget(world) == ForgetReply(erased=0, running=1)
    assert await world.settle(claim, ending) in FINISHED
    settled = await world.get(claim.job.id)
    assert await forget(world) == ForgetReply(erased=1)
    assert await world.get(claim.job.id) == husk(settled)


async def test_a_reason_given_before_is_kept_for_a_running_job(world: World) -> None:
    """S30, S52: asking twice keeps the first reason."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.cancel(claim.job.id, reason="first")
    await forget(world)
    assert (await world.get(claim.job.id)).because == "asked: first"


async def test_a_second_pass_finds_nothing_to_do(world: World) -> None:
    """S52: what is erased is not counted again, and time does not matter."""
    for state in sorted(FINISHED):
        await world.bring_to(state, task=state.value)
    assert await forget(world) == ForgetReply(erased=3)
    before = await world.sight()
    world.advance(100)
    assert await forget(world) == ForgetReply()
    assert await world.sight() == before


async def test_other_tenants_are_untouched(world: World) -> None:
    """S9, S52: also where their keys, tags and ids look alike."""
    await world.enqueue("globex", **PERSONAL)
    await world.run()
    await world.enqueue("globex", **{**PERSONAL, "idempotency_key": "two"})
    await world.enqueue("acme", **PERSONAL)
    before = await world.find_all(Scope("globex"))
    await forget(world)
    assert await world.find_all(Scope("globex")) == before
    assert (await world.census()).idempotency_keys == 2
    again = await world.send(world.new("globex", idempotency_key="zoe", fingerprint=b"f"))
    assert not again.enqueued[0].is_created


async def test_keys_are_free_again(world: World) -> None:
    """S13, S14, S52: also the key of a job that is no longer stored; a running job's key stays."""
    await world.enqueue(idempotency_key="gone")
    await world.run()
    world.advance(1)
    await world.prune(succeeded=0)
    await world.enqueue(idempotency_key="done", dedup_key="done")
    await world.run()
    await world.enqueue(idempotency_key="held", fingerprint=b"f")
    claim = await world.claim_one()
    await world.enqueue(idempotency_key="waits", dedup_key="waits", delay=SECOND)
    assert await forget(world) == ForgetReply(erased=2, running=1)
    assert ((await world.census()).idempotency_keys, (await world.census()).dedup_keys) == (1, 0)
    fresh = [
        world.new(idempotency_key=name, fingerprint=b"new", dedup_key=name)
        for name in ("gone", "done", "waits")
    ]
    again = await world.send(*fresh, world.new(idempotency_key="held", fingerprint=b"f"))
    assert [one.is_created for one in again.enqueued] == [True, True, True, False]
    assert again.enqueued[3].job.id == claim.job.id


async def test_a_pass_erases_no_more_than_asked(world: World) -> None:
    """S52: it says whether there was more, and passes lose nothing and take nothing twice."""
    await world.enqueue_many(3, **{**PERSONAL, "idempotency_key": None, "dedup_key": None})
    await world.run()
    await world.enqueue_many(2, delay=HOUR, tags=("zoe",))
    replies = [await forget(world, limit=2)]
    while replies[-1].cursor is not None and len(replies) < 9:
        replies.append(await forget(world, limit=2, cursor=replies[-1].cursor))
    assert [one.erased for one in replies] == [2, 2, 1]
    assert all(job == husk(job) for job in await world.find_all())
    assert await world.counts() == {
        ("acme", "default", State.CANCELLED): 4,
        ("acme", "default", State.SUCCEEDED): 1,
    }


async def test_exactly_as_many_as_there_are_is_the_end(world: World) -> None:
    """S52: there was no more."""
    await world.enqueue_many(2)
    assert await forget(world, limit=2) == ForgetReply(erased=2)


async def test_a_pass_looks_at_a_bounded_number_also_where_nothing_is_left_to_erase(world: World) -> None:
    """S52: 10,001 jobs, the last of them not erased; keys go only with the last pass.

    So many, because a pass looks at no more than 10,000.
    """
    for _ in range(10):
        await world.enqueue_many(MAX_BATCH_SIZE)
    cursor: str | None = None
    for _ in range(20):
        reply = await forget(world, cursor=cursor)
        cursor = reply.cursor
        if cursor is None:
            break
    assert cursor is None
    last = await world.enqueue(idempotency_key="zoe")
    first = await forget(world)
    assert (first.erased, first.cursor is None) == (0, False)
    assert (await world.census()).idempotency_keys == 1
    assert await forget(world, cursor=first.cursor) == ForgetReply(erased=1)
    assert (await world.get(last.id)).payload == b""
    assert (await world.census()).idempotency_keys == 0


@pytest.mark.parametrize("cursor", ["", "nonsense", "W10", "WzFd"])
async def test_a_foreign_cursor_of_forget_is_refused(world: World, cursor: str) -> None:
    """S52: an error, and nothing is erased."""
    job = await world.enqueue(**PERSONAL)
    with pytest.raises(ValueError, match="cursor"):
        await forget(world, cursor=cursor)
    assert await world.get(job.id) == job


async def test_nothing_can_be_searched_for_that_was_erased(world: World) -> None:
    """S51, S52: not by tag, correlation, creator or argument; queue and task still find what is left."""
    await world.enqueue(**PERSONAL)
    await world.run(PermanentFailure(TROUBLE))
    await forget(world)
    told = ({"tag": "zoe"}, {"correlation_id": "zoe-1"}, {"created_by": PERSONAL["created_by"]})
    for filters in (*told, {"where": (("name", "Zoe"),)}):
        assert await world.find_all(**filters) == []
    assert len(await world.find_all(queue="default", task="noop")) == 1
    assert len(await world.letters(error_class=ErrorClass.TRANSIENT)) == 1


async def test_a_tenant_goes_on_after_it_was_forgotten(world: World) -> None:
    """S52: new jobs are as any."""
    await world.enqueue()
    await forget(world)
    job = await world.enqueue(**PERSONAL)
    assert (await world.claim_one()).job.payload == job.payload


async def test_forgetting_everyone_is_refused(world: World) -> None:
    """S52: it needs the scope of one tenant; nothing is erased."""
    job = await world.enqueue(**PERSONAL)
    with pytest.raises(ValueError, match="tenant"):
        await world.store.upkeep.forget(ForgetRequest(scope=ALL, reason="", who="ops"))
    assert await world.get(job.id) == job
