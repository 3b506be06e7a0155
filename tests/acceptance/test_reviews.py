"""Dead letters that people review, as four of the descriptions ask for it, on every store (S75, S60)."""

from __future__ import annotations

import asyncio
import re
import tomllib
from datetime import timedelta
from typing import Any

import pytest

from fairlane import DeadLetterView, Fail, Fairlane, Job, State, TenantMismatch, WrongState
from fairlane.duties.follow import follow
from fairlane.duties.prune import Prune
from fairlane.model.instants import DAY
from fairlane.model.lifecycle.states import State as ModelState
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.upkeep import PruneRequest
from tests.acceptance.presets import work
from tests.acceptance.world import ALL, ON_A_FILE, World
from tools.pages import ROOT, blocks

BROKEN = Fail("the paper is out")


@pytest.fixture
async def app(world: World) -> Fairlane:
    """An application with one task, in force."""
    made = world.app()
    made.task(name="work", max_attempts=2)(work)
    await world.declare()
    return made


async def enqueue(app: Fairlane, number: int = 0, **options: Any) -> Job[Any]:
    """Enqueue a job for acme."""
    return await app.aenqueue_by_name("work", {"number": number}, **{"tenant": "acme", **options})


async def die(world: World, app: Fairlane, number: int = 0, **options: Any) -> Job[Any]:
    """Let a job move to the dead letters."""
    job = await enqueue(app, number, **options)
    assert await world.fail(BROKEN, options.get("queue", "default")) is State.DEAD
    return job


async def reviews(app: Fairlane) -> list[str]:
    """Return the review of each dead letter, the latest death first."""
    return [letter.review for letter in await app.dead.afind()]


async def test_000_dl_3_the_status_starts_pending_and_notes_are_kept(world: World, app: Fairlane) -> None:
    """Then it is reprocessed, resolved or ignored."""
    jobs = []
    for number in range(3):
        jobs.append(await die(world, app, number))
        world.advance(1)
    assert await reviews(app) == ["pending"] * 3
    await app.dead.anote(jobs[0].id, "first")
    await app.dead.aresolve(jobs[0].id, note="second")
    await app.dead.aignore(jobs[1].id)
    await app.dead.areprocess(jobs[2].id)
    assert await reviews(app) == ["reprocessed", "ignored", "resolved"]
    assert [note.text for note in (await app.dead.aget(jobs[0].id)).notes] == ["first", "second"]


async def test_000_dl_6_the_clean_up_keeps_what_is_pending_or_was_retried(
    world: World, app: Fairlane
) -> None:
    """Resolved and ignored ones go seven days after their failure, as this description counts."""
    jobs = [await die(world, app, number) for number in range(4)]
    await app.dead.aresolve(jobs[0].id)
    await app.dead.aignore(jobs[1].id)
    again = await app.dead.areprocess(jobs[2].id)
    retention = Retention(succeeded=90 * DAY, is_from_review=False)
    request = PruneRequest(scope=ALL, retention=retention)
    world.advance(7 * 86_400 - 1)
    assert (await world.store.upkeep.prune(request)).jobs == 0
    world.advance(2)
    assert (await world.store.upkeep.prune(request)).jobs == 2
    assert sorted(await reviews(app)) == ["pending", "reprocessed"]
    assert (await again.arefresh()).state is State.READY


@ON_A_FILE
async def test_000_dl_6_the_clean_up_on_our_page_has_the_figures_of_this_description(world: World) -> None:
    """To the second; what was not decided is there after years. More than 50 that await a review are told."""
    text = (ROOT / "docs" / "how-to" / "keep-and-remove-history.md").read_text(encoding="utf-8")
    preset = next(one.text for one in blocks(text) if "alert_above" in one.text)
    app = world.app(config=tomllib.loads(preset))
    app.task(name="work", max_attempts=2)(work)
    await world.declare()
    assert app.settings.dead_letters.alert_above == 50
    jobs = [await die(world, app, number) for number in range(4)]
    await app.dead.areprocess(jobs[2].id)
    world.advance(86_400)
    await app.dead.aresolve(jobs[0].id)
    await app.dead.aignore(jobs[1].id)
    clean_up = Prune(app.settings.retention)
    world.advance(6 * 86_400 - 1)
    assert getattr(await clean_up(world.store), "did", "") == ""
    world.advance(1)
    assert getattr(await clean_up(world.store), "did", "") == "2 dead removed"
    world.advance(9 * 365 * 86_400)
    await clean_up(world.store)
    assert sorted(await reviews(app)) == ["pending", "reprocessed"]


