"""Count what meets filters, a bounded number of jobs a call, with nothing counted twice (S51)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import MAX_BATCH_SIZE, JobTally, TallyPage, TallyRequest
from fairlane.store.contract.request import MAX_ROWS_READ
from tests.contract.read.test_find import CASES, POPULATION
from tests.contract.world import ALL, SNOOZED, SUCCEEDED, World, failed, ruined


async def tally_all(world: World, scope: Scope = ALL, **filters: Any) -> tuple[int, int]:
    """Count to the end: how many matched, how many were looked at."""
    request = TallyRequest(**{"scope": scope, **filters})
    matched = looked_at = 0
    for _ in range(30):
        page = await world.store.jobs.tally(request)
        assert page.looked_at <= request.limit + 1  # and the one that is in no index
        assert sum(one.jobs for one in page.tallies) <= page.looked_at
        matched += sum(one.jobs for one in page.tallies)
        looked_at += page.looked_at
        if page.cursor is None:
            return matched, looked_at
        request = msgspec.structs.replace(request, cursor=page.cursor)
    message = "this cursor leads nowhere"
    raise AssertionError(message)


async def test_an_empty_store_has_nothing_to_look_at(world: World) -> None:
    """S51: nothing found, nothing looked at, the end."""
    assert await world.store.jobs.tally(TallyRequest(scope=ALL, tag="x")) == TallyPage((), 0, None)


@pytest.mark.parametrize(("filters", "found"), CASES)
async def test_filters_count_what_they_find(world: World, filters: dict[str, Any], found: str) -> None:
    """S51: a tally counts exactly the jobs that `find` gives for the same filters, by queue and state."""
    dawn = world.now
    for name, values in POPULATION.items():
        await world.enqueue(**values)
        if name in "ac":
            await world.run(SUCCEEDED if name == "a" else ruined(), values["queue"])
        world.advance(1)
    times = {key: dawn + value for key, value in filters.items() if key in {"since", "until"}}
    states = {key: frozenset(value) for key, value in filters.items() if key == "states"}
    asked = {"scope": ALL, **filters, **times, **states}
    page = await world.store.jobs.tally(TallyRequest(**asked))
    expected: dict[tuple[str, State, str], list[JobRecord]] = {}
    for job in await world.find_all(**asked):
        word = (job.because or "").partition(":")[0]
        expected.setdefault((job.queue, job.state, word), []).append(job)
    assert page.tallies == tuple(
        JobTally(*key, len(jobs), min(job.enqueued_at for job in jobs))
        for key, jobs in sorted(expected.items())
    )
    assert page.cursor is None
    assert len(found) <= page.looked_at <= len(POPULATION)


@pytest.mark.parametrize("limit", [1, 2, 3, MAX_ROWS_READ])
@pytest.mark.parametrize(("filters", "found"), CASES)
async def test_pages_of_any_size_add_up_to_the_same(
    world: World, filters: dict[str, Any], found: str, limit: int
) -> None:
    """S51: no job twice, none left out, also where a page ends exactly at the end."""
    dawn = world.now
    for name, values in POPULATION.items():
        await world.enqueue(**values)
        if name in "ac":
            await world.run(SUCCEEDED if name == "a" else ruined(), values["queue"])
        world.advance(1)
    times = {key: dawn + value for key, value in filters.items() if key in {"since", "until"}}
    states = {key: frozenset(value) for key, value in filters.items() if key == "states"}
    matched, _ = await tally_all(world, **{**filters, **times, **states}, limit=limit)
    assert matched == len(found)


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_what_is_delayed_is_counted_queue_after_queue(world: World, limit: int) -> None:
    """S51: wherever a page ends; also for one queue, and with other jobs that are not delayed."""
    for number in range(6):
        await world.enqueue(queue=f"q{number % 3}", delay=(9 - number) * 1_000_000)
        await world.enqueue(queue=f"q{number % 2}")
    delayed = frozenset({State.DELAYED})
    assert (await tally_all(world, states=delayed, limit=limit))[0] == 6
    assert (await tally_all(world, states=delayed, queue="q1", limit=limit))[0] == 2
    assert (await tally_all(world, Scope("acme"), states=delayed, limit=limit))[0] == 6
    assert (await tally_all(world, states=delayed, tag="none", limit=limit))[0] == 0


@pytest.mark.parametrize("limit", [0, -1, MAX_ROWS_READ + 1])
async def test_a_call_looks_at_one_job_at_least_and_no_more_than_it_may(world: World, limit: int) -> None:
    """S51: what is out of bounds is refused."""
    with pytest.raises(ValueError, match="looks at 1 to 10000 jobs"):
        await world.store.jobs.tally(TallyRequest(scope=ALL, limit=limit))


async def test_jobs_are_counted_apart_by_what_they_wait_for(world: World) -> None:
    """S23, S51: by the first word of `because`, whatever its detail."""
    first = await world.enqueue(delay=60_000_000)
    world.advance(1)
    await world.enqueue(delay=60_000_000)
    for _ in range(2):
        await world.enqueue()
        await world.run(failed())
    await world.enqueue()
    await world.run(SNOOZED)
    page = await world.store.jobs.tally(TallyRequest(scope=ALL, states=frozenset({State.DELAYED})))
    assert [(one.reason, one.jobs) for one in page.tallies] == [("retry", 2), ("snooze", 1), ("time", 2)]
    assert page.tallies[2].first_at == first.enqueued_at


async def test_ends_are_counted_apart_by_their_reason(world: World) -> None:
    """S23, S51: dead and cancelled jobs have a `because`, too; those that succeeded have none."""
    asked, condemned, _ = await world.enqueue_many(3)
    await world.cancel(asked.id)
    await world.condemn(condemned.id)
    await world.run()
    page = await world.store.jobs.tally(TallyRequest(scope=ALL))
    assert [(one.state, one.reason, one.jobs) for one in page.tallies] == [
        (State.CANCELLED, "asked", 1),
        (State.DEAD, "condemned", 1),
        (State.SUCCEEDED, "", 1),
    ]


async def test_a_tag_inside_another_is_not_counted(world: World) -> None:
    """S4, S51: tags compare whole, also where one is packed into the bytes of another."""
    await world.enqueue(tags=("\u00a2re",))
    await world.enqueue(tags=("redder", "bored"))
    await world.enqueue(tags=("re",))
    assert (await tally_all(world, tag="re"))[0] == 1


async def test_the_first_job_of_a_correlation_is_counted_with_those_that_follow(world: World) -> None:
    """S22, S51: its correlation id is its own id, which was given to nobody else."""
    first = await world.enqueue()
    await world.enqueue(correlation_id=str(first.id), parent_id=first.id)
    await world.enqueue()
    assert (await tally_all(world, correlation_id=str(first.id))) == (2, 2)
    assert (await tally_all(world, parent_id=first.id))[0] == 1
    assert (await tally_all(world, correlation_id=str(first.id), until=first.enqueued_at))[0] == 0


async def test_a_tenant_is_not_told_how_much_others_have(world: World) -> None:
    """S9, S51: neither counted nor among what was looked at, also under a correlation id that both use."""
    await world.enqueue_many(3, "globex", correlation_id="r1", tags=("x",))
    await world.enqueue("acme", correlation_id="r1", tags=("x",))
    await world.enqueue("acme")
    acme = Scope("acme")
    assert await tally_all(world, acme, tag="x") == (1, 2)
    assert await tally_all(world, acme, correlation_id="r1") == (1, 1)
    assert (await tally_all(world, acme, states=frozenset({State.READY}), tag="x"))[0] == 1
    assert await tally_all(world, Scope("initech"), correlation_id="r1") == (0, 0)


async def test_each_job_is_counted_once_over_all_pages(world: World) -> None:
    """S51: 10,050 jobs, of which one call looks at 10,000; a page of zeros comes with a cursor, too.

    The jobs that matched are at both ends: one call cannot have seen them all.
    """
    await world.enqueue(tags=("rare",))
    for _ in range(10):
        await world.enqueue_many(MAX_BATCH_SIZE)
    await world.enqueue_many(48)
    last = await world.enqueue("globex", tags=("rare",))
    page = await world.store.jobs.tally(TallyRequest(scope=ALL, tag="rare"))
    assert (page.looked_at, sum(one.jobs for one in page.tallies)) == (MAX_ROWS_READ, 1)
    assert page.cursor is not None
    assert await tally_all(world, tag="rare") == (2, 10_050)
    assert await tally_all(world, tag="rare", states=frozenset({State.READY})) == (2, 10_050)
    assert await tally_all(world, Scope("acme"), tag="rare") == (1, 10_049)
    assert (await tally_all(world, tag="rare", since=last.enqueued_at - 1))[0] >= 1
    assert (await tally_all(world))[0] == 10_050


async def test_work_that_enqueues_more_is_not_taken_for_finished(world: World) -> None:
    """S51: oldest first: whoever meets a finished job has what that job enqueued still ahead.

    A page ends before a job that still runs. It enqueues another and ends; the pages after that find both.
    """
    for _ in range(10):
        await world.enqueue_many(MAX_BATCH_SIZE, tags=("import",))
    parent = await world.enqueue(queue="late", tags=("import",))
    request = TallyRequest(scope=ALL, tag="import")
    page = await world.store.jobs.tally(request)
    assert page.cursor is not None
    world.advance(1)
    await world.enqueue(queue="late", tags=("import",), parent_id=parent.id)
    await world.run(SUCCEEDED, "late")
    rest = await world.store.jobs.tally(msgspec.structs.replace(request, cursor=page.cursor))
    assert [(one.queue, one.state) for one in rest.tallies] == [
        ("late", State.READY),
        ("late", State.SUCCEEDED),
    ]


@pytest.mark.parametrize("cursor", ["", "x", "nonsense", "bm9uc2Vuc2U", "W10", "é", "AAAA" * 50])
async def test_a_foreign_cursor_is_refused(world: World, cursor: str) -> None:
    """S51: a cursor that no page came with is an error, not an empty answer."""
    await world.enqueue_many(3)
    with pytest.raises(ValueError, match="cursor"):
        await world.store.jobs.tally(TallyRequest(scope=ALL, cursor=cursor))
