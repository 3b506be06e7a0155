"""The order inside a tenant: due time and priority, then id (S19, S20). Between tenants it has no say."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scheduling.priority import sort_key
from tests.contract.world import ENDINGS, HANDED_BACK, MICRO, World, failed


async def _order(world: World, queue: str = "default") -> list[UUID]:
    return [claim.job.id for claim in await world.claim(100, queue)]


async def test_a_higher_priority_goes_first(world: World) -> None:
    """S19: at the same instant, in whatever order they came and of whatever task they are."""
    priorities = [0, -100, 7, 100, -1, 1, 99]
    jobs = [world.new(priority=p, task=f"task{n % 3}") for n, p in enumerate(priorities)]
    await world.send(*jobs)
    claims = await world.claim(9)
    assert [claim.job.priority for claim in claims] == sorted(priorities, reverse=True)


@pytest.mark.parametrize("priority", [-100, -1, 0, 1, 100])
@pytest.mark.parametrize("delay", [0, 90 * SECOND])
async def test_the_sort_key_is_the_due_time_less_six_seconds_a_point(
    world: World, priority: int, delay: int
) -> None:
    """S20: of the enqueue or of the `run_at`."""
    job = await world.enqueue(priority=priority, delay=delay)
    assert job.sort_key == world.now + delay - priority * 6 * SECOND
    assert (await world.get(job.id)).sort_key == job.sort_key


@pytest.mark.parametrize("points", [1, 10, 100])
@pytest.mark.parametrize(
    ("micros", "first"), [(-1, "urgent"), (0, "old"), (1, "old")], ids=["sooner", "the same", "later"]
)
async def test_a_point_of_priority_is_worth_six_seconds(
    world: World, points: int, micros: int, first: str
) -> None:
    """S20: a job that came earlier by more than that goes first; with equal keys the older id does."""
    old = await world.enqueue()
    world.advance(6 * points + micros * MICRO)
    urgent = await world.enqueue(priority=points)
    expected = [urgent.id, old.id] if first == "urgent" else [old.id, urgent.id]
    assert await _order(world) == expected


async def test_nobody_waits_behind_later_jobs_for_longer_than_the_difference(world: World) -> None:
    """S20: a stream of urgent jobs passes the humble one for ten minutes and not a second more."""
    await world.enqueue(priority=0, tags=("humble",))
    stream = []
    for _ in range(7):
        world.advance(100)
        stream.append((await world.enqueue(priority=100)).id)
    order = await _order(world)
    assert [id in stream for id in order] == [True] * 5 + [False] + [True] * 2


async def test_the_lowest_priority_ages_as_well(world: World) -> None:
    """S20: -100 goes behind ten minutes of plain jobs, not behind all of them."""
    low = await world.enqueue(priority=-100)
    plain = []
    for _ in range(3):
        world.advance(299)
        plain.append((await world.enqueue()).id)
    assert await _order(world) == [*plain[:2], low.id, plain[2]]


async def test_equal_keys_go_by_id_however_they_were_sent(world: World) -> None:
    """S20: in one batch and across batches of one instant, over all tasks."""
    new = [world.new(task=f"task{n % 2}") for n in range(6)]
    ids = [job.id for job in new]
    assert ids == sorted(ids)
    await world.send(*(new[n] for n in (4, 0, 5)))
    await world.send(*(new[n] for n in (3, 1, 2)))
    assert await _order(world) == ids


async def test_equal_keys_of_two_tasks_go_by_id_one_by_one(world: World) -> None:
    """S20, S42: the heads of two strands with the same key are told apart by their ids at every claim."""
    new = [world.new(task=f"task{n % 2}") for n in range(6)]
    await world.send(*reversed(new))
    assert [(await world.claim_one()).job.id for _ in new] == [job.id for job in new]


async def test_within_queue_tenant_and_priority_it_is_first_in_first_out(world: World) -> None:
    """S20: over several producers' batches and instants, claimed in batches of any size."""
    sent = []
    for number in (3, 1, 4, 1, 5):
        sent += [job.id for job in await world.enqueue_many(number, priority=5)]
        world.advance(MICRO)
    claimed: list[UUID] = []
    for total in (1, 2, 3, 8):
        claimed += [claim.job.id for claim in await world.claim(total)]
    assert claimed == sent


async def test_the_line_is_one_over_all_tasks_of_a_tenant(world: World) -> None:
    """S20, S42: of its strands the one whose first job has the lowest key goes first."""
    jobs = []
    for task in ("mail", "fax", "mail", "report", "fax", "mail"):
        jobs.append((await world.enqueue(task=task)).id)
        world.advance(1)
    assert await _order(world) == jobs


async def test_priority_has_no_say_between_tenants(world: World) -> None:
    """S20, S41: tenants take turns, whatever priorities they give their own jobs."""
    await world.enqueue_many(3, "modest", priority=-100)
    await world.enqueue_many(3, "pushy", priority=100)
    assert await world.tenants_served(6) == ["modest", "pushy"] * 3


