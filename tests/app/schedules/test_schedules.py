"""`app.schedules`: add, edit, pause, run, backfill, remove; what is refused, what is audited, who may."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane import (
    Fairlane,
    InsideTenant,
    InvalidSchedule,
    Limits,
    Queue,
    ScheduleExists,
    ScheduleNotFound,
    Task,
    WaitingLimitReached,
)
from fairlane.app.schedules.declaring import declare_schedules
from fairlane.app.task.rules import declared_rules
from fairlane.model.identifiers import slot_id
from fairlane.model.instants import HOUR, SECOND, to_instant
from fairlane.model.schedule.records import NewSlot, ScheduleRow
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.schedules import (
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesWriteRequest,
)
from tests.app.world import World, note

MIDNIGHT = datetime(2026, 11, 19, tzinfo=UTC)
HOUR_AGO = MIDNIGHT - timedelta(hours=1)


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application at midnight."""
    world.clock.advance((to_instant(MIDNIGHT) - world.clock.now()) / SECOND)
    return world.app(config={})


def row_of(world: World, app: Fairlane, name: str) -> ScheduleRow:
    """Return what is kept of a schedule."""
    request = SchedulesFindRequest(scope=Scope.all(), names=(name,))
    (row,) = app.client.portal.run(world.oracle.schedules.find(request)).rows
    return row


def hours(*numbers: float) -> tuple[datetime, ...]:
    """Return instants after midnight."""
    return tuple(MIDNIGHT + timedelta(hours=number) for number in numbers)


def test_a_schedule_is_added_shown_and_listed(app: Fairlane, task: Task[..., None]) -> None:
    """By name; only those of a task, or those that make jobs."""
    made = app.schedules.add(
        "hourly", task.name, "0 * * * *", timezone="Europe/Berlin", tenant="acme", note="x"
    )
    assert (made.name, made.task, made.tenant, made.note) == ("hourly", "note", "acme", "x")
    assert (made.expression, made.timezone, made.next_at) == ("0 * * * *", "Europe/Berlin", *hours(1))
    assert made.when.startswith("At ")
    assert (made.declared, made.is_active, made.problem) == (False, True, "")
    other = app.task(name="other")(note)
    app.schedules.add("daily", other.name, "@daily")
    app.schedules.pause("daily", reason="x")
    assert [one.name for one in app.schedules.list()] == ["daily", "hourly"]
    assert [one.name for one in app.schedules.list(task="note")] == ["hourly"]
    assert [one.name for one in app.schedules.list(active=True)] == ["hourly"]
    first = app.schedules.list(limit=1)
    assert [one.name for one in app.schedules.list(limit=1, cursor=first.cursor)] == ["hourly"]
    assert app.schedules.get("daily").next_at is None
    assert app.schedules.next("daily", 2) == hours(24, 48)


def test_everything_wrong_is_said_at_once(app: Fairlane, task: Task[..., None], world: World) -> None:
    """And nothing is stored."""
    with pytest.raises(InvalidSchedule) as error:
        app.schedules.add(
            "bad", task.name, "0 25 * * *", timezone="Nowhere", overlap="never", tenant="-x", evry=5,  # type: ignore[arg-type,call-arg]
        )  # fmt: skip
    assert {one.field for one in error.value.problems} >= {"cron", "timezone", "overlap", "tenant", "evry"}
    with pytest.raises(InvalidSchedule) as error:
        app.schedules.add("bad", "nte", "0 5 * * *")
    (problem,) = error.value.problems
    assert (problem.field, problem.code) == ("task", "unknown_task")
    assert "did you mean 'note'" in problem.message
    with pytest.raises(InvalidSchedule, match="at: has passed"):
        app.schedules.add("bad", task.name, at=MIDNIGHT)
    with pytest.raises(InvalidSchedule, match="for_tenants: is given together with tenant"):
        app.schedules.add("bad", task.name, every=60, tenant="acme", for_tenants={"plan": "pro"})
    with pytest.raises(InvalidSchedule, match="ends: is before starts"):
        app.schedules.add("bad", task.name, every=60, starts="2030-01-02", ends="2030-01-01")
    assert app.schedules.list().items == ()