async def test_001_cp3_6_a_manual_retry_starts_afresh_and_leaves_the_list(
    world: World, app: Fairlane
) -> None:
    """Ours is a new job with fresh counters; the letter is pending no more."""
    job = await die(world, app)
    again = await app.dead.areprocess(job.id)
    assert (again.attempt, again.failures, again.state) == (0, 0, State.READY)
    await world.succeed()
    assert (await again.arefresh()).state is State.SUCCEEDED
    assert [letter.id for letter in await app.dead.afind(review="pending")] == []


async def test_001_lc_7_a_dead_job_is_ready_again_with_no_attempts(world: World, app: Fairlane) -> None:
    """As a new job: the dead one keeps its id and its history (S53)."""
    job = await die(world, app)
    again = await app.dead.areprocess(job.id)
    assert (again.state, again.attempt, again.parent_id) == (State.READY, 0, job.id)
    assert (await job.arefresh()).state is State.DEAD


async def test_001_rt_10_purging_what_is_older_returns_the_count(world: World, app: Fairlane) -> None:
    """Younger ones stay."""
    for number in range(3):
        await die(world, app, number)
    world.advance(3_600)
    young = await die(world, app, 9)
    assert await app.dead.apurge(older_than=timedelta(minutes=30)) == 3
    assert [letter.id for letter in await app.dead.afind()] == [young.id]


async def test_001_ix_6_from_the_dead_letters_to_success(world: World, app: Fairlane) -> None:
    """The letter knows that its new job has succeeded."""
    job = await die(world, app, 7)
    again = await app.dead.areprocess(job.id)
    await world.succeed()
    await follow(world.store)
    letter = await app.dead.aget(job.id)
    assert (letter.new_job, letter.new_job_state) == (again.id, ModelState.SUCCEEDED)
    assert (await app.dead.acount()).get("pending", 0) == 0


async def test_002_cm_8_dead_letters_can_be_reprocessed(world: World, app: Fairlane) -> None:
    """One, and all that match."""
    jobs = [await die(world, app, number) for number in range(3)]
    await app.dead.areprocess(jobs[0].id, note="one")
    result = await app.dead.areprocess_all(task="work", note="all")
    assert (result.done, result.is_complete) == (2, True)
    assert await reviews(app) == ["reprocessed"] * 3


async def test_002_cm_9_the_payload_is_the_original_byte_for_byte(world: World, app: Fairlane) -> None:
    """In its version, under its checksum."""
    job = await die(world, app, 42)
    again = await app.dead.areprocess(job.id)
    old, new = await app.client.aget(job.id, ALL), await app.client.aget(again.id, ALL)
    assert (new.payload, new.checksum, new.version) == (old.payload, old.checksum, old.version)


async def test_002_cm_10_reprocessing_is_in_the_audit_as_asked_for_and_as_done(
    world: World, app: Fairlane
) -> None:
    """Both by the same letter."""
    job = await die(world, app)
    await app.dead.areprocess(job.id)
    await world.succeed()
    await follow(world.store)
    kinds = [entry.kind for entry in await app.audit.afind(subject=str(job.id))]
    assert kinds == ["job_dlq_reprocess_success", "dead.reprocess"]


async def test_002_tr_11_the_new_job_and_the_old_one_name_each_other(world: World, app: Fairlane) -> None:
    """The old one by its letter, the new one by its parent."""
    job = await die(world, app)
    again = await app.dead.areprocess(job.id)
    assert again.id != job.id
    assert (await app.dead.aget(job.id)).new_job == again.id
    assert (await again.arefresh()).parent_id == job.id


async def test_002_tr_12_the_audit_says_who_when_and_why(world: World, app: Fairlane) -> None:
    """In the words of whoever decided."""
    job = await die(world, app)
    with app.acting_as("ann@example.org"):
        await app.dead.aresolve(job.id, note="sent by hand")
    entry = (await app.audit.afind(subject=str(job.id))).items[0]
    assert (entry.actor, entry.note, entry.tenant) == ("ann@example.org", "sent by hand", "acme")
    assert entry.at.timestamp() * 1_000_000 == pytest.approx(world.now)


async def test_002_dl_2_the_new_key_has_the_old_one_and_the_time(world: World) -> None:
    """`<old>_retry_<unix time with fraction>`, by the setting of this description's preset."""
    app = world.app(config={"dead_letters": {"key": "{key}_retry_{time}"}})
    app.task(name="work")(work)
    await world.declare()
    job = await die(world, app, idempotency_key="order-7")
    again = await app.dead.areprocess(job.id)
    assert re.fullmatch(r"order-7_retry_\d+\.\d+", again.idempotency_key)


