"""What pruning removes goes into batches, until an archive has it (S105), and may come back (S116)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from fairlane.model.errors import TenantMismatch
from fairlane.model.finished_job import FinishedJob, finished_job
from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.record_changes import scrubbed
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.history import (
    MAX_BATCH_PAGE,
    MAX_RESTORED,
    ArchiveBatch,
    BatchDoneRequest,
    BatchRequest,
    RestoreRequest,
)
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from tests.contract.world import ALL, World, failed

ENDED: Final = (State.SUCCEEDED, State.CANCELLED, State.DEAD)
AT_ONCE: Final = Retention(succeeded=0, cancelled=0, dead=0, dead_reviewed=0, results=0, keys=0)


async def archive(world: World, keep: Retention = AT_ONCE, **values: Any) -> PruneReply:
    """Make a pass that moves into a batch what it removes."""
    return await world.store.upkeep.prune(
        PruneRequest(**{"scope": ALL, "retention": keep, "is_archived": True, **values})
    )


async def batch(world: World, limit: int = 100, after: UUID | None = None) -> ArchiveBatch | None:
    """Return a page of the oldest batch."""
    return await world.store.history.next_batch(BatchRequest(scope=ALL, limit=limit, after=after))


async def done(world: World, number: int) -> bool:
    """Say that a batch is in the archive."""
    return await world.store.history.batch_done(BatchDoneRequest(scope=ALL, number=number))


async def waiting(world: World, scope: Scope = ALL) -> int:
    """Count the jobs in batches."""
    return await world.store.history.waiting(Request(scope=scope))


async def restore(world: World, *jobs: FinishedJob, scope: Scope = ALL) -> tuple[UUID, ...]:
    """Bring jobs back."""
    return await world.store.history.restore(RestoreRequest(scope=scope, jobs=jobs))


async def one_ended(world: World, state: State = State.SUCCEEDED, tenant: str = "acme") -> FinishedJob:
    """Return a job that has just ended."""
    return finished_job(await world.get((await world.bring_to(state, tenant)).job.id), None)


async def everything(world: World) -> dict[UUID, FinishedJob]:
    """Return jobs of every kind that has ended, whole, by their ids."""
    await world.enqueue(
        idempotency_key="k",
        dedup_key="d",
        correlation_id="c",
        tags=("x", "y"),
        metadata=b'{"a":1}',
        created_by="ann",
        parent_id=UUID(int=7),
        timeout=9 * SECOND,
        stuck_after=99 * SECOND,
        priority=-3,
        version=2,
        checksum=5,
        expires_in=9_000 * SECOND,
    )
    await world.run(failed())
    world.advance(2)
    await world.promote()
    ids = [(await world.run(Succeeded(b'{"v":1,"result":1}'))).id]
    waits = await world.enqueue()
    await world.cancel(waits.id, reason="no longer")
    pending, resolved, rerun = [await world.die() for _ in range(3)]
    await world.review("resolve", resolved.id, note="fine")
    await world.rerun(rerun)
    await world.cancel(*(job.id for job in await world.find_all(states=frozenset({State.READY}))))
    ids += [waits.id, pending.id, resolved.id, rerun.id]
    found = {}
    for id in ids:
        letter = await world.letter(id)
        found[id] = finished_job(await world.get(id), None if letter is None else letter.review)
    return found


# ── out ──────────────────────────────────────────────────────────────────────


async def test_a_batch_has_what_a_pass_has_removed_as_it_was(world: World) -> None:
    """S105: payload, attempts, result and review; nowhere else is the job any more."""
    before = await everything(world)
    reply = await archive(world)
    taken = await batch(world)
    assert taken is not None
    assert reply.jobs == len(taken.jobs)
    assert {id: one for one in taken.jobs if (id := one.job.id) in before} == before
    assert [one.job.id for one in taken.jobs] == sorted(one.job.id for one in taken.jobs)
    assert await world.states() == {}
    assert (await world.census()).homes == {}
    assert not any([await world.is_known(id) for id in before])


@pytest.mark.parametrize("state", ENDED)
async def test_without_an_archive_nothing_waits_for_one(world: World, state: State) -> None:
    """S105: a pass that was not asked to leaves no batch."""
    await world.bring_to(state)
    assert (await archive(world, is_archived=False)).jobs == 1
    assert await batch(world) is None
    assert await waiting(world) == 0


async def test_a_result_alone_is_no_job_and_waits_for_no_archive(world: World) -> None:
    """S105: results may go before their jobs, as they do without an archive; a job is archived once."""
    await world.enqueue()
    await world.run(Succeeded(b"1"))
    keep = Retention(succeeded=DAY, results=0)
    assert (await archive(world, keep)).results == 1
    assert await batch(world) is None
    world.advance(DAY / SECOND)
    assert (await archive(world, keep)).jobs == 1
    taken = await batch(world)
    assert taken is not None
    assert [one.job.result for one in taken.jobs] == [b""]


async def test_a_batch_stays_the_same_until_it_is_done(world: World) -> None:
    """S105: whoever writes it again, after a crash or beside another, writes the same."""
    await world.bring_to(State.SUCCEEDED)
    await archive(world)
    first = await batch(world)
    assert first is not None
    await world.bring_to(State.SUCCEEDED)
    world.advance(60)
    await archive(world)
    assert await batch(world) == first
    assert await waiting(world) == 2
    assert await done(world, first.number)
    second = await batch(world)
    assert second is not None
    assert second.number > first.number
    assert second.closed_at > first.closed_at
    assert {one.job.id for one in second.jobs}.isdisjoint(one.job.id for one in first.jobs)
    assert await waiting(world) == 1


async def test_passes_before_anybody_asks_fill_one_batch(world: World) -> None:
    """S105: it is open until then."""
    for _ in range(2):
        await world.bring_to(State.CANCELLED)
        await archive(world)
    taken = await batch(world)
    assert taken is not None
    assert len(taken.jobs) == 2


async def test_a_number_is_never_used_again(world: World) -> None:
    """S105: file names are made of it."""
    numbers = []
    for _ in range(3):
        await world.bring_to(State.SUCCEEDED)
        await archive(world)
        taken = await batch(world)
        assert taken is not None
        numbers.append(taken.number)
        assert await done(world, taken.number)
        assert not await done(world, taken.number)
    assert numbers == sorted(set(numbers))
    assert await batch(world) is None


async def test_a_batch_that_nobody_has_asked_for_cannot_be_done(world: World) -> None:
    """S105: it is still open, so nobody can have written all of it."""
    await world.bring_to(State.SUCCEEDED)
    await archive(world)
    assert [await done(world, number) for number in (0, 1, 2)] == [False] * 3
    assert await waiting(world) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_a_batch_comes_in_pages(world: World, limit: int) -> None:
    """S105: in the order of the ids, each job once, and the last page says that it is."""
    for _ in range(3):
        await world.bring_to(State.SUCCEEDED)
    await archive(world)
    found: list[UUID] = []
    after = None
    while True:
        page = await batch(world, limit, after)
        assert page is not None
        assert len(page.jobs) <= limit
        found += [one.job.id for one in page.jobs]
        if page.is_last:
            break
        after = page.jobs[-1].job.id
    assert found == sorted(set(found))
    assert len(found) == 3


@pytest.mark.parametrize("limit", [0, MAX_BATCH_PAGE + 1])
def test_a_page_of_a_batch_is_bounded(limit: int) -> None:
    """S105: a page is held in memory."""
    with pytest.raises(ValueError, match="holds 1 to 500 jobs"):
        BatchRequest(scope=ALL, limit=limit)


async def test_a_pass_is_bounded_and_a_job_is_in_one_batch(world: World) -> None:
    """S105: what a pass leaves comes with the next one."""
    ids = [(await world.bring_to(State.SUCCEEDED)).job.id for _ in range(3)]
    found: list[UUID] = []
    for size in (2, 1):
        assert (await archive(world, limit=2)).jobs == size
        taken = await batch(world)
        assert taken is not None
        found += [one.job.id for one in taken.jobs]
        await done(world, taken.number)
    assert sorted(found) == sorted(ids)


async def test_a_forgotten_tenant_is_in_no_batch(world: World) -> None:
    """S52, S105: what is on its way is erased, that of others is not; a batch may be empty then."""
    for tenant in ("acme", "globex"):
        await world.bring_to(State.SUCCEEDED, tenant)
    await archive(world)
    first = await batch(world)
    await world.forget("acme")
    assert (await waiting(world, Scope("acme")), await waiting(world, Scope("globex"))) == (0, 1)
    left = await batch(world)
    assert first is not None
    assert left is not None
    assert [one.job.tenant for one in left.jobs] == ["globex"]
    assert (left.number, left.closed_at) == (first.number, first.closed_at)
    await world.forget("globex")
    empty = await batch(world)
    assert empty is not None
    assert empty.jobs == ()
    assert await done(world, empty.number)


async def test_a_tenant_sees_how_many_of_its_own_wait(world: World) -> None:
    """S9, S105: and not how many of others."""
    for tenant in ("acme", "acme", "globex"):
        await world.bring_to(State.SUCCEEDED, tenant)
    await archive(world)
    assert [await waiting(world, Scope(name)) for name in ("acme", "globex", "other")] == [2, 1, 0]


async def test_a_key_outlives_a_job_that_waits_for_the_archive(world: World) -> None:
    """S13, S105: only its own retention counts for it."""
    job = await world.enqueue(idempotency_key="k")
    await world.run()
    await archive(world, msgspec.structs.replace(AT_ONCE, keys=DAY))
    again = await world.send(world.new(idempotency_key="k"))
    assert [one.job.id for one in again.enqueued] == [] or again.enqueued[0].job.id == job.id


# ── back ─────────────────────────────────────────────────────────────────────


async def test_what_was_removed_comes_back_as_it_was(world: World) -> None:
    """S116: every value, where it was, with exact counts; nothing of it runs, and no event says so."""
    before = await everything(world)
    await archive(world)
    taken = await batch(world)
    assert taken is not None
    await done(world, taken.number)
    events = await world.journal("events")
    world.advance(60)
    assert set(await restore(world, *taken.jobs)) == {one.job.id for one in taken.jobs}
    for id, one in before.items():
        letter = await world.letter(id)
        assert finished_job(await world.get(id), None if letter is None else letter.review) == one
    assert sum((await world.states()).values()) == len(taken.jobs)
    assert await world.journal("events") == events
    assert await world.claim(10) == []
    await world.check_invariants()


async def test_what_came_back_can_be_worked_with(world: World) -> None:
    """S116: found by its filters, reviewed, run again, and removed once more."""
    before = await everything(world)
    await archive(world)
    taken = await batch(world)
    assert taken is not None
    await restore(world, *taken.jobs)
    assert [job.id for job in await world.find_all(correlation_id="c")] != []
    pending = [one for one in await world.letters(review="pending") if one.job.id in before]
    (reply,) = await world.review("resolve", pending[0].job.id)
    assert reply.answer == "done"
    new = await world.rerun(pending[0].job)
    assert (await world.run()).id == new.id
    await world.check_invariants()
    assert (await archive(world)).jobs == len(taken.jobs) + 1
    assert await world.states() == {}


async def test_bringing_back_twice_changes_nothing(world: World) -> None:
    """S116: an id that is known is left as it is."""
    before = await everything(world)
    sight = await world.sight()
    assert await restore(world, *before.values()) == ()
    assert await world.sight() == sight


@pytest.mark.parametrize("state", list(State))
async def test_an_id_that_is_in_use_is_left_alone(world: World, state: State) -> None:
    """S116: whatever its state, and whatever the other one was."""
    claim = await world.bring_to(state)
    before = await world.sight()
    other = msgspec.structs.replace(scrubbed(await world.get(claim.job.id)), task="other")
    one = msgspec.structs.replace(
        other,
        state=State.CANCELLED,
        settled_at=world.now,
        worker=None,
        started_at=None,
        lease_until=None,
    )
    assert await restore(world, FinishedJob(one)) == ()
    assert await world.sight() == before


async def test_only_new_ones_of_many_come_back(world: World) -> None:
    """S116: the reply says which, in the order in which they were given."""
    jobs = [await one_ended(world) for _ in range(3)]
    await archive(world, limit=2)
    assert await restore(world, *jobs) == (jobs[0].job.id, jobs[1].job.id)
    assert await world.states() == {State.SUCCEEDED: 3}


async def test_what_came_back_holds_no_key(world: World) -> None:
    """S116: a key belongs to enqueues, and they are over."""
    before = await everything(world)
    await archive(world)
    await restore(world, *before.values())
    reply = await world.send(world.new(idempotency_key="k", dedup_key="d"))
    assert [one.is_created for one in reply.enqueued] == [True]
    await archive(world)  # two jobs under one key are possible only so


async def test_retention_counts_from_when_it_ended(world: World) -> None:
    """S52, S116: bringing it back makes it no younger."""
    claim = await world.bring_to(State.SUCCEEDED)
    one = finished_job(await world.get(claim.job.id), None)
    world.advance(DAY / SECOND)
    await archive(world)
    await restore(world, one)
    assert (await archive(world, Retention(succeeded=DAY))).jobs == 1


async def test_a_job_of_long_ago_comes_back(world: World) -> None:
    """S116: also to a day of which nothing is stored any more."""
    claim = await world.bring_to(State.SUCCEEDED)
    one = finished_job(await world.get(claim.job.id), None)
    world.advance(400 * DAY / SECOND)
    await archive(world)
    await restore(world, one)
    assert await world.get(claim.job.id) == one.job
    assert (await archive(world, Retention())).jobs == 1


async def test_a_tenant_brings_back_its_own_only(world: World) -> None:
    """S9, S116: one foreign job refuses them all."""
    jobs = [await one_ended(world, State.DEAD, tenant) for tenant in ("acme", "globex")]
    await archive(world)
    with pytest.raises(TenantMismatch):
        await restore(world, *jobs, scope=Scope("acme"))
    assert await world.states() == {}
    assert await restore(world, jobs[0], scope=Scope("acme")) == (jobs[0].job.id,)


async def test_what_could_not_have_ended_so_is_refused(world: World) -> None:
    """S116: with the job and the field named, and nothing is stored."""
    job = await world.get((await world.bring_to(State.SUCCEEDED)).job.id)
    await archive(world)
    with pytest.raises(ValueError, match=f"job {job.id}: queue: use 1 to 63"):
        await restore(world, FinishedJob(msgspec.structs.replace(job, queue="No")))
    with pytest.raises(ValueError, match="brings a job back once"):
        await restore(world, FinishedJob(job), FinishedJob(job))
    many = tuple(FinishedJob(msgspec.structs.replace(job, id=UUID(int=n))) for n in range(MAX_RESTORED + 1))
    with pytest.raises(ValueError, match="at most 500 jobs, not 501"):
        await restore(world, *many)
    assert await world.states() == {}
