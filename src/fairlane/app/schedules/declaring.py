"""Write the declared schedules to the store when a process starts; the newest start wins (S54).

What operators have paused or edited stays so. A schedule that the application no longer declares is retired.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import getLogger
from typing import Any, Final

from msgspec.structs import replace

from fairlane.app.ambient import acting_for_all_tenants
from fairlane.app.client import Client
from fairlane.app.schedules.building import build_schedule
from fairlane.model.errors import ConfigError, StoreBusy
from fairlane.model.instants import Instant
from fairlane.model.schedule.errors import InvalidSchedule
from fairlane.model.schedule.records import ScheduleRecord, ScheduleRow
from fairlane.model.schedule.restart import restarted
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.schedule.timing import At
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.schedules import (
    MAX_SCHEDULE_CHANGES,
    ScheduleChange,
    SchedulesListRequest,
    SchedulesWriteRequest,
)

_log: Final = getLogger("fairlane")
_TRIES: Final = 20


def words_of(client: Client) -> Mapping[str, Mapping[str, Any]]:
    """Return what code and file say of each schedule; a word of the file replaces that of the code."""
    found: dict[str, Mapping[str, Any]] = {one.name: one.words for one in client.schedule_registry}
    for name, words in client.settings.schedules.items():
        found[name] = _over(found.get(name, {}), words)
    return found


def _over(code: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"cron", "every", "at"}
    kept = {word: value for word, value in code.items() if word not in kinds or not kinds & set(file)}
    return {**kept, **file}


async def declared_specs(client: Client) -> dict[str, ScheduleSpec]:
    """Return the checked schedules of code and file; `ConfigError` lists what is wrong with one."""
    specs: dict[str, ScheduleSpec] = {}
    for name, words in words_of(client).items():
        try:
            with acting_for_all_tenants():  # a worker does this at its start, inside no tenant
                specs[name] = await build_schedule(client, name, words)
        except InvalidSchedule as error:
            lines = "; ".join(problem.text for problem in error.problems)
            raise ConfigError(lines, key=f"schedule {name}") from error
    return specs


async def declare_schedules(client: Client, store: Store) -> None:
    """Write the declared schedules, and retire those of this application that are no longer declared.

    A process without tasks, as a scheduler without an application, leaves that to the workers.
    """
    if not any(True for _ in client.registry):
        return
    specs, application = await declared_specs(client), client.settings.name
    for _ in range(_TRIES):
        rows, now = await _rows(store)
        changes = [
            ScheduleChange(name=record.name, revision=revision, record=record)
            for record, revision in _changed(rows, specs, application, now)
        ]
        if await _write(store, changes):
            return
    message = "the schedules were changed again and again by others while they were declared"
    raise StoreBusy(message, retry_safe=True)


async def _rows(store: Store) -> tuple[dict[str, ScheduleRow], Instant]:
    rows: dict[str, ScheduleRow] = {}
    after = ""
    while True:
        request = SchedulesListRequest(scope=Scope.all(), after=after, limit=MAX_PAGE_SIZE)
        reply = await store.schedules.list(request)
        rows |= {row.record.name: row for row in reply.rows}
        if len(reply.rows) < MAX_PAGE_SIZE:
            return rows, reply.now
        after = reply.rows[-1].record.name


async def _write(store: Store, changes: list[ScheduleChange]) -> bool:
    is_done = True
    for start in range(0, len(changes), MAX_SCHEDULE_CHANGES):
        part = tuple(changes[start : start + MAX_SCHEDULE_CHANGES])
        reply = await store.schedules.write(SchedulesWriteRequest(scope=Scope.all(), changes=part))
        is_done = is_done and all(reply.is_made)
    return is_done


def _changed(
    rows: Mapping[str, ScheduleRow], specs: Mapping[str, ScheduleSpec], application: str, now: Instant
) -> list[tuple[ScheduleRecord, int]]:
    """Return the records that must be written, with the revisions that they replace."""
    changed: list[tuple[ScheduleRecord, int]] = []
    for name, spec in specs.items():
        row = rows.get(name)
        before = ScheduleRecord(name=name) if row is None else row.record
        record = _declared(before, spec, application, now)
        if row is None or record != before:
            changed.append((record, 0 if row is None else row.revision))
    for name, row in rows.items():
        record = row.record
        is_ours = record.application == application and record.declared is not None
        if is_ours and name not in specs and record.retired_at is None:
            text = "schedule %s is no longer declared: it is retired"
            _log.warning(text, name, extra={"event": "schedule_retired", "schedule": name})
            changed.append((replace(record, retired_at=now, next_at=None), row.revision))
    return changed


def _declared(before: ScheduleRecord, spec: ScheduleSpec, application: str, now: Instant) -> ScheduleRecord:
    """Return a record with what is declared of it now. It starts anew only if its times have changed."""
    was = before.declared
    record = replace(before, declared=spec, application=application)
    if was is not None and was != spec:
        text = "the declared schedule %s has changed"
        _log.warning(text, spec.name, extra={"event": "schedule_changed", "schedule": spec.name})
    is_over = isinstance(spec.timing, At) and spec.timing.instant <= now
    if before.retired_at is not None and not is_over:
        return restarted(replace(record, retired_at=None), now)
    if was is not None and _times(was) == _times(spec):
        return record
    if was is None and before.override is None:
        return restarted(record, now)
    return record if record.spec(now) is not spec else restarted(record, now)


def _times(spec: ScheduleSpec) -> tuple[object, ...]:
    return spec.timing, spec.starts, spec.ends
