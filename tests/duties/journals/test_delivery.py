"""A subscriber gets exactly one job for each event (S77)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from fairlane.duties.journals import deliver
from fairlane.model.instants import SECOND, to_datetime
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.subscribing import DROPPED_AFTER
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from tests.contract.world import World, ruined
from tests.duties.journals.crew import (
    append,
    die,
    event_of,
    events_of,
    happen,
    jobs_of,
    settle_down,
    subscriber,
    tell,
    teller,
)


async def test_a_subscriber_gets_one_job_of_the_system_for_each_event(world: World) -> None:
    """In its own queue, with the values that its task was published with, and the event as its argument."""
    task = subscriber(
        "page", "dead_letter", queue="pages", version=3, priority=7, max_attempts=9, timeout=5 * SECOND
    )
    await world.register("w1", task)
    job = await world.bring_to(State.DEAD, created_by="ann")
    at = world.now
    await tell(world)
    (made,) = await jobs_of(world, "page")
    assert (made.tenant, made.queue, made.version, made.priority) == ("system", "pages", 3, 7)
    assert (made.max_attempts, made.timeout, made.idempotency_key) == (9, 5 * SECOND, "event:page:1")
    event = event_of(made)
    assert event.pop("body") == {
        "job": str(job.job.id),
        "queue": "default",
        "task": "noop",
        "created_by": "ann",
        "because": "failed",
        "error_class": "non_retryable",
    }
    assert len(event.pop("subject")) > 0
    assert event == {
        "number": 1,
        "at": to_datetime(at),
        "kind": "dead_letter",
        "severity": "error",
        "addressee": "operators",
        "tenant": "acme",
        "count": 1,
    }
    assert isinstance(event["at"], datetime)
    assert event["at"].tzinfo is UTC


async def test_each_subscriber_gets_the_kinds_it_has_named(world: World) -> None:
    """From one worker or several."""
    await world.register("w1", subscriber("page", "dead_letter", "worker_lost"))
    await world.register("w2", subscriber("log", "worker_lost"), subscriber("work"))
    await die(world)
    await happen(world, "w9")
    await tell(world)
    assert (await events_of(world, "page"), await events_of(world, "log")) == ([1, 2], [2])
    assert await jobs_of(world, "work") == []


async def test_a_new_subscriber_begins_with_the_next_event(world: World) -> None:
    """Not with those that are stored."""
    await happen(world, "w1")
    await tell(world)
    await world.register("w1", subscriber("page", "worker_lost"))
    await happen(world, "w2")
    await tell(world)
    assert await events_of(world, "page") == [2]


async def test_many_events_come_in_batches_and_without_a_pause(world: World) -> None:
    """In the order of their numbers."""
    await world.register("w1", subscriber("page", "worker_lost"))
    number = 2 * deliver.BATCH + 1
    await happen(world, *(f"w{one}" for one in range(number)))
    duty = teller()
    assert [await duty(world.store) for _ in range(3)] == [0, 0, SECOND]
    numbers = [event_of(job)["number"] for job in await jobs_of(world, "page")]
    assert numbers == [*range(1, number + 1)]


async def test_a_closed_queue_makes_its_events_wait_and_is_named_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Other subscribers get theirs; when it is open again, all that was missed comes."""
    await world.register(
        "w1", subscriber("page", "worker_lost", queue="pages"), subscriber("log", "worker_lost")
    )
    await happen(world, "w1")
    await tell(world)
    await world.close(SubjectKind.QUEUE, "pages")
    duty = teller()
    with caplog.at_level(logging.WARNING):
        for name in ("w2", "w3"):
            await happen(world, name)
            await settle_down(world, duty)
            world.advance(deliver.REFUSED_FOR / SECOND)
    assert (await events_of(world, "page"), await events_of(world, "log")) == ([1], [1, 2, 3])
    # A store may warn of its own settings when it is first met.
    (record,) = [one for one in caplog.records if one.name == "fairlane.duties"]
    assert record.__dict__["event"] == "event_refused"
    assert "queue pages" in record.getMessage()
    await world.reopen(SubjectKind.QUEUE, "pages")
    await settle_down(world, duty)
    assert await events_of(world, "page") == [1, 2, 3]


