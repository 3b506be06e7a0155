"""Every duty is watched: what its passes did, how late they began, how they failed, who leads (S104)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from logging import getLogger
from typing import Any

import pytest

from fairlane.app.settings import settings_of
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.duties import Duties, all_duties
from fairlane.duties.duty_watch import Duty, DutyWatch, LedTime, duty_name
from fairlane.duties.pass_result import Pause
from fairlane.model.duty_report import DUTIES, DutyReport, DutyReports
from fairlane.model.errors import StoreUnavailable
from fairlane.model.instants import DAY, MINUTE, SECOND, Instant, Micros
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.outage import StoreOutage
from fairlane.store.contract.registry import DutiesReply, DutiesRequest, LeadRequest, LeaveRequest
from tests.contract.world import ALL, World
from tests.worker.world import until_async


class Clock:
    """A process's clock, moved by the test."""

    def __init__(self) -> None:
        self.at: Micros = 0

    def wall(self) -> Instant:
        """Say what time it is."""
        return self.at

    def elapsed(self) -> Micros:
        """Count on."""
        return self.at

    async def wait(self, duration: Micros) -> None:
        """Let the time pass."""
        self.at += duration


class Moved:
    """A duty whose passes do what the test says, and take a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.does: Callable[[], Micros] = lambda: MINUTE

    async def __call__(self, store: object) -> Micros:
        """Take a second."""
        self.clock.at += SECOND
        return self.does()


@pytest.fixture
def clock() -> Clock:
    """The process's clock."""
    return Clock()


@pytest.fixture
def moved(clock: Clock) -> Moved:
    """The duty."""
    return Moved(clock)


@pytest.fixture
def watch(clock: Clock, moved: Moved) -> DutyWatch:
    """The watch of it, at 1,000 s of the store's clock."""
    time = LedTime(clock)
    time.set(1_000 * SECOND)
    return DutyWatch("moved", moved, "w1", time)


def raises(error: BaseException) -> Callable[[], Micros]:
    """Return what raises this."""

    def fail() -> Micros:
        raise error

    return fail


async def test_a_pass_is_reported_with_what_it_did_and_when_the_next_comes(
    watch: DutyWatch, moved: Moved
) -> None:
    """In the store's time, whatever this machine's clock says."""
    moved.does = lambda: Pause(MINUTE, "3 moved")
    assert await watch(None) == MINUTE  # type: ignore[arg-type]
    assert watch.report == DutyReport(
        name="moved",
        worker="w1",
        began_at=1_000 * SECOND,
        took=SECOND,
        late=0,
        next_at=1_061 * SECOND,
        did="3 moved",
    )


async def test_a_pass_that_begins_after_it_was_due_is_late(
    watch: DutyWatch, moved: Moved, clock: Clock
) -> None:
    """By that time; one that is woken early is not late by less than nothing."""
    await watch(None)  # type: ignore[arg-type]
    clock.at += 65 * SECOND
    await watch(None)  # type: ignore[arg-type]
    assert watch.report is not None
    assert watch.report.late == 5 * SECOND
    clock.at += SECOND
    await watch(None)  # type: ignore[arg-type]
    assert watch.report.late == 0


async def test_failures_in_a_row_are_counted_and_the_pause_grows(watch: DutyWatch, moved: Moved) -> None:
    """Secrets in the message are redacted; a pass that succeeds ends the row."""
    moved.does = raises(RuntimeError("password=hunter2 was refused"))
    pauses = []
    for _ in range(3):
        with pytest.raises(RuntimeError):
            await watch(None)  # type: ignore[arg-type]
        pauses.append(watch.failed())
    assert pauses == [30 * SECOND, 60 * SECOND, 120 * SECOND]
    assert watch.report is not None
    assert (watch.report.failures, watch.report.error) == (3, "RuntimeError: password=[redacted] was refused")
    assert watch.report.next_at == 1_003 * SECOND + 120 * SECOND
    moved.does = lambda: MINUTE
    await watch(None)  # type: ignore[arg-type]
    assert (watch.report.failures, watch.report.error) == (0, "")


@pytest.mark.parametrize("error", [StoreUnavailable("away"), asyncio.CancelledError()])
async def test_an_outage_or_an_end_of_the_process_is_no_failure(
    watch: DutyWatch, moved: Moved, error: BaseException
) -> None:
    """The last report stays, and says how overdue the duty is."""
    await watch(None)  # type: ignore[arg-type]
    before, moved.does = watch.report, raises(error)
    with pytest.raises(type(error)):
        await watch(None)  # type: ignore[arg-type]
    assert watch.report == before


