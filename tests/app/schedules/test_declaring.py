"""Schedules that code and file declare: written when a worker starts, changed, retired; edits stay."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from fairlane import ConfigError, Fairlane, Tasks
from fairlane.app.schedules.declaring import declare_schedules
from fairlane.model.instants import HOUR, MINUTE, SECOND, to_instant
from fairlane.model.schedule.records import ScheduleRow
from fairlane.model.schedule.timing import At, Cron, Every
from fairlane.model.scope import Scope
from fairlane.store.contract.schedules import SchedulesFindRequest
from tests.app.world import World, note


async def declared(world: World, app: Fairlane) -> dict[str, ScheduleRow]:
    """Start a worker's part that declares; return what is kept."""
    await declare_schedules(app.client, app.client.store)
    return {name: row for name in NAMES for row in [await kept(world, name)] if row is not None}


async def kept(world: World, name: str) -> ScheduleRow | None:
    """Return what is kept of a schedule."""
    request = SchedulesFindRequest(scope=Scope.all(), names=(name,))
    rows = (await world.oracle.schedules.find(request)).rows
    return rows[0] if rows else None


START = datetime(2026, 7, 1, 8, 5)  # noqa: DTZ001 (the zone is that of the schedule)
NAMES = ("report", "tick", "stocks", "once", "own")


async def test_a_decorator_declares_a_schedule(world: World) -> None:
    """With everything that is said of it; the task stays what it was."""
    app = world.app(config={})
    task = app.task(name="report", queue="slow")(note)
    same = app.schedule(
        "*/5 * * * *",
        name="stocks",
        timezone="America/New_York",
        between=(time(9, 30), "16:00"),
        weekdays=["mon", "FRI"],
        holidays=["2026-12-25"],
        catch_up=10,
        look_back=timedelta(hours=2),
        overlap="skip",
        unique_for="5m",
        pause_after=3,
        tenant="acme",
        spread="1m",
        arguments={"text": "x"},
        priority=7,
        tags=["market"],
        metadata={"plan": "pro"},
        expires_in=60,
        note="while the market is open",
    )(task)
    assert same is task
    row = (await declared(world, app))["stocks"]
    spec = row.record.declared
    assert spec is not None
    assert spec.timing == Cron(
        expression="*/5 * * * *",
        timezone="America/New_York",
        between=("09:30", "16:00"),
        weekdays=("MON", "FRI"),
        holidays=("2026-12-25",),
    )
    assert (spec.catch_up, spec.look_back, spec.overlap, spec.unique_for) == (
        10,
        2 * HOUR,
        "skip",
        5 * MINUTE,
    )
    assert (spec.pause_after, spec.spread, spec.note) == (3, MINUTE, "while the market is open")
    job = spec.job
    assert (job.task, job.queue, job.tenant, job.priority) == ("report", "slow", "acme", 7)
    assert (job.tags, job.metadata, job.expires_in) == (("market",), b'{"plan":"pro"}', MINUTE)
    assert b'"x"' in job.payload
    assert (row.record.application, row.record.next_at is not None) == ("fairlane", True)


async def test_an_interval_counts_from_its_start_and_a_single_run_has_its_zone(world: World) -> None:
    """Times without a zone are those of the schedule."""
    app = world.app(config={})
    task = app.task(name="tick")(note)
    app.schedule(every="15m", name="tick", timezone="Europe/Berlin", starts=START)(task)
    app.schedule(at="2030-07-01T08:00", timezone="Europe/Berlin", name="once")(task)
    rows = await declared(world, app)
    start = to_instant(datetime(2026, 7, 1, 6, 5, tzinfo=UTC))
    spec = rows["tick"].record.declared
    assert spec is not None
    assert spec.timing == Every(interval=15 * MINUTE, anchor=start, timezone="Europe/Berlin")
    assert spec.starts == start
    once = rows["once"].record.declared
    assert once is not None
    assert once.timing == At(to_instant(datetime(2030, 7, 1, 6, tzinfo=UTC)), "Europe/Berlin")


