"""The first ready job of a tenant in a queue, and since when it could run (S93)."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind, TaskRules, TenantRules
from fairlane.model.scope import Scope
from fairlane.store.contract.line import MAX_LINES, FirstInLine, JobLine
from tests.contract.world import ALL, World, failed

ACME = ("acme", "default")


async def first(world: World, *line: str) -> UUID | None:
    """Return the id of the first job of a line; None if none is ready."""
    found = await world.first_in_line(line or ACME)  # type: ignore[arg-type]
    return found[0].id if found else None


async def test_the_job_that_starts_next_of_its_tenant_is_first(world: World) -> None:
    """S93: by priority and time over all tasks, as claims go; delayed and running jobs are in no line."""
    await world.enqueue(delay=60 * SECOND)
    assert await first(world) is None
    oldest = await world.enqueue(task="slow")
    world.advance(1)
    younger = await world.enqueue()
    assert await first(world) == oldest.id
    urgent = await world.enqueue(task="slow", priority=9)
    assert await first(world) == urgent.id
    for expected in (urgent, oldest, younger):
        assert await first(world) == expected.id
        assert (await world.claim_one()).job.id == expected.id
    assert await first(world) is None
    world.advance(60)
    await world.promote()
    assert await first(world) is not None


async def test_it_says_since_when_the_job_could_run(world: World) -> None:
    """S93: not since it was enqueued, if it was to run later."""
    job = await world.enqueue(delay=60 * SECOND)
    world.advance(75)
    await world.promote()
    assert await world.first_in_line(ACME) == (FirstInLine(JobLine(*ACME), job.id, job.run_at),)
    assert job.run_at - job.enqueued_at == 60 * SECOND


async def test_lines_are_apart_and_sorted(world: World) -> None:
    """S93: each tenant has one in each queue; one asked for twice is answered once, an empty one not."""
    there = [
        (await world.enqueue(tenant, queue=queue)).id
        for tenant in ("acme", "globex")
        for queue in ("bulk", "mail")
    ]
    lines = [("globex", "mail"), ("acme", "mail"), ("globex", "bulk"), ("acme", "bulk"), ("acme", "mail")]
    found = await world.first_in_line(*lines, ("acme", "mai"), ("nobody", "mail"), ("acme", "none"))
    assert [one.id for one in found] == there
    assert [one.line for one in found] == sorted(JobLine(*line) for line in set(lines))
    assert await world.first_in_line() == ()


@pytest.mark.parametrize("held", ["queue", "tenant", "task", "limit", "rate", "gate"])
async def test_a_job_that_may_not_be_claimed_is_first_nevertheless(world: World, held: str) -> None:
    """S93: whoever looks wants to know what waits, and asks `explain` why."""
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
    if held in {"queue", "tenant", "task"}:
        name = {"queue": "default", "tenant": "acme", "task": "noop"}[held]
        await world.pause(SubjectKind(held), name)
    elif held == "limit":
        limits = {"default": Limits(running=0)}
        await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits=limits))
    elif held == "rate":
        await world.declare(SubjectKind.QUEUE, "default", QueueRules(rate=Rate(1, "day")))
        await world.enqueue("globex")
        assert await world.claim(1)
    else:
        await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    job = await world.enqueue()
    await world.enqueue()
    assert await world.claim(5) == []  # parks what it meets
    assert await first(world) == job.id
    assert (await world.explain(job.id)).reason in {"paused", "running_limit", "rate", "gate"}


async def test_a_line_moves_up_when_its_first_job_leaves(world: World) -> None:
    """S93: however it leaves: cancelled, condemned, or made later by a failure."""
    a, b, c, d = await world.enqueue_many(4)
    await world.cancel(a.id)
    assert await first(world) == b.id
    await world.condemn(b.id)
    assert await first(world) == c.id
    assert (await world.run(failed())).id == c.id
    assert await first(world) == d.id
    assert await first(world) != a.id


async def test_a_tenant_with_very_many_tasks_has_one_first_job(world: World) -> None:
    """S93: it is found over all of them."""
    jobs = [await world.enqueue(task=f"task{number}", priority=number % 7) for number in range(130)]
    expected = sorted(jobs, key=lambda job: (job.sort_key, job.id.bytes))
    for job in expected[:30]:
        assert await first(world) == job.id
        assert (await world.claim_one()).job.id == job.id


async def test_under_the_scope_of_one_tenant_others_have_no_line(world: World) -> None:
    """S9: as if they had no jobs."""
    job = await world.enqueue("acme")
    await world.enqueue("globex")
    lines = [("acme", "default"), ("globex", "default")]
    assert len(await world.first_in_line(*lines)) == 2
    found = await world.first_in_line(*lines, scope=Scope("acme"))
    assert [(one.line.tenant, one.id) for one in found] == [("acme", job.id)]


async def test_a_thousand_lines_are_answered_and_no_more(world: World) -> None:
    """S93: a look is bounded."""
    for start in range(0, MAX_LINES, 500):
        await world.send(*(world.new(f"t{number}") for number in range(start, start + 500)))
    lines = [(f"t{number}", "default") for number in range(MAX_LINES)]
    assert len(await world.first_in_line(*lines, scope=ALL)) == MAX_LINES
    with pytest.raises(ValueError, match="at most 1000"):
        await world.first_in_line(*lines, ("one", "more"))