def test_a_name_is_taken_once(app: Fairlane, task: Task[..., None]) -> None:
    """Until the schedule is removed."""
    app.schedules.add("hourly", task.name, every=3600)
    with pytest.raises(ScheduleExists):
        app.schedules.add("hourly", task.name, every=60)
    app.schedules.remove("hourly", note="no longer needed")
    with pytest.raises(ScheduleNotFound):
        app.schedules.get("hourly")
    assert app.schedules.add("hourly", task.name, every=60).expression == "every 1m"


def test_an_edit_changes_some_words_and_keeps_the_others(
    app: Fairlane, world: World, task: Task[..., None]
) -> None:
    """New times begin now; other words change nothing of when it runs next."""
    app.schedules.add("hourly", task.name, every=3600, tenant="acme", arguments={"text": "x"}, tags=["a"])
    payload = row_of(world, app, "hourly").record.spec(world.clock.now()).job.payload  # type: ignore[union-attr]
    world.clock.advance(600)
    edited = app.schedules.edit("hourly", priority=9, note="urgent now", who="ann")
    assert (edited.priority, edited.tags, edited.next_at) == (9, ("a",), *hours(1))
    spec = row_of(world, app, "hourly").record.spec(world.clock.now())
    assert spec is not None
    assert spec.job.payload == payload
    edited = app.schedules.edit("hourly", cron="30 6 * * *", tags=None)
    assert (edited.expression, edited.tags, edited.priority) == ("30 6 * * *", (), 9)
    assert edited.next_at == MIDNIGHT + timedelta(hours=6, minutes=30)
    assert app.schedules.edit("hourly", for_tenants={"plan": "pro"}).tenant is None
    assert app.schedules.edit("hourly", tenant="globex").for_tenants is None
    assert app.schedules.edit("hourly", at=MIDNIGHT + timedelta(days=1)).when.startswith("Once")

    @app.task(name="strict")
    def strict(number: int) -> None: ...

    with pytest.raises(InvalidSchedule, match=r"arguments\.nope"):
        app.schedules.edit("hourly", task=strict.name, arguments={"nope": 1})


async def test_a_declared_schedule_is_edited_shown_as_such_and_reset(app: Fairlane, world: World) -> None:
    """With who, why, until when and which words."""
    app.schedule(every=3600, name="hourly", arguments={"text": "a"})(app.task(name="note")(note))
    await declare_schedules(app.client, app.client.store)
    end = MIDNIGHT + timedelta(hours=5)
    edited = await app.schedules.aedit(
        "hourly", every=60, arguments={"text": "b"}, note="a rush", until=end, who="ann"
    )
    assert edited.declared
    assert edited.edit is not None
    assert (edited.edit.who, edited.edit.note, edited.edit.until) == ("ann", "a rush", end)
    assert set(edited.edit.words) == {"every", "arguments"}
    world.clock.advance(6 * 3600)
    over = await app.schedules.aget("hourly")
    assert (over.expression, over.edit) == ("every 1h", None)
    assert (await app.schedules.areset("hourly", note="over")).expression == "every 1h"
    assert (await app.schedules.areset("hourly")).edit is None
    await app.schedules.aadd("own", "note", every=60)
    with pytest.raises(ValueError, match="remove it instead"):
        await app.schedules.areset("own")


def test_a_pause_ends_without_a_burst(app: Fairlane, world: World, task: Task[..., None]) -> None:
    """What it has left out is settled; the next run is the next one from then on."""
    app.schedules.add("hourly", task.name, every=3600)
    app.schedules.pause("hourly", reason="quota of the partner", who="ann")
    paused = app.schedules.get("hourly")
    assert (paused.next_at, paused.is_active) == (None, False)
    assert paused.paused is not None
    assert (paused.paused.who, paused.paused.reason) == ("ann", "quota of the partner")
    world.clock.advance(5 * 3600 + 60)
    app.schedules.resume("hourly")
    app.schedules.resume("hourly")
    assert app.schedules.get("hourly").next_at == hours(6)[0]
    assert row_of(world, app, "hourly").record.settled_to == world.clock.now()


