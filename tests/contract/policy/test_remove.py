"""Removing a queue at run time: its whole policy goes, once nothing waits or runs in it (S54)."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from fairlane.model.errors import InsideTenant
from fairlane.model.journal.operations import Operation, entry_of
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import PolicyChange, QueueRules, Subject, SubjectKind, TaskRules
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import ListRequest, SubjectRequest
from tests.contract.world import ALL, OPERATION, World

BULK: Final = Subject(SubjectKind.QUEUE, "bulk")


async def remove(
    world: World, subject: Subject = BULK, operation: Operation | None = OPERATION, scope: Scope = ALL
) -> int:
    """Remove a queue."""
    request = SubjectRequest(scope=scope, subject=subject, who="ann", operation=operation)
    return await world.store.policies.remove(request)


async def set_everything(world: World) -> None:
    """Declare, override, pause and close the queue."""
    await world.declare(SubjectKind.QUEUE, "bulk", QueueRules(max_waiting=5))
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=7))
    await world.pause(SubjectKind.QUEUE, "bulk")
    await world.close(SubjectKind.QUEUE, "bulk")


async def listed(world: World) -> list[str]:
    """Return the names of the queues that are known."""
    views = await world.store.policies.list(ListRequest(scope=ALL, kind=SubjectKind.QUEUE))
    return [view.subject.name for view in views]


async def test_nothing_of_the_policy_is_left(world: World) -> None:
    """S54: declared values, override, pause and close; the queue is not listed any more."""
    plain = await world.view(SubjectKind.QUEUE, "bulk")
    await set_everything(world)
    assert await listed(world) == ["bulk"]
    assert await remove(world) == 0
    assert await world.view(SubjectKind.QUEUE, "bulk") == plain
    assert await listed(world) == []


async def test_the_next_job_finds_a_queue_without_limits(world: World) -> None:
    """S46, S54: it is admitted and claimed, although the queue was closed, paused and full."""
    await set_everything(world)
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(limits=Limits(running=0)))
    await remove(world)
    job = await world.enqueue(queue="bulk")
    assert [claim.job.id for claim in await world.claim(queue="bulk")] == [job.id]


@pytest.mark.parametrize("state", [State.READY, State.DELAYED, State.RUNNING])
async def test_a_queue_with_an_unfinished_job_stays_as_it_is(world: World, state: State) -> None:
    """S54: the reply counts them, and nothing has changed nor is noted."""
    for tenant in ("acme", "globex"):
        await world.enqueue(tenant, queue="bulk", delay=60 if state is State.DELAYED else 0)
    if state is State.RUNNING:
        assert len(await world.claim(2, "bulk")) == 2
    await set_everything(world)
    before = await world.view(SubjectKind.QUEUE, "bulk")
    assert await remove(world) == 2
    assert await world.view(SubjectKind.QUEUE, "bulk") == before
    assert await world.appended("audit") == []


async def test_jobs_that_have_ended_do_not_keep_a_queue(world: World) -> None:
    """S54: they stay, and so does its name as long as they are kept. Other queues matter as little."""
    await world.bring_to(State.DEAD, queue="bulk")
    await world.enqueue(queue="other")
    await set_everything(world)
    assert await remove(world) == 0
    assert (await world.view(SubjectKind.QUEUE, "bulk")).declared is None
    assert await listed(world) == ["bulk", "other"]
    assert (await world.counts())["acme", "bulk", State.DEAD] == 1


async def test_it_is_noted_with_all_that_it_was(world: World) -> None:
    """S60: once; removing what is not there is not noted."""
    await set_everything(world)
    view = await world.view(SubjectKind.QUEUE, "bulk")
    for _ in range(2):
        assert await remove(world) == 0
    parts = ("declared", "override", "paused", "closed")
    was = {part: msgspec.to_builtins(getattr(view, part)) for part in parts}
    assert await world.appended("audit") == [entry_of(OPERATION, "queue bulk", None, was, None)]


async def test_without_an_operation_nothing_is_noted(world: World) -> None:
    """S60: but it is removed."""
    await set_everything(world)
    await remove(world, operation=None)
    assert await listed(world) == []
    assert await world.appended("audit") == []


async def test_only_queues_are_removed_and_by_nobody_inside_a_tenant(world: World) -> None:
    """S9, S54: a tenant's, a task's or a gate's policy is reset instead."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    for kind in (SubjectKind.TENANT, SubjectKind.TASK, SubjectKind.GATE):
        with pytest.raises(ValueError, match="only a queue can be removed"):
            await remove(world, Subject(kind, "noop"))
    await set_everything(world)
    with pytest.raises(InsideTenant):
        await remove(world, scope=Scope("acme"))
    assert await listed(world) == ["bulk"]
    assert (await world.view(SubjectKind.TASK, "noop")).declared == TaskRules(gate="door")
