"""`app.jobs.edit`, `condemn` and `again`: what they change, what they refuse, and in which words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from fairlane import (
    Closed,
    Fairlane,
    InvalidJob,
    Job,
    JobNotFound,
    PayloadTooLarge,
    SensitivePayload,
    State,
    Task,
    UnknownTask,
    WrongState,
)
from fairlane.model.instants import SECOND, to_datetime
from fairlane.model.payload.encoding import decode_arguments, encode_arguments, verify
from tests.app.world import World, note

LATER = datetime(2035, 1, 1, tzinfo=UTC)
NOBODY = UUID(int=7)


def bill(order: int, day: date = date(2026, 7, 1), who: str = "ada") -> None:
    """Take what the tests of arguments change."""


@pytest.fixture
def billing(app: Fairlane) -> Task[..., None]:
    """A task with hints, for tenant acme."""
    return app.task(name="bill")(bill).using(tenant="acme")


# ── edit ─────────────────────────────────────────────────────────────────────


def test_every_field_of_a_delayed_job_can_be_changed_at_once(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """What was given is stored and shown; what was not stays."""
    job = billing.using(delay=600, tags=["old"], correlation_id="c").enqueue(7)
    changed = app.jobs.edit(
        job.id,
        priority=9,
        run_at=LATER,
        expires_at=LATER + timedelta(days=1),
        tags=["red", "blue"],
        arguments={"order": 8},
        note="typed wrong",
    )
    stored = world.one()
    assert (changed.priority, changed.run_at, sorted(changed.tags)) == (9, LATER, ["blue", "red"])
    assert changed.expires_at == LATER + timedelta(days=1)
    assert changed.arguments == {"order": 8, "day": date(2026, 7, 1), "who": "ada"}
    assert (stored.correlation_id, stored.idempotency_key, stored.state) == ("c", str(job.id), State.DELAYED)
    verify(stored.payload, stored.checksum)


async def test_a_job_is_claimed_with_its_new_arguments(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """JSON text becomes what the hint names, as in an enqueue by name."""
    job = await billing.aenqueue(7)
    await app.jobs.aedit(job.id, arguments={"day": "2027-02-28"})
    claim = await world.claim()
    assert decode_arguments(claim.job.payload)["day"] == date(2027, 2, 28)


def test_relative_times_count_from_the_clock_of_the_store(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """Whatever this machine's clock says."""
    job = billing.using(delay=600).enqueue(7)
    changed = app.jobs.edit(job.id, delay=60, expires_in=90)
    now = to_datetime(world.clock.now())
    assert (changed.run_at, changed.expires_at) == (now + timedelta(seconds=60), now + timedelta(seconds=90))


def test_an_expiry_can_be_removed(app: Fairlane, billing: Task[..., None]) -> None:
    """None says so; leaving it out keeps it."""
    job = billing.using(expires_in=60).enqueue(7)
    assert app.jobs.edit(job.id, priority=1).expires_at == job.expires_at
    assert app.jobs.edit(job.id, expires_at=None).expires_at is None


def test_priorities_count_in_the_direction_of_the_application(world: World) -> None:
    """As in an enqueue (S19)."""
    app = world.app(priority="lower_first")
    job = app.task(name="note")(note).using(tenant="acme").enqueue()
    assert app.jobs.edit(job.id, priority=5).priority == 5
    assert world.one().priority == -5


def test_an_edited_job_of_an_older_version_gets_the_current_one(world: World, app: Fairlane) -> None:
    """Its stored arguments are upcast first: the new ones are of the current version."""

    @app.task(name="send", version=2)
    def send(to: list[str], copies: int = 1) -> None: ...

    @send.upcast(from_version=1)
    def _(old: dict[str, Any]) -> dict[str, Any]:
        return {"to": [old["recipient"]]}

    job = send.using(tenant="acme").enqueue(["x"])
    older = encode_arguments({"recipient": "ada"})
    jobs = world.oracle.jobs._core.books.jobs
    jobs[job.id] = replace(world.one(), version=1, payload=older.data, checksum=older.checksum)
    assert app.jobs.edit(job.id, arguments={"copies": 2}).arguments == {"to": ["ada"], "copies": 2}
    assert world.one().version == 2