async def test_a_refused_subscriber_is_not_tried_at_every_pass(world: World) -> None:
    """It rests, and the duty with it if nothing else happens."""
    await world.register("w1", subscriber("page", "worker_lost", queue="pages"))
    await world.close(SubjectKind.QUEUE, "pages")
    await happen(world, "w1")
    duty = teller()
    await settle_down(world, duty)
    await world.reopen(SubjectKind.QUEUE, "pages")
    world.advance(deliver.REFUSED_FOR / SECOND - 1)
    await settle_down(world, duty)
    assert await events_of(world, "page") == []
    world.advance(1)
    await settle_down(world, duty)
    assert await events_of(world, "page") == [1]


async def test_a_queue_with_room_for_some_gets_some(world: World) -> None:
    """As many as fit; the cursor stands where they end."""
    await world.declare(SubjectKind.QUEUE, "pages", QueueRules(max_waiting=3))
    await world.register("w1", subscriber("page", "worker_lost", queue="pages"))
    await happen(world, *(f"w{number}" for number in range(5)))
    duty = teller()
    await settle_down(world, duty)
    assert await events_of(world, "page") == [1, 2, 3]
    await world.run(queue="pages")
    world.advance(60)
    await settle_down(world, duty)
    assert await events_of(world, "page") == [1, 2, 3, 4]


async def test_a_task_that_takes_no_event_does_not_stop_the_others(world: World) -> None:
    """Nothing of ours declares one; whatever does, other subscribers get theirs."""
    await world.register(
        "w1", subscriber("odd", "worker_lost", schema=b"{}"), subscriber("page", "worker_lost")
    )
    await happen(world, "w1")
    await tell(world)
    assert (await events_of(world, "odd"), await events_of(world, "page")) == ([], [1])


# ── a subscriber that fails ──────────────────────────────────────────────────


async def test_a_subscriber_whose_job_dies_is_not_told_of_it(world: World) -> None:
    """Nor is another one of the same kind: they would keep one another busy without end."""
    await world.register("w1", subscriber("page", "dead_letter"), subscriber("log", "dead_letter"))
    await die(world)
    await tell(world)
    assert (await events_of(world, "page"), await events_of(world, "log")) == ([1], [1])
    for _ in range(2):
        claim = await world.claim_one()
        await world.settle(claim, ending=ruined())
    world.advance(60)
    await tell(world)
    assert (await events_of(world, "page"), await events_of(world, "log")) == ([1], [1])


# ── a subscriber that goes ───────────────────────────────────────────────────


async def test_while_no_worker_of_a_subscriber_lives_its_jobs_wait(world: World) -> None:
    """For a week after it was seen last; then it is dropped, and nothing is kept for it."""
    await world.register("w1", subscriber("page", "worker_lost"))
    await happen(world, "a")
    await tell(world)
    world.advance(DROPPED_AFTER / SECOND - 60)
    await happen(world, "b")
    await tell(world)
    assert await events_of(world, "page") == [1, 2]
    world.advance(60)
    await happen(world, "c")
    await tell(world)
    assert await events_of(world, "page") == [1, 2]


async def test_a_task_that_no_longer_subscribes_gets_no_more(world: World) -> None:
    """And when it does again, it begins anew."""
    for kinds in (("worker_lost",), (), ("worker_lost",)):
        await world.register("w1", subscriber("page", *kinds))
        await append(world, NewEntry(kind="worker_lost", subject=str(kinds) + str(world.now)))
        await tell(world)
        world.advance(1)
    assert await events_of(world, "page") == [1, 3]
