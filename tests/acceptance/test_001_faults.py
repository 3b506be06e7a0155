"""Description B, what goes wrong: kills in the middle of a batch, lost workers, races, stale holders."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane, JobNotFound, State, StoreError, Task
from fairlane.duties.by_hand import run_duty
from fairlane.model.instants import DAY, SECOND
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import Succeeded
from fairlane.store.contract.claims import Renewal, RenewRequest
from tests.acceptance.presets import work
from tests.acceptance.world import ALL, LEASE, ON_A_FILE, World
from tests.duties.archive.files import archived, files, read_file
from tests.seconds import counted

ROOT = Path(__file__).parents[2]
BOOM = RuntimeError("boom")


@pytest.fixture
def task(world: World) -> Task[..., Any]:
    """Return a task of the queue `default`, for one tenant."""
    return world.app().task(name="work")(work).using(tenant="acme")


def killed_producer(url: str, after: int) -> int:
    """Let a producer enqueue batches and kill it after so many; return the last batch that it knows of."""
    with subprocess.Popen(  # noqa: S603 (our own program)
        (sys.executable, "-m", "tests.acceptance.producer", url),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        last = -1
        try:
            for line in child.stdout:
                last = int(line)
                if last >= after:
                    break
        finally:
            child.kill()
        last = max([last, *map(int, child.stdout.read().splitlines())])
    assert last >= after
    return last


async def batches(app: Fairlane) -> Counter[str]:
    """Count the stored jobs of each batch."""
    found: Counter[str] = Counter()
    cursor = None
    while True:
        page = await app.jobs.afind(limit=1_000, cursor=cursor)
        found.update(tag for job in page for tag in job.tags)
        cursor = page.cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("after", [0, 3, 20])
async def test_001_cp1_7_a_batch_of_ten_is_stored_whole_or_not_at_all(tmp_path: Path, after: int) -> None:
    """Whenever the process is killed."""
    url = f"sqlite:///{tmp_path}/fairlane.db"
    await asyncio.to_thread(killed_producer, url, after)
    async with Fairlane(url) as app:
        assert set((await batches(app)).values()) == {10}


@pytest.mark.parametrize("after", [1, 15])
async def test_001_nf_5_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, after: int) -> None:
    """All of it, which is more than the 99.9 % asked for; at most the batch under way comes on top."""
    url = f"sqlite:///{tmp_path}/fairlane.db"
    last = await asyncio.to_thread(killed_producer, url, after)
    async with Fairlane(url) as app:
        stored = await batches(app)
    assert {f"batch={number}" for number in range(last + 1)} <= stored.keys()
    assert len(stored) <= last + 2


async def test_001_ix_8_two_workers_at_the_same_instant_get_different_jobs(
    world: World, task: Task[..., Any]
) -> None:
    """Each over a connection of its own."""
    await world.fill(task, 2)
    other = world.beside()
    try:
        pairs = await asyncio.gather(world.claim(1, worker="w1"), other.claim(1, worker="w2"))
    finally:
        await other.aclose()
    assert [len(claims) for claims in pairs] == [1, 1]
    assert pairs[0][0].job.id != pairs[1][0].job.id


async def test_001_ec_11_simultaneous_claims_never_share_a_job(world: World, task: Task[..., Any]) -> None:
    """Eight workers claim from a hundred jobs, all at once, until nothing is left."""
    await world.fill(task, 100)
    worlds = [world.beside() for _ in range(8)]
    try:
        taken: list[object] = []
        while True:
            rounds = await asyncio.gather(
                *(one.claim(3, worker=f"w{number}") for number, one in enumerate(worlds))
            )
            claims = [claim.job.id for claims in rounds for claim in claims]
            if not claims:
                break
            taken += claims
    finally:
        for one in worlds:
            await one.aclose()
    assert len(taken) == len(set(taken)) == 100


async def test_001_ix_9_the_race_for_a_key_always_has_one_winner(world: World, task: Task[..., Any]) -> None:
    """A thousand times two applications at once: one creates, both get the same job."""
    twin = world.app().task(name="work")(work).using(tenant="acme")
    for number in range(1_000):
        key = f"key-{number}"
        one, two = await asyncio.gather(
            task.using(idempotency_key=key).aenqueue(), twin.using(idempotency_key=key).aenqueue()
        )
        assert one.id == two.id
        assert [one.created, two.created].count(True) == 1
    assert (await world.apps[-1].jobs.acount())[State.READY] == 1_000


async def test_001_fm_2_a_holder_that_was_cut_off_can_change_nothing_afterwards(
    world: World, task: Task[..., Any]
) -> None:
    """Its fence is stale for renewing and for settling; the new holder's is not."""
    job = await task.aenqueue()
    stale = await world.take(worker="cut-off")
    world.advance(LEASE / SECOND)
    assert [lost.id for lost in (await world.reclaim()).lost] == [job.id]
    fresh = await world.take(worker="other")
    assert fresh.fence > stale.fence
    renewal = RenewRequest(scope=ALL, worker="cut-off", lease=LEASE, renewals=(Renewal(job.id, stale.fence),))
    assert (await world.store.claims.renew(renewal)).stale == (job.id,)
    assert await world.settle(stale, Succeeded(encode_result("late")), worker="cut-off") is None
    assert (await job.arefresh()).state is State.RUNNING
    assert await world.settle(fresh, Succeeded(encode_result("right")), worker="other") is State.SUCCEEDED
    assert await (await job.arefresh()).aresult() == "right"