def test_a_run_now_is_one_job_of_this_moment(app: Fairlane, world: World, task: Task[..., None]) -> None:
    """Besides the planned ones, also of a paused schedule; recorded as a slot."""
    app.schedules.add("hourly", task.name, every=3600, tenant="acme", arguments={"text": "x"})
    app.schedules.pause("hourly", reason="x")
    world.clock.advance(60.5)
    job = app.schedules.run("hourly", note="asked for by phone")
    assert job is not None
    at = MIDNIGHT + timedelta(seconds=60.5)
    assert (job.schedule, job.slot, job.tenant, job.arguments["text"]) == ("hourly", at, "acme", "x")
    (slot,) = app.schedules.history("hourly")
    assert (slot.at, slot.state, slot.cause, slot.job) == (at, "enqueued", "run_now", job.id)
    world.clock.advance(1)
    assert app.schedules.run("hourly") != job
    assert len(app.schedules.history("hourly", limit=1).items) == 1
    page = app.schedules.history("hourly", limit=1)
    assert [one.at for one in app.schedules.history("hourly", cursor=page.cursor)] == [at]


def test_a_refused_run_is_a_failed_slot(world: World) -> None:
    """The caller is told, too."""
    app = world.app(config={}, queues=[Queue("default", limits=Limits(waiting=0, on_full="reject"))])
    app.schedules.add("hourly", app.task(name="note")(note).name, every=3600, tenant="acme")
    app.client.portal.run(_declare_rules(app))
    with pytest.raises(WaitingLimitReached):
        app.schedules.run("hourly")
    (slot,) = app.schedules.history("hourly")
    assert slot.state == "failed"
    assert "waiting" in slot.because


async def _declare_rules(app: Fairlane) -> None:
    await app.client.store.policies.put(PutRequest(scope=Scope.all(), rules=declared_rules(app)))


def test_a_run_for_many_tenants_is_left_to_the_duty(app: Fairlane, task: Task[..., None]) -> None:
    """Its slot is there, pending."""
    app.schedules.add("hourly", task.name, every=3600, for_tenants={"plan": "pro"})
    assert app.schedules.run("hourly") is None
    (slot,) = app.schedules.history("hourly")
    assert (slot.state, slot.tenant, slot.job) == ("pending", None, None)


def test_a_backfill_takes_slots_that_have_made_no_job(
    app: Fairlane, world: World, task: Task[..., None]
) -> None:
    """Not those that have, and none that is still to come."""
    app.schedules.add("hourly", task.name, every=3600, tenant="acme")
    world.clock.advance(4 * 3600 + 60)
    row = row_of(world, app, "hourly")
    done = NewSlot(at=to_instant(hours(2)[0]), tenant="acme", state="skipped", because="overlap")
    made = NewSlot(at=to_instant(hours(3)[0]), tenant="acme")
    change = ScheduleChange(name="hourly", revision=row.revision, record=row.record, slots=(done, made))
    app.client.portal.run(
        world.oracle.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=(change,)))
    )
    assert (
        app.schedules.backfill("hourly", MIDNIGHT, MIDNIGHT + timedelta(days=9), note="after the outage") == 4
    )
    found = {one.at: (one.state, one.cause) for one in app.schedules.history("hourly")}
    assert found == {
        hours(0)[0]: ("pending", "backfill"),
        hours(1)[0]: ("pending", "backfill"),
        hours(2)[0]: ("pending", "backfill"),
        hours(3)[0]: ("pending", "due"),
        hours(4)[0]: ("pending", "backfill"),
    }
    ids = {one.job for one in app.schedules.history("hourly") if one.cause == "backfill"}
    assert slot_id("acme", "hourly", to_instant(hours(1)[0])) in ids
    with pytest.raises(ValueError, match="since: "):
        app.schedules.backfill("hourly", MIDNIGHT + timedelta(days=1), MIDNIGHT)
    app.schedules.edit("hourly", every=1)
    with pytest.raises(ValueError, match="more than 1,000 slots"):
        app.schedules.backfill("hourly", MIDNIGHT, MIDNIGHT + timedelta(days=1))


def test_a_recompute_moves_what_is_elsewhere(app: Fairlane, world: World, task: Task[..., None]) -> None:
    """As after a change of the zone data; what is right stays, and is not audited."""
    for name in ("a", "b"):
        app.schedules.add(name, task.name, every=3600)
    row = row_of(world, app, "a")
    moved = replace(row.record, next_at=7 * HOUR)
    change = ScheduleChange(name="a", revision=row.revision, record=moved)
    app.client.portal.run(
        world.oracle.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=(change,)))
    )
    assert app.schedules.recompute(note="new rules") == 1
    assert app.schedules.get("a").next_at == hours(1)[0]
    assert app.schedules.recompute("a") == 0