async def test_a_collection_brings_its_schedules(world: World) -> None:
    """Those declared before it is included, and after."""
    app, tasks = world.app(config={}), Tasks(prefix="shop.")
    first = tasks.task(name="report")(note)
    tasks.schedule("@daily", name="report")(first)
    app.include(tasks)
    tasks.schedule(every=60, name="tick")(first)
    assert set(await declared(world, app)) == {"report", "tick"}


async def test_the_file_declares_schedules_and_its_words_win(world: World) -> None:
    """Over those of the code, word by word; another way to say when replaces the one of the code."""
    file = {"schedules": {"own": {"task": "report", "every": "1h"}, "report": {"cron": "0 3 * * *"}}}
    app = world.app(config=file)
    app.schedule(every=60, overlap="skip")(app.task(name="report")(note))
    rows = await declared(world, app)
    spec = rows["report"].record.declared
    assert spec is not None
    assert (spec.timing, spec.overlap) == (Cron(expression="0 3 * * *"), "skip")
    assert rows["own"].record.declared is not None


async def test_a_second_start_changes_nothing(world: World) -> None:
    """Nor does one after hours without a scheduler: what was missed then is still to be made up for."""
    app = world.app(config={})
    app.schedule(every=60, name="tick")(app.task(name="report")(note))
    before = (await declared(world, app))["tick"]
    world.clock.advance(86_400)
    assert (await declared(world, app))["tick"] == before


async def test_other_times_begin_anew_and_other_words_do_not(world: World) -> None:
    """A deploy that changes the arguments loses no slot; one that changes the times makes none up."""
    first, second, third = (world.app(config={}) for _ in range(3))
    first.schedule(every=60, name="tick")(first.task(name="report")(note))
    second.schedule(every=60, name="tick", priority=3)(second.task(name="report")(note))
    third.schedule(every=120, name="tick")(third.task(name="report")(note))
    before = (await declared(world, first))["tick"].record
    world.clock.advance(86_400)
    after = (await declared(world, second))["tick"].record
    assert (after.settled_to, after.next_at) == (before.settled_to, before.next_at)
    last = (await declared(world, third))["tick"].record
    assert last.settled_to == world.clock.now()
    assert last.next_at is not None
    assert last.next_at > world.clock.now()


async def test_what_is_no_longer_declared_is_retired_and_may_come_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """By the same application; that of another one stays."""
    first, second = world.app(config={}), world.app(config={})
    other = world.app(config={}, name="other")
    for app, name in ((first, "tick"), (other, "own")):
        app.schedule(every=60, name=name)(app.task(name="report")(note))
    second.task(name="report")(note)
    await declared(world, first)
    await declared(world, other)
    rows = await declared(world, second)
    assert rows["tick"].record.retired_at == world.clock.now()
    assert rows["tick"].record.next_at is None
    assert rows["own"].record.retired_at is None
    assert "schedule tick is no longer declared: it is retired" in caplog.text
    world.clock.advance(86_400)
    back = (await declared(world, first))["tick"].record
    assert (back.retired_at, back.settled_to) == (None, world.clock.now())


async def test_a_process_without_tasks_declares_and_retires_nothing(world: World) -> None:
    """As a scheduler without an application: the workers do."""
    app, scheduler = world.app(config={}), world.app(config={"schedules": {"own": {"task": "x", "every": 5}}})
    app.schedule(every=60, name="tick")(app.task(name="report")(note))
    await declared(world, app)
    assert (await declared(world, scheduler))["tick"].record.retired_at is None
    assert await kept(world, "own") is None