def test_one_error_names_every_bad_field_and_nothing_changes(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """Options and arguments together."""
    job = billing.using(delay=60).enqueue(7)
    before = world.one()
    with pytest.raises(InvalidJob) as caught:
        app.jobs.edit(
            job.id,
            priority=101,
            run_at=datetime(2030, 1, 1),  # noqa: DTZ001 (it is about that)
            tags=["ok", ""],
            arguments={"order": "seven", "extra": 1},
        )
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["priority", "run_at", "tags[1]", "arguments.order", "arguments.extra"]
    assert str(caught.value).startswith(f"job {job.id} was not changed, 5 problem(s):\n  priority: is 101; ")
    assert world.one() == before
    assert "edit" not in world.verbs()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"run_at": LATER, "delay": 5}, "run_at"),
        ({"expires_at": LATER, "expires_in": 5}, "expires_at"),
        ({"expires_at": None, "expires_in": 5}, "expires_at"),
        ({"run_at": LATER, "expires_at": LATER}, "expires_at"),
        ({"delay": 7200}, "run_at"),
        ({"expires_in": 30}, "expires_at"),
        ({"tags": "red"}, "tags"),
        ({"arguments": ["order"]}, "arguments"),
        ({"arguments": {1: 2}}, "arguments"),
        ({"delay": -1}, "delay"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_their_field(
    app: Fairlane, billing: Task[..., None], options: dict[str, Any], field: str
) -> None:
    """Also those that do not fit what the job has already: it is due in a minute and expires in an hour."""
    job = billing.using(delay=60, expires_in=3600).enqueue(7)
    with pytest.raises(InvalidJob) as caught:
        app.jobs.edit(job.id, **options)
    assert [problem.field for problem in caught.value.problems] == [field]


def test_new_arguments_are_held_to_the_rules_of_payloads(world: World) -> None:
    """Secrets and size, as at an enqueue (S5, S6)."""
    app = world.app(payload={"sensitive": "reject", "max_size": 200})
    task = app.task(name="note")(note).using(tenant="acme")
    job = task.enqueue("x")
    with pytest.raises(SensitivePayload, match="was not changed"):
        app.jobs.edit(job.id, arguments={"other": {"password": "hunter2"}})
    with pytest.raises(PayloadTooLarge, match="was not changed"):
        app.jobs.edit(job.id, arguments={"text": "x" * 300})
    assert job.refresh().arguments == {"text": "x", "other": None}


def test_arguments_of_a_task_that_nobody_knows_cannot_be_checked(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """What needs no task can still be changed."""
    job = billing.enqueue(7)
    stranger = world.app()
    with pytest.raises(UnknownTask, match=f"job {job.id} was not changed"):
        stranger.jobs.edit(job.id, arguments={"order": 8})
    assert stranger.jobs.edit(job.id, priority=3).priority == 3


def test_damaged_arguments_are_not_merged(world: World, app: Fairlane, billing: Task[..., None]) -> None:
    """S33: bytes that fail their checksum say nothing."""
    job = billing.enqueue(7)
    world.oracle.jobs._core.books.jobs[job.id] = replace(world.one(), checksum=1)
    with pytest.raises(InvalidJob, match="arguments: cannot be read as they are stored"):
        app.jobs.edit(job.id, arguments={"order": 8})


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED, State.DEAD])
async def test_a_job_that_does_not_wait_is_refused_with_what_to_do(
    world: World, app: Fairlane, billing: Task[..., None], state: State
) -> None:
    """S64: it stays as it is."""
    job = await billing.aenqueue(7)
    if state is State.RUNNING:
        await world.claim()
    elif state is State.DEAD:
        await world.fail()
    else:
        await world.succeed()
    before = world.one()
    with pytest.raises(WrongState) as caught:
        await app.jobs.aedit(job.id, priority=5)
    assert (caught.value.id, caught.value.state) == (job.id, state.value)
    todo = "cancel it, or wait" if state is State.RUNNING else "enqueue a new job"
    assert f"is {state.value}: only a waiting job can be changed; {todo}" in str(caught.value)
    assert world.one() == before