async def test_002_dl_3_two_at_once_make_one_job(world: World, app: Fairlane) -> None:
    """And both get it."""
    job = await die(world, app, idempotency_key="order-7")
    beside = world.beside()
    other = beside.app()
    other.task(name="work")(work)
    try:
        first, second = await asyncio.gather(app.dead.areprocess(job.id), other.dead.areprocess(job.id))
    finally:
        await beside.aclose()
    assert first.id == second.id
    assert (await app.jobs.acount())[State.READY] == 1


async def test_002_dl_4_a_discarded_one_stays_and_runs_no_more(world: World, app: Fairlane) -> None:
    """It is kept as discarded."""
    job = await die(world, app)
    await app.dead.adiscard(job.id, note="spam")
    with pytest.raises(WrongState):
        await app.dead.areprocess(job.id)
    assert (await app.dead.aget(job.id)).review == "discarded"


async def test_003_op_1_what_nobody_has_acknowledged_comes_newest_first(world: World, app: Fairlane) -> None:
    """Acknowledged ones are left out."""
    jobs = []
    for number in range(3):
        jobs.append(await die(world, app, number))
        world.advance(1)
    await app.dead.aacknowledge(jobs[1].id)
    found = await app.dead.afind(acknowledged=False)
    assert [letter.id for letter in found] == [jobs[2].id, jobs[0].id]


async def test_003_op_2_an_acknowledgement_says_who_and_when(world: World, app: Fairlane) -> None:
    """The first stays."""
    job = await die(world, app)
    with app.acting_as("ann"):
        letter = await app.dead.aacknowledge(job.id)
    with app.acting_as("bob"):
        letter = await app.dead.aacknowledge(job.id)
    assert letter.acknowledged_by == "ann"
    assert letter.acknowledged_at is not None
    assert letter.acknowledged_at.timestamp() * 1_000_000 == pytest.approx(world.now)


async def test_003_op_3_type_payload_and_correlation_are_kept(world: World, app: Fairlane) -> None:
    """The new job is found by the same correlation id."""
    job = await die(world, app, 5, correlation_id="order-7")
    again = await app.dead.areprocess(job.id)
    assert (again.task, again.arguments, again.correlation_id) == ("work", {"number": 5}, "order-7")
    found = await app.jobs.afind(correlation_id="order-7")
    assert {one.id for one in found} == {job.id, again.id}


async def test_004_fu_1_dead_letters_are_retried_by_hand(world: World, app: Fairlane) -> None:
    """From Python; the command line has the same words."""
    job = await die(world, app)
    letter: DeadLetterView = await app.dead.aget(job.id)
    assert (letter.review, letter.message) == ("pending", "the paper is out")
    await app.dead.areprocess(letter.id)
    await world.succeed()
    assert (await app.jobs.acount())[State.SUCCEEDED] == 1


async def test_000_dl_1_a_dead_letter_has_notes(world: World, app: Fairlane) -> None:
    """With who wrote them, and when."""
    job = await die(world, app)
    with app.acting_as("ann"):
        letter = await app.dead.anote(job.id, "the provider was down")
    (note,) = letter.notes
    assert (note.who, note.text) == ("ann", "the provider was down")
    assert note.at.timestamp() * 1_000_000 == pytest.approx(world.now)


async def test_000_tm_6_reaching_for_another_organisation_is_audited(world: World, app: Fairlane) -> None:
    """By an entry for operators that names both; it is written at the latest when the application closes."""
    with app.tenant("acme"), pytest.raises(TenantMismatch):
        await app.jobs.afind(tenant="globex")
    await app.aclose()
    beside = world.beside()
    try:
        entries = [one for one in await beside.app().audit.afind() if one.kind == "tenant.refused"]
    finally:
        await beside.aclose()
    assert [(one.tenant, one.subject) for one in entries] == [(None, "tenant globex from tenant acme")]


async def test_001_rt_9_dead_letters_are_listed_and_found_by_id(world: World, app: Fairlane) -> None:
    """Newest first, by queue, as many as asked for."""
    jobs = []
    for number in range(3):
        jobs.append(await die(world, app, number))
        world.advance(1)
    found = await app.dead.afind(queue="default", limit=2)
    assert [letter.id for letter in found] == [jobs[2].id, jobs[1].id]
    assert (await app.dead.aget(jobs[0].id)).job.arguments == {"number": 0}
    assert list(await app.dead.afind(queue="other")) == []
