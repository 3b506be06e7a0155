"""`app.dead.*_all` and `purge`: all dead letters that match, in passes, audited at both ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane import BulkResult, Fairlane, State, StoreUnavailable, Task, TenantMismatch
from fairlane.app.dead import bulk, reading
from fairlane.model.errors import FairlaneError
from fairlane.model.instants import to_datetime
from tests.app.dead.conftest import Die
from tests.app.dead.test_dead_deciding import audited
from tests.app.world import World, note


@pytest.fixture(autouse=True)
def _small_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two letters at a time."""
    monkeypatch.setattr(bulk, "STEP", 2)
    monkeypatch.setattr(reading, "STEP", 2)


async def deaths(die: Die, number: int, **options: Any) -> list[Any]:
    """Let so many jobs die."""
    return [(await die(at, **options)).id for at in range(number)]


@pytest.mark.parametrize(
    ("verb", "review"),
    [("resolve", "resolved"), ("ignore", "ignored"), ("discard", "discarded"), ("reprocess", "reprocessed")],
)
async def test_all_that_match_are_decided_in_passes(
    world: World, app: Fairlane, die: Die, verb: str, review: str
) -> None:
    """Others stay; progress is told after each pass."""
    mine = await deaths(die, 5)
    (other,) = await deaths(die, 1, tenant="globex")
    told: list[BulkResult] = []
    result = await getattr(app.dead, f"a{verb}_all")(tenant="acme", note="fixed", on_progress=told.append)
    assert (result.matches, result.done, result.refused, result.left) == (5, 5, {}, 0)
    assert result.is_complete
    assert [(one.done, one.left) for one in told] == [(2, 3), (4, 1), (5, 0)]
    assert {(await app.dead.aget(id)).review for id in mine} == {review}
    assert (await app.dead.aget(mine[0])).notes[-1].text == "fixed"
    assert (await app.dead.aget(other)).review == "pending"
    parents = sorted(job.parent_id for job in world.stored() if job.parent_id is not None)
    assert parents == (sorted(mine) if verb == "reprocess" else [])


async def test_acknowledging_all_decides_nothing(app: Fairlane, die: Die) -> None:
    """They are still pending."""
    ids = await deaths(die, 3)
    assert (await app.dead.aacknowledge_all()).done == 3
    assert {(await app.dead.aget(id)).review for id in ids} == {"pending"}
    assert len((await app.dead.afind(acknowledged=True)).items) == 3


async def test_deleting_and_purging_remove_what_matches(world: World, app: Fairlane, die: Die) -> None:
    """A purge takes every review, a deletion only pending letters unless it is told otherwise."""
    old = await deaths(die, 3)
    between = to_datetime(world.clock.now())
    world.clock.advance(3_600)
    young = await deaths(die, 2)
    await app.dead.aresolve(old[0])
    assert (await app.dead.adelete_all(until=between)).done == 2
    assert [job.id for job in world.stored()] == [old[0], *young]
    assert await app.dead.apurge(older_than=between) == 1
    assert await app.dead.apurge(older_than=timedelta(hours=1)) == 0
    assert await app.dead.apurge(older_than=timedelta(0), review="resolved") == 0
    assert await app.dead.apurge(older_than=timedelta(0), note="all") == 2
    assert world.stored() == []


async def test_it_is_audited_by_its_start_and_its_end(world: World, app: Fairlane, die: Die) -> None:
    """Filters, matches and result; no entry for each letter."""
    await deaths(die, 3)
    with app.acting_as("ann"):
        await app.dead.aresolve_all(queue="default", limit=2, note="bank is back")
    (begin, begin_subject, first), (end, _, last) = audited(world)
    assert (begin, end, begin_subject) == ("dead.resolve_all", "dead.resolve_all", "dead letters")
    assert (first["actor"], first["note"], first["details"]["step"]) == ("ann", "bank is back", "begin")
    assert first["details"]["filter"] == {"queue": "default", "review": "pending"}
    assert (first["details"]["matches"], first["details"]["limit"]) == (3, 2)
    assert last["details"]["step"] == "end"
    assert last["details"]["run"] == first["details"]["run"]
    assert last["details"]["result"] == {
        "matches": 3,
        "done": 2,
        "refused": {},
        "examples": [],
        "left": 1,
    }


async def test_a_limit_leaves_the_rest(app: Fairlane, die: Die) -> None:
    """The latest deaths go first."""
    ids = await deaths(die, 5)
    result = await app.dead.aignore_all(limit=3)
    assert (result.done, result.left, result.is_complete) == (3, 2, False)
    assert [letter.id async for letter in app.dead.aeach(review="pending")] == [ids[1], ids[0]]


async def test_what_is_refused_is_counted_with_examples(
    world: World, app: Fairlane, die: Die, billing: Task[..., None]
) -> None:
    """The others run; the refused ones can be asked for again."""
    other = app.task(name="other", queue="shut")(note).using(tenant="acme")
    fine = await die(1)
    closed = await die(2, task=other)
    held = await die(3, dedup_key="d")
    gone = await die(4)
    holder = await billing.using(dedup_key="d").aenqueue(5)
    await app.queues.aclose("shut", reason="moving")
    jobs = world.oracle.jobs._core.books.jobs
    jobs[gone.id] = replace(jobs[gone.id], payload=b"", checksum=0)
    result = await app.dead.areprocess_all()
    assert (result.matches, result.done, result.left) == (4, 1, 0)
    assert result.refused == {"closed": 1, "duplicate": 1, "unreadable": 1}
    assert not result.is_complete
    texts = {one.id: one.text for one in result.examples}
    assert "queue shut is closed" in texts[closed.id]
    assert f"job {holder.id} holds" in texts[held.id]
    assert "no longer stored" in texts[gone.id]
    assert (await app.dead.aget(fine.id)).review == "reprocessed"
    await app.queues.areopen("shut")
    again = await app.dead.areprocess_all()
    assert (again.matches, again.done) == (3, 1)


