"""`app.dead.reprocess`: a dead job runs again as a new one."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane import (
    Closed,
    DuplicateJob,
    Fairlane,
    IdempotencyMismatch,
    InvalidJob,
    Queue,
    State,
    Task,
    UnknownTask,
    WrongState,
)
from fairlane.model.payload.encoding import checksum, decode_arguments, stored_fingerprint, verify
from tests.app.dead.conftest import Die
from tests.app.dead.test_dead_deciding import audited
from tests.app.world import World, note

EVERYTHING: dict[str, Any] = {
    "priority": 3,
    "tags": ["red"],
    "metadata": {"plan": "pro"},
    "created_by": "ann",
    "correlation_id": "c",
    "idempotency_key": "order-7",
    "dedup_key": "d",
    "max_attempts": 2,
    "timeout": 77,
    "expires_in": 600,
}


async def test_the_new_job_is_like_the_dead_one_and_linked_both_ways(
    world: World, app: Fairlane, die: Die
) -> None:
    """Byte for byte, with fresh counters and no expiry (S75)."""
    first = await die(7, **EVERYTHING)
    with app.acting_as("ann"):
        job = await app.dead.areprocess(first.id, note="fixed in 4.2")
    old, new = world.stored()
    assert (old.id, new.id, job.created) == (first.id, job.id, True)
    assert (new.payload, new.checksum, new.version) == (old.payload, old.checksum, old.version)
    assert (new.parent_id, new.correlation_id, new.created_by) == (old.id, "c", "ann")
    assert (new.priority, new.tags, new.metadata) == (old.priority, old.tags, old.metadata)
    assert (new.max_attempts, new.timeout, new.queue, new.dedup_key) == (2, old.timeout, old.queue, "d")
    assert (new.stuck_after, new.on_stuck, new.at_most_once) == (old.stuck_after, old.on_stuck, False)
    assert (new.state, new.attempt, new.failures, new.expires_at) == (State.READY, 0, 0, None)
    assert new.idempotency_key == "order-7#r1"
    letter = await app.dead.aget(first.id)
    assert (letter.review, letter.new_job, letter.decided_by) == ("reprocessed", job.id, "ann")
    assert [(one.action, one.text) for one in letter.notes] == [("reprocess", "fixed in 4.2")]
    ((action, subject, body),) = audited(world)
    assert (action, subject, body["after"]["new_job"]) == ("dead.reprocess", str(first.id), str(job.id))


async def test_a_job_without_a_key_gets_one_from_its_id_and_later_runs_count_on(
    world: World, app: Fairlane, die: Die
) -> None:
    """The run of a run is number two."""
    first = await die()
    second = await app.dead.areprocess(first.id)
    assert second.idempotency_key == f"{first.id}#r1"
    await world.fail()
    third = await app.dead.areprocess(second.id)
    assert third.idempotency_key == f"{first.id}#r2"
    assert (await app.dead.aget(second.id)).new_job == third.id


async def test_the_key_is_made_as_the_setting_says(world: World) -> None:
    """With the time of this machine, for one."""
    app = world.app(config={"dead_letters": {"key": "{key}_retry_{time}"}})
    clock = world.drive(app)
    task = app.task(name="bill")(note).using(tenant="acme", idempotency_key="order-7")
    dead = await task.aenqueue(7)
    await world.fail()
    job = await app.dead.areprocess(dead.id)
    assert job.idempotency_key == f"order-7_retry_{clock.now // 1_000_000}.{clock.now % 1_000_000:06}"


async def test_a_key_that_would_be_too_long_is_the_new_job_s_id(app: Fairlane, die: Die) -> None:
    """Rather than a job that cannot run again."""
    dead = await die(7, idempotency_key="k" * 255)
    job = await app.dead.areprocess(dead.id)
    assert job.idempotency_key == str(job.id)


async def test_arguments_are_merged_and_checked_as_in_an_edit(world: World, app: Fairlane, die: Die) -> None:
    """Those that are not given stay; the fingerprint is that of the new ones."""
    dead = await die(7)
    job = await app.dead.areprocess(dead.id, arguments={"day": "2027-02-28"})
    stored = world.stored()[1]
    assert decode_arguments(stored.payload) == {"order": 7, "day": date(2027, 2, 28), "who": "ada"}
    verify(stored.payload, stored.checksum)
    (key,) = [one for one in world.oracle.jobs._core.books.keys.values() if one.id == job.id]
    assert key.fingerprint == stored_fingerprint("bill", stored.payload)


async def test_one_error_names_every_bad_argument_and_nothing_runs(
    world: World, app: Fairlane, die: Die
) -> None:
    """The letter stays pending."""
    dead = await die(7)
    with pytest.raises(InvalidJob) as caught:
        await app.dead.areprocess(dead.id, arguments={"order": "seven", "extra": 1})
    assert [one.field for one in caught.value.problems] == ["arguments.order", "arguments.extra"]
    assert str(caught.value).startswith(f"dead letter {dead.id} was not run again, 2 problem(s):\n")
    with pytest.raises(InvalidJob, match="arguments: is of type list; give a dict"):
        await app.dead.areprocess(dead.id, arguments=["order"])  # type: ignore[arg-type] # it is about that
    with pytest.raises(UnknownTask):
        await world.app().dead.areprocess(dead.id, arguments={"order": 8})
    assert len(world.stored()) == 1
    assert (await app.dead.aget(dead.id)).review == "pending"


async def test_another_queue_may_be_named_if_it_is_declared(world: World) -> None:
    """A misspelled one is refused with those that there are."""
    app = world.app(queues=[Queue("bulk")])
    task = app.task(name="bill")(note).using(tenant="acme")
    dead = await task.aenqueue(7)
    await world.fail()
    for queue, words in (("bulkk", "bulkk is not declared"), ("A b", "'A b' is not a legal name")):
        with pytest.raises(InvalidJob, match=f"to_queue: {words}"):
            await app.dead.areprocess(dead.id, to_queue=queue)
    assert (await app.dead.areprocess(dead.id, to_queue="bulk")).queue == "bulk"


async def test_where_queues_are_open_it_must_be_the_home_of_a_task(
    world: World, app: Fairlane, die: Die
) -> None:
    """Nobody would serve another one."""
    app.task(name="other", queue="slow")(note)
    dead = await die()
    with pytest.raises(InvalidJob, match=r"to_queue: sloow is not declared; .*default, slow"):
        await app.dead.areprocess(dead.id, to_queue="sloow")
    assert (await app.dead.areprocess(dead.id, to_queue="slow")).queue == "slow"


async def test_fixed_queues_stay_fixed(world: World) -> None:
    """S11: also for a run again."""
    app = world.app(fixed_queues=True)
    dead = await app.task(name="bill")(note).using(tenant="acme").aenqueue(7)
    await world.fail()
    with pytest.raises(InvalidJob, match="to_queue: is given, but tasks stay in their home queues"):
        await app.dead.areprocess(dead.id, to_queue="default")


async def test_of_two_people_at_once_one_makes_a_job_and_both_get_it(
    world: World, app: Fairlane, die: Die
) -> None:
    """And so does who comes later."""
    dead = await die()
    one, two = await asyncio.gather(app.dead.areprocess(dead.id), app.dead.areprocess(dead.id))
    later = await app.dead.areprocess(dead.id)
    assert one.id == two.id == later.id
    assert sorted([one.created, two.created]) == [False, True]
    assert later.created is False
    assert len(world.stored()) == 2


async def test_the_letter_says_how_the_new_job_ended(world: World, app: Fairlane, die: Die) -> None:
    """Once a duty has looked."""
    from fairlane.model.scope import Scope  # noqa: PLC0415 (of this test alone)
    from fairlane.store.contract.dead import FollowRequest  # noqa: PLC0415 (as above)

    dead = await die()
    await app.dead.areprocess(dead.id)
    await world.succeed()
    await world.oracle.dead.follow(FollowRequest(scope=Scope.all()))
    assert (await app.dead.aget(dead.id)).new_job_state is State.SUCCEEDED


async def test_a_run_whose_job_is_gone_is_not_made_again(world: World, app: Fairlane, die: Die) -> None:
    """It may have done its work."""
    dead = await die()
    job = await app.dead.areprocess(dead.id)
    del world.oracle.jobs._core.books.jobs[job.id]
    with pytest.raises(WrongState, match=f"job {job.id} ran in its place and is no longer stored"):
        await app.dead.areprocess(dead.id)


async def test_policies_refuse_it_and_waiting_limits_do_not(
    world: World, app: Fairlane, die: Die, billing: Task[..., None]
) -> None:
    """S75: in words that name what is in the way."""
    dead = await die(7, dedup_key="d", idempotency_key="order-7")
    await app.queues.aclose("default", reason="moving")
    with pytest.raises(Closed, match="queue default is closed"):
        await app.dead.areprocess(dead.id)
    await app.queues.areopen("default")
    holder = await billing.using(dedup_key="d").aenqueue(8)
    with pytest.raises(DuplicateJob, match=f"was not run again: job {holder.id} holds its de-duplication"):
        await app.dead.areprocess(dead.id)
    await app.jobs.acancel(holder.id)
    taken = await billing.using(idempotency_key="order-7#r1").aenqueue(9)
    with pytest.raises(IdempotencyMismatch) as caught:
        await app.dead.areprocess(dead.id)
    assert caught.value.existing == taken.id
    assert (await app.dead.aget(dead.id)).review == "pending"


async def test_arguments_that_are_gone_or_damaged_are_not_run(world: World, app: Fairlane, die: Die) -> None:
    """A forgotten tenant's jobs have none."""
    dead = await die()
    jobs = world.oracle.jobs._core.books.jobs
    whole = world.one()
    for bad, words in (
        (replace(whole, checksum=1), "its arguments are damaged"),
        (replace(whole, payload=b"", checksum=0), "its arguments are no longer stored"),
        (
            replace(whole, payload=b"{}", checksum=checksum(b"{}")),
            "its arguments cannot be read: the payload",
        ),
    ):
        jobs[dead.id] = bad
        with pytest.raises(WrongState, match=words):
            await app.dead.areprocess(dead.id)
    assert len(world.stored()) == 1


async def test_a_letter_that_is_forgotten_or_deleted_meanwhile_makes_no_job(
    world: World, app: Fairlane, die: Die, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading it and running it again."""
    dead = await die()
    jobs = world.oracle.jobs._core.books.jobs
    read = app.dead._letter

    async def forgotten_after(*args: Any) -> Any:
        letter = await read(*args)
        jobs[dead.id] = replace(jobs[dead.id], payload=b"", checksum=0)
        return letter

    monkeypatch.setattr(app.dead, "_letter", forgotten_after)
    with pytest.raises(WrongState, match="its tenant was forgotten"):
        await app.dead.areprocess(dead.id)
    assert len(world.stored()) == 1
