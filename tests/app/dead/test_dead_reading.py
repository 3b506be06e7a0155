"""`app.dead`: finding, counting, grouping and exporting dead letters."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fairlane import (
    SYSTEM,
    DeadLetters,
    ErrorClass,
    Fairlane,
    Job,
    JobNotFound,
    State,
    Task,
    TenantMismatch,
    WrongState,
)
from fairlane.model.instants import to_datetime
from tests.app.dead.conftest import Die
from tests.app.world import World, note

NOBODY = UUID(int=9)


def ids(found: Any) -> list[UUID]:
    """Return the ids of letters."""
    return [letter.id for letter in found]


# ── one ──────────────────────────────────────────────────────────────────────


async def test_a_new_letter_shows_its_job_its_error_and_an_empty_review(
    world: World, app: Fairlane, die: Die
) -> None:
    """All that a person needs at first."""
    died_at = to_datetime(world.clock.now())
    job = await die(7, message="no line", kind=ErrorClass.NON_RETRYABLE)
    letter = await app.dead.aget(job.id)
    assert (letter.id, letter.job, letter.died_at) == (job.id, job, died_at)
    assert (letter.error_class, letter.error_type, letter.message) == (
        ErrorClass.NON_RETRYABLE,
        "FaxError",
        "no line",
    )
    assert len(letter.fingerprint) == 16
    assert (letter.review, letter.acknowledged_by, letter.decided_by, letter.notes) == (
        "pending",
        None,
        None,
        (),
    )
    assert (letter.new_job, letter.new_job_state, letter.is_new_job_gone) == (None, None, False)
    assert "message=" not in repr(letter).replace(repr(letter.job), "")


async def test_a_letter_of_a_job_that_never_failed_has_no_error(
    app: Fairlane, billing: Task[..., None]
) -> None:
    """A condemned one, for example."""
    job = await billing.aenqueue(7)
    await app.jobs.acondemn(job.id, reason="wrong list")
    letter = await app.dead.aget(job.id)
    assert (letter.error_class, letter.error_type, letter.message, letter.fingerprint) == (None, "", "", "")
    assert letter.job.because == "condemned: wrong list"


async def test_a_job_that_is_not_dead_has_no_letter(app: Fairlane, billing: Task[..., None]) -> None:
    """An unknown one is not found."""
    job = await billing.aenqueue(7)
    with pytest.raises(WrongState, match="is ready: only a dead job has a dead letter"):
        await app.dead.aget(job.id)
    with pytest.raises(JobNotFound):
        await app.dead.aget(NOBODY)


# ── many ─────────────────────────────────────────────────────────────────────


async def test_the_latest_death_comes_first_page_by_page(app: Fairlane, die: Die) -> None:
    """And each letter once."""
    jobs = [await die(n) for n in range(5)]
    found: list[UUID] = []
    cursor = None
    while True:
        page = await app.dead.afind(limit=2, cursor=cursor)
        found += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [job.id for job in reversed(jobs)]
    assert [letter.id async for letter in app.dead.aeach(limit=3)] == found[:3]
    assert [letter.id async for letter in app.dead.aeach()] == found


async def test_every_filter_holds(world: World, app: Fairlane, die: Die, billing: Task[..., None]) -> None:
    """Each by itself, and all together."""
    other = app.task(name="other", queue="bulk")(note).using(tenant="globex")
    first = await die(1)
    between = to_datetime(world.clock.now())
    world.clock.advance(1)
    second = await die(2, task=other, kind=ErrorClass.UNDECODABLE)
    await app.dead.aresolve(first.id)
    print_of = (await app.dead.aget(first.id)).fingerprint
    one, two = [first.id], [second.id]

    async def found(**filters: Any) -> list[UUID]:
        return ids(await app.dead.afind(**filters))

    assert await found(tenant="acme") == await found(queue="default") == await found(task="bill") == one
    assert await found(error_class="undecodable") == await found(error_class=ErrorClass.UNDECODABLE) == two
    assert await found(fingerprint=print_of) == await found(review="resolved") == one
    assert await found(acknowledged=True) == await found(until=between) == one
    assert (
        await found(acknowledged=False) == await found(since=between) == await found(review="pending") == two
    )
    assert await found(tenant="acme", queue="bulk") == []
    assert await found(review=None, tenant=None) == [*two, *one]


async def test_letters_are_counted_by_review(app: Fairlane, die: Die) -> None:
    """By counters where these know it, else by tallies: the same numbers."""
    jobs = [await die(n) for n in range(4)]
    await app.dead.aignore(jobs[0].id)
    await app.dead.adiscard(jobs[1].id)
    expected = {"pending": 2, "reprocessed": 0, "resolved": 0, "ignored": 1, "discarded": 1}
    assert await app.dead.acount() == expected
    assert await app.dead.acount(task="bill") == expected
    assert await app.dead.acount(tenant="globex", queue="default") == dict.fromkeys(expected, 0)
    assert sum((await app.dead.acount(review="ignored")).values()) == 1
    assert sum((await app.dead.acount(queue="bulk")).values()) == 0


async def test_letters_with_one_cause_are_one_group(world: World, app: Fairlane, die: Die) -> None:
    """Numbers and quoted values make no difference; most letters first."""
    first_at = to_datetime(world.clock.now())
    for number in range(3):
        await die(number, message=f"user {number} has no line", tenant=f"tenant-{number % 2}")
    last = await die(9, message="user 9 has no line, password=hunter2xyz", tenant="tenant-0")
    rare = await die(10, message="disk full")
    groups = await app.dead.agroups()
    assert [one.letters for one in groups] == [3, 1, 1]
    top = groups[0]
    assert top.tenants == ("tenant-0", "tenant-1")
    assert (top.task, top.error_class, top.error_type) == ("bill", ErrorClass.NON_RETRYABLE, "FaxError")
    assert (top.first_at, top.message) == (first_at, "user 2 has no line")
    assert top.last_at == first_at + timedelta(seconds=2)
    secret = next(one for one in groups if one.sample == last.id)
    assert "hunter2xyz" not in secret.message
    assert len(await app.dead.agroups(limit=1)) == 1
    (disk,) = await app.dead.agroups(since=rare.settled_at)
    assert disk.sample == rare.id
    assert ids(await app.dead.afind(fingerprint=disk.fingerprint)) == [rare.id]


async def test_letters_without_a_failure_are_grouped_by_task(app: Fairlane, billing: Task[..., None]) -> None:
    """There is no message to show."""
    jobs = [await billing.aenqueue(n) for n in range(2)]
    await app.jobs.acondemn(*(job.id for job in jobs), reason="wrong list")
    (group,) = await app.dead.agroups()
    assert (group.fingerprint, group.task, group.error_class, group.letters) == ("", "bill", None, 2)
    assert (group.error_type, group.message) == ("", "")


async def test_statistics_count_by_every_property(app: Fairlane, die: Die, billing: Task[..., None]) -> None:
    """Most first."""
    bulk = app.task(name="other", queue="bulk")(note).using(tenant="globex")
    for number in range(2):
        await die(number)
    await die(3, task=bulk, kind=ErrorClass.UNDECODABLE)
    never = await billing.aenqueue(4)
    await app.jobs.acondemn(never.id, reason="wrong list")
    await app.dead.aresolve(never.id)
    found = await app.dead.astatistics()
    assert found.letters == 4
    assert list(found.by_queue.items()) == [("default", 3), ("bulk", 1)]
    assert list(found.by_task.items()) == [("bill", 3), ("other", 1)]
    assert list(found.by_tenant.items()) == [("acme", 3), ("globex", 1)]
    assert found.by_error_class == {"non_retryable": 2, "none": 1, "undecodable": 1}
    assert found.by_review == {"pending": 3, "resolved": 1}
    assert (await app.dead.astatistics(tenant="globex")).letters == 1


# ── export ───────────────────────────────────────────────────────────────────


async def test_letters_are_exported_as_redacted_json_lines(app: Fairlane, die: Die, tmp_path: Path) -> None:
    """Into a file of its owner alone, or one that is open; what tasks declare secret is redacted, too."""
    mail = app.task(name="mail", sensitive=["body"])(lambda order, body="dear": None).using(tenant="acme")
    await die(1, task=mail, message="refused: password=hunter2xyz")
    job = await die(2)
    await app.dead.aresolve(job.id, note="token=abcdefgh12345678")
    file = tmp_path / "dead.jsonl"
    assert await app.dead.aexport(file) == 2
    second, first = [json.loads(line) for line in file.read_text().splitlines()]
    assert file.stat().st_mode & 0o777 == 0o600
    assert (second["id"], second["review"], second["job"]["arguments"]) == (
        str(job.id),
        "resolved",
        {"order": 2, "day": "2026-07-01", "who": "ada"},
    )
    assert first["job"]["arguments"] == {"order": 1, "body": "[redacted]"}
    assert "hunter2xyz" not in file.read_text()
    assert "abcdefgh12345678" not in file.read_text()
    stream = io.StringIO()
    assert await app.dead.aexport(stream, review="pending") == 1
    assert json.loads(stream.getvalue())["id"] == first["id"]
    assert not stream.closed


# ── what is refused ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda dead: dead.find(limit=0), "limit is 0"),
        (lambda dead: dead.find(review="lost"), "review: 'lost' is not one; use pending"),
        (lambda dead: dead.find(error_class="bad"), "error_class: 'bad' is not one; use transient"),
        (lambda dead: dead.find(error_class=5), "error_class: a value of type int is not one"),
        (lambda dead: dead.find(fingerprint=""), "fingerprint: use 1 to 255 bytes"),
        (lambda dead: dead.find(acknowledged="yes"), "acknowledged: is of type str; use True or False"),
        (lambda dead: dead.find(queue="A b"), "queue 'A b' is not a legal name"),
        (lambda dead: dead.find(since=datetime(2030, 1, 1)), "since: has no time zone"),  # noqa: DTZ001 (that)
        (lambda dead: dead.find(cursor="x"), "'x' is not a cursor"),
        (lambda dead: dead.each(limit=0), "limit is 0"),
        (lambda dead: dead.groups(limit=0), "limit is 0"),
        (lambda dead: dead.export(5), "to: is of type int; give a path"),
        (lambda dead: dead.resolve_all(limit=0), "limit is 0"),
        (lambda dead: dead.resolve_all(note="\x00"), "note: has a control character"),
        (lambda dead: dead.purge(older_than=5), "older_than: is of type int"),
        (lambda dead: dead.purge(older_than=timedelta(1), until=datetime.now(UTC)), "older_than alone"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(world: World, app: Fairlane, call: Any, words: str) -> None:
    """Before any store is asked."""
    with pytest.raises(ValueError, match=words):
        call(app.dead)
    assert world.asked == []


def test_an_unknown_filter_is_a_type_error(app: Fairlane) -> None:
    """With the filters that there are."""
    wrong: Any = {"status": "pending"}
    with pytest.raises(TypeError, match="'status' is not a filter; there are tenant, queue, task"):
        app.dead.find(**wrong)


# ── plain callers, and tenants ───────────────────────────────────────────────


def test_plain_callers_read_the_same(world: World, app: Fairlane, billing: Task[..., None]) -> None:
    """Each method has a twin."""
    job = billing.enqueue(7)
    app.jobs.condemn(job.id, reason="wrong list")
    assert app.dead.get(job.id).id == job.id
    assert ids(app.dead.find()) == ids(app.dead.each()) == ids(app.dead.each(limit=1)) == [job.id]
    assert app.dead.count()["pending"] == app.dead.statistics().letters == app.dead.groups()[0].letters == 1
    assert app.dead.export(io.StringIO()) == 1
    public = {name for name in dir(DeadLetters) if not name.startswith("_")}
    verbs = {name for name in public if f"a{name}" in public}
    assert public == verbs | {f"a{name}" for name in verbs}


async def test_inside_a_tenant_only_its_letters_exist(app: Fairlane, die: Die) -> None:
    """S9: another's answers as an unknown one; its name is refused."""
    mine, theirs = await die(1), await die(2, tenant="globex")
    with app.tenant("acme"):
        assert ids(await app.dead.afind()) == [mine.id]
        assert (await app.dead.acount())["pending"] == (await app.dead.astatistics()).letters == 1
        with pytest.raises(JobNotFound):
            await app.dead.aget(theirs.id)
        with pytest.raises(JobNotFound):
            await app.dead.areprocess(theirs.id)
        with pytest.raises(JobNotFound):
            await app.dead.adelete(theirs.id)
        with pytest.raises(TenantMismatch):
            await app.dead.afind(tenant="globex")
        assert (await app.dead.adelete_all()).done == 1
    assert ids(await app.dead.afind()) == [theirs.id]
    assert SYSTEM not in [letter.job.tenant async for letter in app.dead.aeach()]


def test_a_job_in_hand_is_a_job(app: Fairlane, billing: Task[..., None]) -> None:
    """The letter's job refreshes like any other."""
    job: Job[Any] = billing.enqueue(7)
    app.jobs.condemn(job.id, reason="wrong list")
    assert app.dead.get(job.id).job.refresh().state is State.DEAD
