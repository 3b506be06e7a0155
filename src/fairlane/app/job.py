"""A job as callers see it: an immutable snapshot with methods to refresh it, cancel it or await its result.

Knows no store: it asks the client of its application.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from fairlane.app.portal import Portal
from fairlane.app.settings import Settings
from fairlane.model.errors import JobCancelled, JobFailed, ResultGone
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Duration, Instant, Micros, to_datetime, to_micros
from fairlane.model.job import AttemptOutcome, AttemptRecord, JobRecord, Progress
from fairlane.model.lifecycle.states import CancelReply, State, is_finished
from fairlane.model.payload.encoding import decode_arguments, decode_result, verify
from fairlane.model.schedule.origin import ScheduledSlot, scheduled_slot
from fairlane.model.scheduling.priority import at_edge

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""The values that a job's metadata may hold."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a job, ended or still running. The error fields are set if it failed.

    `log` holds the last lines that the handler logged with `ctx.log`.
    """

    number: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    outcome: AttemptOutcome
    error_class: ErrorClass | None
    error_type: str | None
    # Free text may quote secrets (S6), and the repr of a job ends up in logs.
    message: str | None = field(repr=False)
    traceback: str | None = field(repr=False)
    log: str | None = field(repr=False, default=None)


class JobClient(Protocol):
    """What a job needs from the client of its application."""

    @property
    def portal(self) -> Portal:
        """The portal that runs blocking calls."""
        ...

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        ...

    def argument_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Return the Enum classes that arguments of this task may hold."""
        ...

    def result_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Return the Enum classes that a result of this task may hold."""
        ...

    async def arefresh(self, job: Job[R]) -> Job[R]:
        """Return a newer snapshot; `JobNotFound` if the caller's scope does not contain the job."""
        ...

    async def acancel(self, job: Job[Any], reason: str) -> CancelReply:
        """Cancel the job, or ask it to stop."""
        ...

    async def afinished(self, job: Job[R], at_most: Micros | None) -> Job[R]:
        """Wait until the job has ended; TimeoutError after `at_most`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[R_co]):
    """A snapshot of one job, that is one call of a task for one tenant; `refresh()` returns a newer one.

    `created` is False if the enqueue found an existing job with the same key and returned that. `because`
    says why a job is delayed, dead or cancelled. `created_by` is who asked for the job, None if unknown.
    `attempts` holds the most recent attempts, oldest first; the last one of a running job has not ended.
    `progress` is the latest report of the running attempt, None without one (S62).
    """

    id: UUID
    tenant: str
    queue: str
    task: str
    state: State
    because: str | None
    created: bool
    priority: int
    attempt: int
    failures: int
    max_attempts: int
    enqueued_at: datetime
    run_at: datetime
    expires_at: datetime | None
    settled_at: datetime | None
    correlation_id: str
    created_by: str | None
    idempotency_key: str
    dedup_key: str | None
    parent_id: UUID | None
    tags: frozenset[str]
    metadata: Mapping[str, Json]
    attempts: Sequence[Attempt]
    progress: Progress | None = field(repr=False)
    _payload: bytes = field(repr=False)
    _checksum: int = field(repr=False)
    _stored: bytes | None = field(repr=False)
    _is_emptied: bool = field(repr=False)
    _enums: Mapping[str, type[Enum]] = field(repr=False, compare=False)
    _client: JobClient = field(repr=False, compare=False)
    _unread: tuple[StoreAnswer, JobClient] | None = field(repr=False, compare=False)

    if not TYPE_CHECKING:  # with __getattr__, a type checker accepts any attribute name

        def __getattr__(self, name: str) -> Any:
            """Fill in all fields at the first access: of a thousand enqueued jobs few are looked at."""
            unread = object.__getattribute__(self, "_unread")
            if unread is not None:
                for field_, value in _fields(*unread).items():
                    object.__setattr__(self, field_, value)
                object.__setattr__(self, "_unread", None)
            return object.__getattribute__(self, name)

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended: succeeded, dead or cancelled."""
        return is_finished(self.state)

    @property
    def schedule(self) -> str | None:
        """The schedule that led to the job; None if none did."""
        origin = self._origin
        return None if origin is None else origin.schedule

    @property
    def slot(self) -> datetime | None:
        """The instant of its schedule that the job is for, in UTC; it may have been enqueued later."""
        origin = self._origin
        return None if origin is None else to_datetime(origin.slot)

    @property
    def _origin(self) -> ScheduledSlot | None:
        return scheduled_slot(self.tenant, self.created_by, self.correlation_id)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The stored arguments by name, decoded anew at each access.

        Datetimes, Decimals and the like come back as they were given. An Enum member does so where its task
        is declared; elsewhere it is text such as `Colour.RED`. A forgotten tenant's jobs have no arguments.
        ValueError if the stored bytes are damaged. Danger: values are not redacted, secrets included.
        """
        if not self._payload:
            return MappingProxyType({})
        verify(self._payload, self._checksum)
        enums = self._client.argument_enums(self.task)
        return MappingProxyType(decode_arguments(self._payload, enums=enums, is_showing=True))

    @property
    def logs(self) -> Mapping[int, Sequence[str]]:
        """The last lines logged with `ctx.log`, by attempt number; stored when the attempt ends (S62)."""
        lines = {one.number: tuple(one.log.splitlines()) for one in self.attempts if one.log}
        return MappingProxyType(lines)

    def refresh(self) -> Job[R_co]:
        """Return the job as it is now; `JobNotFound` if it is no longer stored."""
        return self._client.portal.run(self.arefresh())

    async def arefresh(self) -> Job[R_co]:
        """Return the job as it is now; `JobNotFound` if it is no longer stored."""
        return await self._client.arefresh(self)

    def cancel(self, reason: str = "") -> CancelReply:
        """Cancel the job if it waits, ask it to stop if it runs; the reply says which, or that it ended."""
        return self._client.portal.run(self.acancel(reason))

    async def acancel(self, reason: str = "") -> CancelReply:
        """Cancel the job if it waits, ask it to stop if it runs; the reply says which, or that it ended."""
        return await self._client.acancel(self, reason)

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait until the job has ended, and return what its handler returned.

        Raises `JobFailed` if the job is dead, `JobCancelled` if it was cancelled, `ResultGone` if the result
        has expired or could not be stored, and `TimeoutError` after `timeout` seconds.
        """
        return self._client.portal.run(self.aresult(timeout))

    async def aresult(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 (the public word)
        """Wait until the job has ended, and return what its handler returned; see `result`."""
        if not self.is_finished:
            ended = await self._client.afinished(self, None if timeout is None else to_micros(timeout))
            return await ended.aresult()
        if self.state is State.DEAD:
            raise JobFailed(self, self.because or "")
        if self.state is State.CANCELLED:
            raise JobCancelled(self, self.because or "")
        if self._stored == b"" or (self._stored is None and self._is_emptied):
            raise ResultGone(self, self._why_dropped())
        result: R_co = decode_result(self._stored, enums=self._enums)
        return result

    def _why_dropped(self) -> str:
        last = self.attempts[-1] if self.attempts else None
        return (last.message or "") if last is not None and last.outcome == "succeeded" else ""


class StoreAnswer(Protocol):
    """A store's answer for one job."""

    @property
    def job(self) -> JobRecord:
        """The stored record."""
        ...

    @property
    def is_created(self) -> bool:
        """Whether this enqueue created it."""
        ...


def job_of(stored: StoreAnswer, client: JobClient) -> Job[Any]:
    """Return the snapshot of a stored job."""
    # Bypasses `__init__`, which would fill in all fields: 0.2 µs instead of 8 for each job of a batch.
    kind: type[Job[Any]] = Job
    job = object.__new__(kind)
    object.__setattr__(job, "_unread", (stored, client))
    return job


def _fields(stored: StoreAnswer, client: JobClient) -> dict[str, Any]:
    """Return all fields of a snapshot; the priority counts in the application's direction."""
    record = stored.job
    return {
        "created": stored.is_created,
        "_client": client,
        "id": record.id,
        "tenant": record.tenant,
        "queue": record.queue,
        "task": record.task,
        "state": record.state,
        "because": record.because,
        "priority": at_edge(record.priority, lower_first=client.settings.is_lower_first),
        "attempt": record.attempt,
        "failures": record.failures,
        "max_attempts": record.max_attempts,
        "enqueued_at": to_datetime(record.enqueued_at),
        "run_at": to_datetime(record.run_at),
        "expires_at": _moment(record.expires_at),
        "settled_at": _moment(record.settled_at),
        "correlation_id": record.correlation_id,
        "created_by": record.created_by,
        "idempotency_key": record.idempotency_key,
        "dedup_key": record.dedup_key,
        "parent_id": record.parent_id,
        "tags": frozenset(record.tags),
        "metadata": MappingProxyType(msgspec.json.decode(record.metadata, type=dict[str, Any])),
        "attempts": _attempts(record),
        "progress": record.progress,
        "_payload": record.payload,
        "_checksum": record.checksum,
        "_stored": record.result,
        # A succeeded job was claimed at least once, so one without an attempt is the tombstone of a deleted
        # job. Jobs of a forgotten tenant have no payload.
        "_is_emptied": not record.attempt or not record.payload,
        "_enums": client.result_enums(record.task),
    }


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _attempts(record: JobRecord) -> tuple[Attempt, ...]:
    ended = tuple(_ended(attempt) for attempt in record.attempts)
    if record.worker is None or record.started_at is None:
        return ended
    started_at = to_datetime(record.started_at)
    live = Attempt(record.attempt, record.worker, started_at, None, "running", None, None, None, None)
    return (*ended, live)


def _ended(record: AttemptRecord) -> Attempt:
    failure = record.failure
    return Attempt(
        number=record.number,
        worker=record.worker,
        started_at=to_datetime(record.started_at),
        ended_at=to_datetime(record.ended_at),
        outcome=record.outcome,
        error_class=None if failure is None else failure.error_class,
        error_type=None if failure is None else failure.error_type,
        message=None if failure is None else failure.message,
        traceback=None if failure is None else failure.traceback,
        log=record.log,
    )