async def test_letters_with_any_review_may_be_asked_for(app: Fairlane, die: Die) -> None:
    """What cannot be decided otherwise is refused by its review."""
    ids = await deaths(die, 3)
    await app.dead.adiscard(ids[0])
    await app.dead.areprocess(ids[1])
    assert (await app.dead.aresolve_all(review=None)).refused == {"discarded": 1, "reprocessed": 1}
    result = await app.dead.areprocess_all(review=None)
    assert (result.done, result.refused) == (1, {"discarded": 1, "already": 1})


async def test_all_may_go_to_another_queue(world: World, app: Fairlane, die: Die) -> None:
    """As one does."""
    app.task(name="other", queue="slow")(note)
    await deaths(die, 2)
    assert (await app.dead.areprocess_all(to_queue="slow")).done == 2
    assert [job.queue for job in world.stored() if job.state is State.READY] == ["slow", "slow"]


async def test_large_arguments_are_sent_in_parts(
    world: World, app: Fairlane, die: Die, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is larger than a batch."""
    monkeypatch.setattr(bulk, "MAX_BATCH_BYTES", 100)
    await deaths(die, 2)
    world.asked.clear()
    assert (await app.dead.areprocess_all()).done == 2
    assert world.verbs().count("reprocess") == 2


async def test_what_was_interrupted_is_asked_for_again_and_does_no_letter_twice(
    world: World, app: Fairlane, die: Die
) -> None:
    """The entry at the end says that it failed."""
    ids = await deaths(die, 5)
    lost: FairlaneError = StoreUnavailable("gone")
    # tally, append, find, reprocess, find: the second pass fails before it changes anything.
    world.fail_before = [None, None, None, None, None, lost]
    with pytest.raises(StoreUnavailable):
        await app.dead.areprocess_all()
    assert audited(world)[-1][2]["details"]["error"] == "StoreUnavailable"
    result = await app.dead.areprocess_all()
    assert (result.matches, result.done, result.left) == (3, 3, 0)
    assert sorted(job.parent_id for job in world.stored() if job.parent_id) == sorted(ids)


async def test_jobs_that_die_meanwhile_are_left_alone(
    world: World, app: Fairlane, die: Die, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that were run again and died again: they would go round for ever."""
    await deaths(die, 4)
    reprocess = world.oracle.dead.reprocess

    async def and_fail_at_once(request: Any) -> Any:
        replies = await reprocess(request)
        for _ in replies:
            world.clock.advance(1)
            await world.fail()
        return replies

    monkeypatch.setattr(world.oracle.dead, "reprocess", and_fail_at_once)
    result = await app.dead.areprocess_all()
    assert (result.matches, result.done, result.left) == (4, 4, 0)
    assert (await app.dead.acount())["pending"] == 4


async def test_what_is_gone_before_its_pass_is_counted(
    world: World, app: Fairlane, die: Die, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else was faster."""
    ids = await deaths(die, 2)
    real = world.oracle.dead.find

    async def deleted_after(request: Any) -> Any:
        page = await real(request)
        world.oracle.jobs._core.books.drop(world.oracle.jobs._core.books.jobs[ids[0]])
        return page

    monkeypatch.setattr(world.oracle.dead, "find", deleted_after)
    result = await app.dead.aresolve_all()
    assert (result.done, result.refused) == (1, {"gone": 1})


async def test_nothing_that_matches_is_no_error(app: Fairlane) -> None:
    """It is done."""
    result = await app.dead.areprocess_all(task="nobody")
    assert (result.matches, result.done, result.is_complete) == (0, 0, True)


async def test_inside_a_tenant_all_means_its_own(world: World, app: Fairlane, die: Die) -> None:
    """S9: the entries are that tenant's."""
    await deaths(die, 1)
    await deaths(die, 1, tenant="globex")
    with app.tenant("acme"):
        with pytest.raises(TenantMismatch):
            await app.dead.aresolve_all(tenant="globex")
        assert (await app.dead.aresolve_all()).matches == 1
    book = world.oracle.journal._core.books.journals["audit"]
    assert {one.entry.tenant for one in book.pending} == {"acme"}


def test_plain_callers_do_the_same(world: World, app: Fairlane, billing: Task[..., None]) -> None:
    """Each method has a twin."""
    ids = [billing.enqueue(n).id for n in range(6)]
    app.jobs.condemn(*ids, reason="wrong list")
    assert app.dead.acknowledge_all(limit=1).done == 1
    assert app.dead.resolve_all(limit=1).done == 1
    assert app.dead.ignore_all(limit=1).done == 1
    assert app.dead.discard_all(limit=1).done == 1
    assert app.dead.reprocess_all(limit=1).done == 1
    assert app.dead.delete_all(limit=1).done == 1
    world.clock.advance(1)
    assert app.dead.purge(older_than=timedelta(0)) == 5