async def test_001_fm_3_a_crashed_workers_job_comes_back_with_the_attempt_counted(
    world: World, task: Task[..., Any]
) -> None:
    """Within thirty seconds, in its old place, and the attempt is recorded as lost."""
    job = await task.aenqueue()
    await world.take(worker="doomed")
    crashed_at = world.now
    later = await task.aenqueue()
    while not (await world.reclaim()).lost:
        world.advance(1)
    assert world.now - crashed_at <= 30 * SECOND
    back = await job.arefresh()
    assert (back.state, back.attempt, back.failures) == (State.READY, 1, 0)
    (lost,) = back.attempts
    assert (lost.outcome, lost.worker, lost.error_class) == ("lost", "doomed", "crash")
    again = [claim.job for claim in await world.claim(2, worker="other")]
    assert [(one.id, one.attempt) for one in again] == [(job.id, 2), (later.id, 1)]


async def test_001_ec_1_work_that_was_done_but_not_acknowledged_runs_once_more_at_most(
    world: World, task: Task[..., Any]
) -> None:
    """Result and settlement are one step: either both are there or the job runs again."""
    job = await task.aenqueue()
    first = await world.take()
    world.advance(LEASE / SECOND)
    await world.reclaim()
    second = await world.take(worker="w2")
    assert await world.settle(second, Succeeded(encode_result(2)), worker="w2") is State.SUCCEEDED
    assert await world.settle(first, Succeeded(encode_result(1))) is None
    ended = await job.arefresh()
    assert (ended.attempt, await ended.aresult()) == (2, 2)
    assert await world.claim(1) == []


@ON_A_FILE
async def test_001_ix_3_calls_fail_fast_while_the_store_is_away_and_resume_afterwards(
    world: World, task: Task[..., Any]
) -> None:
    """The file is moved away and back; nothing that was acknowledged is lost, nothing refused is stored."""
    app, file = world.apps[-1], world.folder / "fairlane.db"
    before = await task.aenqueue(1)
    file.rename(world.folder / "elsewhere.db")
    for call in (task.aenqueue(2), app.jobs.aget(before.id), app.jobs.acount()):
        async with counted() as seconds:
            with pytest.raises(StoreError):
                await call
        assert seconds() < 5
    (world.folder / "elsewhere.db").rename(file)
    after = await task.aenqueue(3)
    assert [job.id for job in await app.jobs.afind()] == [after.id, before.id]