async def test_an_edit_and_a_pause_survive_a_start(world: World) -> None:
    """They are an operator's; what is declared below them changes all the same (S54)."""
    first, second = world.app(config={}), world.app(config={})
    first.schedule(every=60, name="tick")(first.task(name="report")(note))
    second.schedule(every=90, name="tick")(second.task(name="report")(note))
    await declared(world, first)
    await first.schedules.aedit("tick", every=300, note="less often")
    await first.schedules.apause("tick", reason="quiet")
    record = (await declared(world, second))["tick"].record
    assert record.paused is not None
    spec, declares = record.spec(world.clock.now()), record.declared
    assert spec is not None
    assert declares is not None
    assert (spec.timing, declares.timing) == (Every(interval=300_000_000), Every(interval=90_000_000))


async def test_a_single_run_that_is_over_stays_over(world: World) -> None:
    """A deploy after it does not begin it again."""
    app = world.app(config={})
    at = datetime(2030, 1, 1, tzinfo=UTC)
    app.schedule(at=at, name="once")(app.task(name="report")(note))
    row = (await declared(world, app))["once"]
    world.clock.advance((to_instant(at) - world.clock.now()) / SECOND + 60)
    assert (await declared(world, app))["once"] == row


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cron": "0 25 * * *"}, "cron: "),
    ({"every": 0.5}, "every: is 0.5 s"),
    ({}, "cron: is missing, and so are every and at"),
    ({"cron": "@daily", "every": 5}, "every: is given together with cron"),
    ({"every": 5, "timezone": "Europe/Berlyn"}, "Europe/Berlin"),
    ({"every": 5, "days": "and"}, "days: is given, but only a cron expression has it"),
    ({"at": "2030-01-01T00:00", "between": ("09:00", "10:00")}, "between: is given, but one instant"),
    ({"cron": "0 0 31 2 *"}, "cron: "),
    ({"every": 5, "between": "all day"}, "between: "),
    ({"every": 5, "weekdays": ["Mon", "Funday"]}, "weekdays: "),
    ({"every": 5, "holidays": ["Christmas"]}, "holidays: "),
    ({"at": "soon"}, "at: is 'soon'"),
    ({"every": 5, "name": "No Name"}, "is no legal name of a schedule"),
    ({"every": 5, "evry": 6}, "evry is not known; did you mean 'every'?"),
]


@pytest.mark.parametrize(("said", "what"), WRONG, ids=[what for _, what in WRONG])
def test_wrong_times_are_refused_when_they_are_declared(
    app: Fairlane, said: dict[str, Any], what: str
) -> None:
    """At import, before any worker starts."""
    task = app.task(name="report")(note)
    with pytest.raises(ConfigError) as error:
        app.schedule(**said)(task)
    assert what in str(error.value)


async def test_the_rest_is_refused_when_a_worker_starts(world: World) -> None:
    """All at once: arguments, queue, labels, numbers."""
    app = world.app(config={}, fixed_queues=True)

    async def strict(number: int) -> None: ...

    options: dict[str, Any] = {"tenant": "-acme", "queue": "No Queue", "catch_up": 0, "pause_after": "many"}
    app.schedule(every=60, name="tick", arguments={"number": "x", "other": 1}, **options)(
        app.task(name="report")(strict)
    )
    with pytest.raises(ConfigError) as error:
        await declare_schedules(app.client, app.client.store)
    text = str(error.value)
    assert error.value.key == "schedule tick"
    for field in ("catch_up", "pause_after", "arguments.number", "arguments.other"):
        assert f"{field}: " in text
    assert await kept(world, "tick") is None


def test_only_a_task_is_scheduled(app: Fairlane) -> None:
    """And each name once."""
    with pytest.raises(ConfigError, match="it is no task"):
        app.schedule(every=60)(note)  # type: ignore[type-var]
    task = app.task(name="report")(note)
    app.schedule(every=60)(task)
    with pytest.raises(ConfigError, match="the name is taken"):
        app.schedule(every=90)(task)
    shouting = app.task(name="REPORT")(note)
    with pytest.raises(ConfigError, match="'REPORT', the name of its task, is no legal name"):
        app.schedule(every=60)(shouting)