def test_a_preview_saves_nothing(app: Fairlane, task: Task[..., None]) -> None:
    """With a task everything is checked; without one only what says when."""
    seen = app.schedules.preview(cron="30 9 * * MON-FRI", timezone="America/New_York", count=2)
    assert [one.isoformat() for one in seen.runs] == [
        "2026-11-19T14:30:00+00:00",
        "2026-11-20T14:30:00+00:00",
    ]
    assert (seen.expression, seen.timezone) == ("30 9 * * MON-FRI", "America/New_York")
    assert seen.when.endswith("New York")
    ending = app.schedules.preview(every="1h", ends="2026-11-19T02:00", task="note")
    assert len(ending.runs) == 2
    for wrong in ({"cron": "0 25 * * *"}, {"every": 60, "task": "nope"}, {"every": 60, "starts": "soon"}):
        with pytest.raises(InvalidSchedule):
            app.schedules.preview(**wrong)
    assert app.schedules.list().items == ()


def test_every_change_is_audited(app: Fairlane, task: Task[..., None]) -> None:
    """Who, what, why."""
    schedules = app.schedules
    with app.acting_as("ann"):
        schedules.add("own", task.name, every=60, note="why add")
        schedules.edit("own", every=90, note="why edit")
        schedules.pause("own", reason="why pause")
        schedules.resume("own", note="why resume")
        schedules.run("own", note="why run")
        schedules.backfill("own", HOUR_AGO, HOUR_AGO, note="why backfill")
        schedules.remove("own", note="why remove")
    found = [
        (one.kind, one.subject, one.note)
        for one in reversed(app.audit.find().items)
        if one.kind.startswith("schedules.")
    ]
    verbs = ("add", "edit", "pause", "resume", "run", "backfill", "remove")
    assert found == [(f"schedules.{verb}", "schedule own", f"why {verb}") for verb in verbs]
    assert {one.actor for one in app.audit.find().items} == {"ann"}


CHANGES: dict[str, Callable[[Fairlane], Any]] = {
    "add": lambda app: app.schedules.add("new", "note", every=60),
    "edit": lambda app: app.schedules.edit("mine", every=60),
    "reset": lambda app: app.schedules.reset("mine"),
    "pause": lambda app: app.schedules.pause("mine", reason="x"),
    "resume": lambda app: app.schedules.resume("mine"),
    "run": lambda app: app.schedules.run("mine"),
    "remove": lambda app: app.schedules.remove("mine"),
    "recompute": lambda app: app.schedules.recompute(),
    "backfill": lambda app: app.schedules.backfill("mine", MIDNIGHT, MIDNIGHT),
}


@pytest.mark.parametrize("verb", CHANGES)
def test_a_tenant_changes_no_schedule(app: Fairlane, task: Task[..., None], verb: str) -> None:
    """Not even its own (S9)."""
    app.schedules.add("mine", task.name, every=60, tenant="acme")
    before = app.schedules.get("mine")
    with app.tenant("acme"), pytest.raises(InsideTenant):
        CHANGES[verb](app)
    assert app.schedules.get("mine") == before


def test_a_tenant_sees_its_own_schedules_only(app: Fairlane, task: Task[..., None]) -> None:
    """Those of others, and those for many tenants, are not there."""
    app.schedules.add("mine", task.name, every=60, tenant="acme")
    app.schedules.add("theirs", task.name, every=60, tenant="globex")
    app.schedules.add("all", task.name, every=60, for_tenants={})
    app.schedules.run("theirs")
    with app.tenant("acme"):
        assert [one.name for one in app.schedules.list()] == ["mine"]
        assert app.schedules.get("mine").tenant == "acme"
        for name in ("theirs", "all", "none"):
            with pytest.raises(ScheduleNotFound):
                app.schedules.get(name)
            with pytest.raises(ScheduleNotFound):
                app.schedules.next(name)
            with pytest.raises(ScheduleNotFound):
                app.schedules.history(name)


def test_names_and_cursors_are_checked(app: Fairlane) -> None:
    """Before the store is asked."""
    with pytest.raises(ValueError, match="schedule 'No Name' is not a legal name"):
        app.schedules.get("No Name")
    with pytest.raises(ValueError, match="is no cursor"):
        app.schedules.history("own", cursor="x")