@pytest.mark.parametrize(("ending", "days"), [("succeeded", 7), ("dead", 30)])
async def test_001_mt_8_finished_jobs_are_kept_7_days_and_dead_ones_30(
    world: World, task: Task[..., Any], ending: str, days: int
) -> None:
    """With their results; each is removed once."""
    job = await task.using(max_attempts=1).aenqueue()
    if ending == "succeeded":
        await world.succeed("a result")
    else:
        await world.fail(BOOM)
    world.advance(days * DAY / SECOND - 1)
    assert (await world.prune()).jobs == 0
    if ending == "succeeded":
        assert await (await job.arefresh()).aresult() == "a result"
    world.advance(1)
    assert [(await world.prune()).jobs for _ in range(2)] == [1, 0]
    with pytest.raises(JobNotFound):
        await job.arefresh()


async def test_001_mt_8_what_is_removed_is_archived_before_and_once(world: World, tmp_path: Path) -> None:
    """A job that succeeded and one that died, each in one file, with its result or error."""
    app = world.app(config={"archive": {"to": str(tmp_path)}})
    task = app.task(name="work")(work).using(tenant="acme", max_attempts=1)
    ids = [(await task.aenqueue()).id]
    await world.succeed("a result")
    ids.append((await task.aenqueue()).id)
    await world.fail(BOOM)
    world.advance(30 * DAY / SECOND)
    for _ in range(2):
        await run_duty(app, "prune")
    assert archived(tmp_path) == dict.fromkeys(ids, 1)
    found = {one.job.id: one.job for path in files(tmp_path) for one in read_file(path)}
    succeeded, dead = (found[id] for id in ids)
    assert b"a result" in (succeeded.result or b"")
    assert dead.attempts[-1].failure is not None
    assert [job async for job in app.jobs.aeach()] == []


async def test_001_nf_20_the_newest_10000_finished_jobs_are_kept(world: World) -> None:
    """By the setting; the oldest go first, and what is alive is neither counted nor removed."""
    app = world.app(config={"retention": {"newest_finished": 10_000}})
    task = app.task(name="work")(work).using(tenant="acme")
    first = await task.aenqueue()
    await world.succeed()
    second = await task.aenqueue()
    world.advance(1)
    await world.succeed()
    world.advance(1)
    bulk = await world.fill(app.task(name="bulk")(work), 10_001)
    for start in range(1, len(bulk), 1_000):
        await app.jobs.acancel(*(job.id for job in bulk[start : start + 1_000]))
        world.advance(1)
    pruned = await world.prune()
    assert pruned.states == {State.SUCCEEDED: 2}
    with pytest.raises(JobNotFound):
        await first.arefresh()
    with pytest.raises(JobNotFound):
        await second.arefresh()
    counts = await app.jobs.acount()
    assert (counts[State.CANCELLED], counts[State.READY]) == (10_000, 1)


async def test_001_ec_10_history_past_its_retention_is_gone(world: World, task: Task[..., Any]) -> None:
    """Finished jobs, their results and their keys; what is alive stays."""
    keyed = task.using(idempotency_key="order-1")
    await keyed.aenqueue(1)
    await world.succeed("kept for a week")
    alive = await task.using(delay=60 * DAY / SECOND).aenqueue()
    world.advance(7 * DAY / SECOND - 1)
    assert (await world.prune()).jobs == 0
    world.advance(1)
    pruned = await world.prune()
    assert (pruned.jobs, pruned.keys) == (1, 1)
    app = world.apps[-1]
    assert [job.id for job in await app.jobs.afind()] == [alive.id]
    assert (await app.jobs.acount())[State.SUCCEEDED] == 0
    assert (await keyed.aenqueue(1)).created