async def test_a_new_leader_goes_on_from_what_was_reported(watch: DutyWatch, moved: Moved) -> None:
    """So that failures are counted on, and the time without a leader is seen as lag."""
    old = DutyReport(
        name="moved", worker="w0", began_at=0, took=1, late=0, next_at=900 * SECOND, failures=2, error="x"
    )
    watch.take_over(DutyReports(1, (old,)))
    assert watch.report == old
    moved.does = raises(ValueError("y"))
    with pytest.raises(ValueError, match="y"):
        await watch(None)  # type: ignore[arg-type]
    assert watch.report is not None
    assert (watch.report.worker, watch.report.failures, watch.report.late) == ("w1", 3, 100 * SECOND)
    own = watch.report
    watch.take_over(DutyReports(1, (old,)))
    assert watch.report == own
    watch.rest()
    assert watch.report is None


def test_every_duty_has_a_name_and_says_what_it_does() -> None:
    """Which `fairlane duties` shows."""
    made = all_duties(MachineClock(), WorkerSettings(), settings_of())
    assert sorted(map(duty_name, made)) == sorted(DUTIES)


# ── with a store ─────────────────────────────────────────────────────────────


def duties_of(world: World, name: str, *more: Duty) -> Duties:
    """Return the duties of a process, and some of the test's own."""
    outage = StoreOutage(getLogger("fairlane.duties"), name, lambda: None)
    settings = WorkerSettings(lease=2 * SECOND, renew_every=SECOND // 20)
    made = Duties(name, lambda: world.store, MachineClock(), settings_of(), settings, outage)
    made._duties = (*made._duties, *more)
    return made


async def reported(world: World) -> DutiesReply:
    """Return what the store knows."""
    return await world.store.registry.duties(DutiesRequest(scope=ALL, name="duties"))


async def test_the_leader_reports_every_duty_and_the_one_that_fails(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """With its lead: no call is made for it. A duty that fails stops no other."""

    async def faulty(store: object) -> Micros:
        message = "not what it seemed"
        raise RuntimeError(message)

    made = duties_of(world, "w1", faulty)
    running = asyncio.ensure_future(made.run())

    async def names() -> list[str]:
        return sorted(one.name for one in (await reported(world)).reports.duties)

    await until_async(names, sorted([*DUTIES, "faulty"]))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    found = await reported(world)
    assert found.leader is not None
    assert found.leader.worker == "w1"
    by_name = {one.name: one for one in found.reports.duties}
    assert {name for name, one in by_name.items() if one.failures} == {"faulty"}
    assert by_name["faulty"].error == "RuntimeError: not what it seemed"
    assert {one.worker for one in by_name.values()} == {"w1"}
    record, *_ = [one for one in caplog.records if getattr(one, "event", "") == "duty_failed"]
    assert record.getMessage() == "duty faulty failed; again in 30 s"


async def test_who_takes_the_lead_keeps_what_the_one_before_has_said(world: World) -> None:
    """Until its own passes say otherwise."""
    old = DutyReport(name="follow", worker="w0", began_at=1, took=1, late=0, next_at=world.now + DAY)
    other = DutyReport(name="of-before", worker="w0", began_at=1, took=1, late=0, next_at=2)
    reports = DutyReports(world.now, (old, other))
    lead = LeadRequest(scope=ALL, name="duties", worker="w0", lease=SECOND, reports=reports)
    await world.store.registry.lead(lead)
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w0"))

    async def endless(store: object) -> Micros:
        await asyncio.Event().wait()
        return 0

    made = duties_of(world, "w1")
    made._duties = (_named("follow", endless),)
    running = asyncio.ensure_future(made.run())

    async def leader() -> tuple[str, ...]:
        found = await reported(world)
        is_new = found.leader is not None and found.reports.duties != reports.duties
        return tuple(one.worker for one in found.reports.duties) if is_new else ()

    wanted: tuple[str, ...] = ("w0",)
    await until_async(leader, wanted)
    assert (await reported(world)).reports.duties == (old,)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _named(name: str, duty: Any) -> Any:
    duty.__name__ = name
    return duty
