"""Take the slots of schedules that are due, each schedule alone (S57). Knows nothing of their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from logging import getLogger
from typing import Final, NamedTuple
from uuid import UUID

from fairlane.model.instants import DAY, HOUR, Instant, Micros
from fairlane.model.lifecycle.states import State
from fairlane.model.schedule.advance import Advanced, advanced
from fairlane.model.schedule.records import ScheduleRow, SlotRow
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import GetRequest
from fairlane.store.contract.registry import TasksRequest
from fairlane.store.contract.schedules import MAX_SLOTS, ScheduleChange, SchedulesWriteRequest

UNSEEN_FOR: Final[Micros] = DAY
"""How long no worker has had a task that counts as gone: long enough for workers that rest at night."""

UP_FOR: Final[Micros] = HOUR
"""How long this process must have been up to say so: after all were stopped, others may come back later."""

_log: Final = getLogger("fairlane.duties")


class Taken(NamedTuple):
    """How many schedules have gone on, and how many others had changed meanwhile; which slots were taken.

    `specs` has what was in force for the schedules of the slots.
    """

    advanced: int = 0
    overtaken: int = 0
    slots: Sequence[SlotRow] = ()
    specs: Mapping[str, ScheduleSpec] = {}


class Take:
    """Lets schedules that are due go on, with what is known of their tasks and of their last jobs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.elapsed()

    async def __call__(self, store: Store, rows: Sequence[ScheduleRow], now: Instant, zones: str) -> Taken:
        """Advance schedules. One that somebody has changed meanwhile is left to them."""
        if not rows:
            return Taken()
        problems = await self._problems(store, rows, now)
        endings = await _endings(store, rows)
        slots: list[SlotRow] = []
        specs: dict[str, ScheduleSpec] = {}
        advanced = 0
        for part in _parts(rows, problems, endings, now, zones):
            changes = tuple(
                ScheduleChange(
                    name=row.record.name, revision=row.revision, record=after.record, slots=after.slots
                )
                for row, after in part
            )
            request = SchedulesWriteRequest(scope=Scope.all(), changes=changes)
            reply = await store.schedules.write(request)
            advanced += sum(reply.is_made)
            slots += reply.taken
            for (row, after), is_made in zip(part, reply.is_made, strict=True):
                spec = after.record.spec(now)
                if is_made and spec is not None:
                    specs[row.record.name] = spec
                if is_made:
                    _log_news(row, after)
        return Taken(advanced, len(rows) - advanced, slots, specs)

    async def _problems(self, store: Store, rows: Sequence[ScheduleRow], now: Instant) -> Mapping[str, str]:
        """Return why tasks cannot run any more."""
        specs = [row.record.spec(now) for row in rows]
        tasks = {spec.task for spec in specs if spec is not None}
        views = await store.registry.tasks(TasksRequest(scope=Scope.all(), names=tuple(tasks)))
        seen_at = {name: view.seen_at for view in views for name in (view.record.name, *view.record.aliases)}
        problems: dict[str, str] = {}
        for task in tasks:
            if task not in seen_at:
                problems[task] = f"no worker has ever had task {task}"
            elif now - seen_at[task] > UNSEEN_FOR and self._clock.elapsed() - self._since > UP_FOR:
                problems[task] = f"no worker has had task {task} for a day"
        return problems


async def _endings(store: Store, rows: Sequence[ScheduleRow]) -> Mapping[UUID, State]:
    """Return the states of watched jobs, in one read for all schedules."""
    ids = tuple({job for row in rows for job in row.record.watched})
    if not ids:
        return {}
    jobs = await store.jobs.get(GetRequest(scope=Scope.all(), ids=ids))
    return {id: job.state for id, job in jobs.items()}


def _parts(
    rows: Sequence[ScheduleRow],
    problems: Mapping[str, str],
    endings: Mapping[UUID, State],
    now: Instant,
    zones: str,
) -> Iterator[list[tuple[ScheduleRow, Advanced]]]:
    """Yield how schedules go on, in parts that one request may write."""
    part: list[tuple[ScheduleRow, Advanced]] = []
    slots = 0
    for row in rows:
        spec = row.record.spec(now)
        problem = "" if spec is None else problems.get(spec.task, "")
        after = advanced(row.record, now, endings=endings, problem=problem, zones=zones)
        if slots + len(after.slots) > MAX_SLOTS:
            yield part
            part, slots = [], 0
        part.append((row, after))
        slots += len(after.slots)
    yield part


def _log_news(row: ScheduleRow, after: Advanced) -> None:
    before, record = row.record, after.record
    extra = {"schedule": record.name, "tenant": record.tenant}
    if record.problem and not before.problem:
        text = "schedule %s begins to fail: %s"
        _log.warning(text, record.name, record.problem, extra={"event": "schedule_failed", **extra})
    missed = sum(slot.missed + (slot.state == "missed") for slot in after.slots)
    if missed:
        text = "%d slots of schedule %s were missed"
        _log.warning(text, missed, record.name, extra={"event": "schedule_missed", **extra})
    if record.paused is not None and before.paused is None:
        text = "schedule %s is paused: %s"
        _log.error(text, record.name, record.paused.reason, extra={"event": "schedule_paused", **extra})
