"""Purge cancels all waiting jobs of a scope, in batches (S46)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.instants import HOUR
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import MAX_BATCH_SIZE
from fairlane.store.contract.upkeep import PurgeReply
from tests.contract.world import HANDED_BACK, World, failed


@pytest.mark.parametrize("delay", [0, HOUR])
async def test_a_waiting_job_is_cancelled_because_purged(world: World, delay: int) -> None:
    """S46: with the reason, without a dead letter, and never having run."""
    job = await world.enqueue(delay=delay)
    now = world.advance(1)
    assert await world.purge() == PurgeReply(cancelled=1)
    assert await world.get(job.id) == msgspec.structs.replace(
        job, state=State.CANCELLED, because="purged: spring cleaning", settled_at=now
    )
    assert await world.letters() == []
    world.advance(7_200)
    await world.promote()
    assert await world.claim() == []


@pytest.mark.parametrize("state", [state for state in State if state not in {State.DELAYED, State.READY}])
async def test_a_job_that_does_not_wait_is_left_as_it_is(world: World, state: State) -> None:
    """S46: running jobs go on, finished ones stay, to the last field."""
    claim = await world.bring_to(state)
    world.advance(1)
    before = await world.sight()
    assert await world.purge() == PurgeReply()
    assert await world.sight() == before
    if state is State.RUNNING:
        assert await world.settle(claim) is State.SUCCEEDED


async def test_jobs_that_wait_for_another_attempt_are_purged_too(world: World) -> None:
    """S46: their history stays."""
    await world.enqueue()
    retried = await world.run(failed())
    assert await world.purge() == PurgeReply(cancelled=1)
    purged = await world.get(retried.id)
    assert (purged.state, purged.failures, purged.attempts) == (State.CANCELLED, 1, retried.attempts)


@pytest.mark.parametrize(
    ("options", "purged"),
    [
        ({}, "abcde"),
        ({"scope": Scope("acme")}, "abcd"),
        ({"scope": Scope("globex")}, "e"),
        ({"scope": Scope("initech")}, ""),
        ({"queue": "mail"}, "abe"),
        ({"queue": "mai"}, ""),
        ({"task": "send"}, "ace"),
        ({"queue": "mail", "task": "send"}, "ae"),
        ({"queue": "bulk", "task": "sort", "scope": Scope("acme")}, "d"),
        ({"queue": "bulk", "task": "sort", "scope": Scope("globex")}, ""),
    ],
    ids=str,
)
async def test_only_the_scope_queue_and_task_asked_for_are_purged(
    world: World, options: dict[str, Any], purged: str
) -> None:
    """S9, S46: each narrows, and what is outside is untouched."""
    names = {}
    for name, tenant, queue, task in (
        ("a", "acme", "mail", "send"),
        ("b", "acme", "mail", "sort"),
        ("c", "acme", "bulk", "send"),
        ("d", "acme", "bulk", "sort"),
        ("e", "globex", "mail", "send"),
    ):
        names[(await world.enqueue(tenant, queue=queue, task=task)).id] = name
    before = {job.id: job for job in await world.find_all()}
    assert await world.purge(**options) == PurgeReply(cancelled=len(purged))
    after = await world.find_all()
    assert sorted(names[job.id] for job in after if job.state is State.CANCELLED) == list(purged)
    assert all(job == before[job.id] for job in after if names[job.id] not in purged)


async def test_a_pass_cancels_the_oldest_first_and_says_whether_there_are_more(world: World) -> None:
    """S46: by enqueue, whatever their priority or time; exactly as many as there are is the end."""
    ids = []
    some: tuple[dict[str, Any], ...] = ({"priority": -9}, {"delay": HOUR}, {}, {"priority": 9}, {})
    for values in some:
        ids.append((await world.enqueue(**values)).id)
        world.advance(1)

    async def left() -> list[int]:
        return [ids.index(job.id) for job in await world.find_all() if job.state is not State.CANCELLED]

    first = await world.purge(limit=2)
    assert (first.cancelled, first.cursor is None) == (2, False)
    assert await left() == [4, 3, 2]
    assert await world.purge(limit=3, cursor=first.cursor) == PurgeReply(cancelled=3)
    assert await left() == []
    assert await world.purge() == PurgeReply()


async def test_a_pass_goes_on_from_its_cursor_and_from_nothing_else(world: World) -> None:
    """S46: what came to wait again before the cursor is met by a purge from the start."""
    early = await world.enqueue()
    claim = await world.claim_one()
    await world.enqueue_many(3)
    first = await world.purge(limit=2)
    await world.settle(claim, HANDED_BACK)
    assert await world.purge(cursor=first.cursor) == PurgeReply(cancelled=1)
    assert (await world.get(early.id)).state is State.READY
    assert await world.purge() == PurgeReply(cancelled=1)


async def test_a_pass_is_bounded_also_where_few_match(world: World) -> None:
    """S46: 10,050 jobs wait and the last of them matches: no single pass may read as far.

    So many, because a pass looks at no more than 10,000.
    """
    for _ in range(10):
        await world.enqueue_many(MAX_BATCH_SIZE)
    await world.enqueue_many(49)
    rare = await world.enqueue(task="rare")
    first = await world.purge(task="rare")
    assert (first.cancelled, first.cursor is None) == (0, False)
    total, cursor = 0, first.cursor
    for _ in range(9):
        reply = await world.purge(task="rare", cursor=cursor)
        total, cursor = total + reply.cancelled, reply.cursor
        if cursor is None:
            break
    assert (total, cursor) == (1, None)
    assert (await world.states()) == {State.READY: 10_049, State.CANCELLED: 1}
    assert (await world.get(rare.id)).state is State.CANCELLED


@pytest.mark.parametrize("cursor", ["", "nonsense", "W10", "WyJhIiwiYiJd"])
async def test_a_foreign_cursor_of_a_purge_is_refused(world: World, cursor: str) -> None:
    """S46: an error, and nothing is cancelled."""
    job = await world.enqueue()
    with pytest.raises(ValueError, match="cursor"):
        await world.purge(cursor=cursor)
    assert await world.get(job.id) == job


async def test_counts_and_keys_follow(world: World) -> None:
    """S14, S46, S51: de-duplication keys are free again, books are put right."""
    await world.enqueue(dedup_key="d")
    await world.enqueue(delay=HOUR)
    await world.purge()
    assert await world.counts() == {("acme", "default", State.CANCELLED): 2}
    assert ((await world.census()).tenants, (await world.census()).dedup_keys) == ((), 0)
    reply = await world.send(world.new(dedup_key="d"))
    assert [one.is_created for one in reply.enqueued] == [True]


async def test_a_paused_and_closed_queue_can_be_purged(world: World) -> None:
    """S46: that is when one wants to; what comes afterwards is none of its business."""
    await world.enqueue()
    await world.pause(SubjectKind.QUEUE, "default")
    await world.close(SubjectKind.QUEUE, "default")
    assert await world.purge(queue="default") == PurgeReply(cancelled=1)
    await world.resume(SubjectKind.QUEUE, "default")
    await world.reopen(SubjectKind.QUEUE, "default")
    later = await world.enqueue()
    assert (await world.claim_one()).job.id == later.id
