"""Leaders and subscribers for tests of the journals' duties. Asserts nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from fairlane.app.journal_settings import AuditSettings, DeadLetterSettings, EventSettings
from fairlane.app.settings import Settings, settings_of
from fairlane.duties.journals.seal_audit import SealAudit
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.model.instants import Micros
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import Entry, JournalName, NewEntry
from fairlane.model.lifecycle.states import State
from fairlane.model.payload.encoding import decode_arguments
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import AppendRequest, EntriesRequest
from fairlane.store.contract.registry import TaskRecord
from tests.contract.world import World

ALL = Scope.all()
SCHEMA = b'{"type":"object","properties":{"event":{}},"required":["event"]}'


def settings(
    *,
    alert_above: int | None = 50,
    retention: Retention | None = None,
    events: EventSettings | None = None,
    key: bytes | None = None,
) -> Settings:
    """Return the settings of an application."""
    return msgspec.structs.replace(
        settings_of(),
        dead_letters=DeadLetterSettings(alert_above=alert_above),
        retention=retention or Retention(),
        events=events or EventSettings(),
        audit=AuditSettings(key=key),
    )


def teller(**values: Any) -> TellEvents:
    """Return the duty of the events, of a new leader."""
    return TellEvents(settings(**values))


def sealer(**values: Any) -> SealAudit:
    """Return the duty of the audit, of a new leader."""
    return SealAudit(AuditSettings(**values))


async def settle_down(world: World, duty: Callable[[Any], Awaitable[Micros]], most: int = 50) -> None:
    """Let a duty do everything that it can do now."""
    for _ in range(most):
        if await duty(world.store) > 0:
            return
    raise AssertionError("the duty finds no end")


async def tell(world: World, **values: Any) -> None:
    """Let a new leader tell all events of now."""
    await settle_down(world, teller(**values))


def subscriber(name: str, *kinds: str, **values: Any) -> TaskRecord:
    """Return a task that subscribes to events."""
    return TaskRecord(**{"name": name, "queue": "default", "schema": SCHEMA, "events": kinds, **values})


async def append(world: World, *entries: NewEntry, journal: JournalName = "events") -> None:
    """Append entries as a step does."""
    await world.store.journal.append(AppendRequest(scope=ALL, journal=journal, entries=entries))


async def happen(world: World, *subjects: str, kind: str = "worker_lost") -> None:
    """Let something happen to each of these."""
    await append(world, *(NewEntry(kind=kind, subject=subject) for subject in subjects))


async def numbered(world: World, journal: JournalName = "events", **filters: Any) -> list[Entry]:
    """Return the numbered entries of a journal."""
    request = EntriesRequest(scope=ALL, journal=journal, limit=1_000, **filters)
    return list((await world.store.journal.entries(request)).entries)


async def told(world: World) -> list[tuple[str, str, int]]:
    """Return kind, subject and count of every event."""
    return [(one.entry.kind, one.entry.subject, one.entry.count) for one in await numbered(world)]


async def jobs_of(world: World, task: str) -> list[JobRecord]:
    """Return the jobs of a task, oldest first."""
    return [*reversed(await world.find_all(task=task))]


def event_of(job: JobRecord) -> dict[str, Any]:
    """Return the event that a job was made for."""
    (event,) = decode_arguments(job.payload).values()
    assert isinstance(event, dict)
    return event


async def events_of(world: World, task: str) -> list[int]:
    """Return the numbers of the events that a task has a job for, one for each job."""
    return sorted(event_of(job)["number"] for job in await jobs_of(world, task))


async def die(world: World, number: int = 1, **values: Any) -> None:
    """Let jobs die, each in a step of its own."""
    for _ in range(number):
        await world.bring_to(State.DEAD, **values)