async def test_priority_has_no_say_between_queues(world: World) -> None:
    """S20, S35: there the order of the queue requests decides."""
    await world.send(world.new(queue="a", priority=-100), world.new(queue="b", priority=100))
    claims = await world.claim(2, queue_requests=[("a", 1), ("b", 1)])
    assert [claim.job.queue for claim in claims] == ["a", "b"]


# ── other due times ──────────────────────────────────────────────────────────


async def test_a_job_for_later_has_the_place_of_its_time(world: World) -> None:
    """S20: behind what came before that time, before what came after, though it was sent first."""
    later = await world.enqueue(run_at=world.now + MINUTE)
    world.advance(59)
    before = await world.enqueue()
    world.advance(2)
    after = await world.enqueue()
    assert await _order(world) == [before.id, later.id, after.id]


async def test_a_job_for_later_is_helped_by_its_priority_only_once_it_is_due(world: World) -> None:
    """S19, S20: 100 points move it in the line, never its time."""
    urgent = await world.enqueue(delay=MINUTE, priority=100)
    plain = await world.enqueue()
    world.advance(60 - MICRO)
    assert [job.id for job in await world.peek()] == [plain.id]
    world.advance(MICRO)
    assert await _order(world) == [urgent.id, plain.id]


@pytest.mark.parametrize("how", ["retried", "snoozed", "unknown task"])
async def test_a_job_that_comes_back_has_the_place_of_that_time(world: World, how: str) -> None:
    """S20, S26, S29: the retry time is its due time now, its priority still counts."""
    job = await world.enqueue(priority=1)
    await world.settle(await world.claim_one(), ENDINGS[how])
    delayed = await world.get(job.id)
    assert delayed.run_at > world.now
    assert delayed.sort_key == sort_key(delayed.run_at, 1)
    world.advance((delayed.run_at - world.now) / SECOND - 7)
    before = await world.enqueue()
    world.advance(2)
    after = await world.enqueue()
    world.advance(5)
    assert await _order(world) == [before.id, job.id, after.id]


@pytest.mark.parametrize("how", ["handed back", "lost"])
async def test_a_job_that_goes_back_untouched_keeps_its_place(world: World, how: str) -> None:
    """S20, S32, S38: it stands where it stood, before what came after it."""
    job = await world.enqueue()
    claim = await world.claim_one()
    world.advance(1)
    younger = await world.enqueue()
    if how == "lost":
        await world.lose()
    else:
        await world.settle(claim, HANDED_BACK)
    back = await world.get(job.id)
    assert (back.run_at, back.sort_key) == (job.run_at, job.sort_key)
    assert await _order(world) == [job.id, younger.id]


async def test_run_now_makes_a_delayed_job_due_now(world: World) -> None:
    """S20, S53: its place is that of now, with its priority, neither of its old time nor first of all."""
    later = await world.enqueue(delay=HOUR)
    urgent = await world.enqueue(delay=HOUR, priority=1)
    await world.enqueue(run_at=world.now + HOUR)
    world.advance(1)
    before = await world.enqueue()
    world.advance(1)
    assert set(await world.run_now(later.id, urgent.id)) == {later.id, urgent.id}
    moved = await world.get(later.id)
    assert (moved.state, moved.because) == (State.READY, None)
    assert (moved.run_at, moved.sort_key) == (world.now, world.now)
    world.advance(1)
    after = await world.enqueue()
    assert await _order(world) == [urgent.id, before.id, later.id, after.id]


async def test_run_now_ends_the_wait_for_a_retry_and_nothing_else(world: World) -> None:
    """S23, S53: a failure stays counted; a ready or running job does not move."""
    job = await world.enqueue()
    await world.settle(await world.claim_one(), failed())
    assert await world.run_now(job.id) == (job.id,)
    assert (await world.get(job.id)).failures == 1
    before = await world.sight()
    assert await world.run_now(job.id) == ()
    assert await world.sight() == before
    claim = await world.claim_one()
    assert (claim.job.attempt, await world.run_now(job.id)) == (2, ())


async def test_a_pause_moves_nobody_in_the_line(world: World) -> None:
    """S20, S46: after a pause the line is as if there had been none."""
    first = await world.enqueue()
    await world.pause(SubjectKind.TENANT, "acme")
    assert await world.claim(5) == []
    world.advance(5)
    second = await world.enqueue()
    world.advance(5)
    urgent = await world.enqueue(priority=2)
    await world.resume(SubjectKind.TENANT, "acme")
    assert await _order(world) == [urgent.id, first.id, second.id]


async def test_of_many_tasks_of_a_tenant_the_first_job_goes_first(world: World) -> None:
    """S20, S42: each task is a strand of its own; their heads are compared again after each start."""
    numbers = [number * 37 % 60 for number in range(60)]
    jobs = await world.send(*(world.new(task=f"task{number % 12}", priority=number) for number in numbers))
    wanted = sorted(jobs.enqueued, key=lambda one: -one.job.priority)
    served = [*await world.claim(25), *await world.claim(60)]
    assert [claim.job.id for claim in served] == [one.job.id for one in wanted]