async def test_a_job_that_was_claimed_meanwhile_is_refused_as_well(
    world: World, app: Fairlane, billing: Task[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading it and changing it."""
    job = await billing.aenqueue(7)
    read = app.client.aget

    async def claimed_after(*args: Any) -> Any:
        record = await read(*args)
        if record.state is State.READY:
            await world.claim()
        return record

    monkeypatch.setattr(app.client, "aget", claimed_after)
    with pytest.raises(WrongState, match="is running"):
        await app.jobs.aedit(job.id, priority=5)
    assert world.one().priority == 0


def test_the_time_of_a_ready_job_cannot_change(app: Fairlane, billing: Task[..., None]) -> None:
    """It is due; the error says what to do instead."""
    job = billing.enqueue(7)
    with pytest.raises(WrongState, match=r"is ready: its time has come.*; cancel it and enqueue it again"):
        app.jobs.edit(job.id, delay=60)


def test_an_edit_without_a_change_is_a_mistake(world: World, app: Fairlane, billing: Task[..., None]) -> None:
    """So is an unknown job, and a note that cannot be kept."""
    job = billing.enqueue(7)
    world.asked.clear()
    with pytest.raises(ValueError, match="nothing to change: give priority, "):
        app.jobs.edit(job.id, note="x")
    with pytest.raises(ValueError, match="note: has 5,000 characters"):
        app.jobs.edit(job.id, priority=1, note="x" * 5_000)
    assert world.asked == []
    with pytest.raises(JobNotFound):
        app.jobs.edit(NOBODY, priority=1)


def test_who_changed_a_job_and_why_is_logged(
    app: Fairlane, billing: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """One line, with the note."""
    caplog.set_level("INFO", "fairlane")
    job = billing.enqueue(7)
    app.jobs.edit(job.id, priority=1, note="the customer waits")
    (line,) = [one for one in caplog.records if getattr(one, "event", "") == "job_steered"]
    assert line.getMessage().startswith(f"job {job.id} was edited by ")
    assert line.getMessage().endswith(": the customer waits")


# ── condemn ──────────────────────────────────────────────────────────────────


async def test_waiting_jobs_are_condemned_with_a_reason(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """The reply has those that moved; a running one, and one that nobody knows, are left out."""
    running = await billing.aenqueue(1)
    await world.claim()
    ready, delayed = await billing.aenqueue(2), await billing.using(delay=60).aenqueue(3)
    moved = await app.jobs.acondemn(ready.id, delayed.id, running.id, NOBODY, reason="wrong list")
    assert moved == {ready.id, delayed.id}
    dead = await ready.arefresh()
    assert (dead.state, dead.because) == (State.DEAD, "condemned: wrong list")
    assert (await running.arefresh()).state is State.RUNNING


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2_001])
def test_condemning_needs_a_reason_that_can_be_kept(
    world: World, app: Fairlane, billing: Task[..., None], reason: str
) -> None:
    """Who reviews the dead letter will ask."""
    job = billing.enqueue(1)
    with pytest.raises(ValueError, match="reason"):
        app.jobs.condemn(job.id, reason=reason)
    assert world.one().state is State.READY


# ── again ────────────────────────────────────────────────────────────────────


async def ended(world: World, billing: Task[..., None], state: State) -> Job[Any]:
    """Enqueue a job with everything, and let it end."""
    job = await billing.using(
        priority=3,
        tags=["red"],
        metadata={"plan": "pro"},
        created_by="ann",
        correlation_id="c",
        idempotency_key="order-7",
        max_attempts=2,
        timeout=77,
        expires_in=600,
    ).aenqueue(7, who="grace")
    if state is State.SUCCEEDED:
        await world.succeed()
    elif state is State.DEAD:
        await world.fail()
    elif state is State.CANCELLED:
        await job.acancel()
    elif state is State.RUNNING:
        await world.claim()
    return await job.arefresh()


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED])
async def test_a_finished_job_is_copied_as_a_new_linked_one(
    world: World, app: Fairlane, billing: Task[..., None], state: State
) -> None:
    """S53: byte for byte, with fresh counters; the first job stays as it is."""
    first = await ended(world, billing, state)
    world.clock.advance(3600)
    copy = await app.jobs.aagain(first.id, note="they lost it")
    old, new = world.stored()
    assert (old.id, new.id) == (first.id, copy.id)
    assert (new.payload, new.checksum, new.version) == (old.payload, old.checksum, old.version)
    assert (new.parent_id, new.correlation_id, new.created_by) == (old.id, "c", "ann")
    assert (new.priority, new.tags, new.metadata) == (old.priority, old.tags, old.metadata)
    assert (new.max_attempts, new.timeout, new.queue) == (2, 77 * SECOND, old.queue)
    assert (new.state, new.attempt, new.failures, new.expires_at) == (State.READY, 0, 0, None)
    assert (old.idempotency_key, new.idempotency_key) == ("order-7", str(new.id))
    assert old.state is state
    assert [job.id for job in (await app.jobs.afind(parent=first.id))] == [copy.id]


async def test_a_copy_may_name_who_asks(world: World, app: Fairlane, billing: Task[..., None]) -> None:
    """Otherwise it keeps the creator of the first job (S22)."""
    first = await ended(world, billing, State.SUCCEEDED)
    assert (await app.jobs.aagain(first.id, created_by="ben")).created_by == "ben"
    with pytest.raises(ValueError, match="created_by"):
        await app.jobs.aagain(first.id, created_by="")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.DEAD, "is dead: a dead job is run again from its dead letter; use app.dead.reprocess(id)"),
        (State.READY, "is ready: only a succeeded or cancelled job can be copied; wait until it has ended"),
        (State.RUNNING, "is running: only a succeeded or cancelled job can be copied"),
    ],
)
async def test_what_is_dead_or_not_finished_is_not_copied(
    world: World, app: Fairlane, billing: Task[..., None], state: State, words: str
) -> None:
    """The error says what to do."""
    first = await ended(world, billing, state)
    with pytest.raises(WrongState) as caught:
        await app.jobs.aagain(first.id)
    assert words in str(caught.value)
    assert len(world.stored()) == 1


async def test_arguments_that_are_gone_or_damaged_are_not_copied(
    world: World, app: Fairlane, billing: Task[..., None]
) -> None:
    """A forgotten tenant's jobs have none."""
    first = await ended(world, billing, State.SUCCEEDED)
    jobs = world.oracle.jobs._core.books.jobs
    jobs[first.id] = replace(world.one(), checksum=1)
    with pytest.raises(WrongState, match="its arguments are damaged"):
        await app.jobs.aagain(first.id)
    jobs[first.id] = replace(world.one(), payload=b"", checksum=0)
    with pytest.raises(WrongState, match="its arguments are no longer stored"):
        await app.jobs.aagain(first.id)


async def test_policies_hold_for_a_copy(world: World, app: Fairlane, billing: Task[..., None]) -> None:
    """A closed queue takes none, and a de-duplication key makes one job of two copies."""
    first = await billing.using(dedup_key="k").aenqueue(7)
    await world.succeed()
    one, two = await app.jobs.aagain(first.id), await app.jobs.aagain(first.id)
    assert (one.created, two.created, two.id) == (True, False, one.id)
    await app.queues.aclose("default", reason="moving")
    await app.jobs.acancel(one.id)
    with pytest.raises(Closed):
        await app.jobs.aagain(first.id)
