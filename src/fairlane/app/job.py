"""A job as callers see it: a snapshot that does not change, and what can be asked of it.

Knows no store: it asks the application that it came from.
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

from fairlane.app.settings import Settings
from fairlane.app.sync import Portal
from fairlane.model.errors import JobCancelled, JobFailed, ResultGone
from fairlane.model.failure import ErrorClass
from fairlane.model.instants import Duration, Instant, Micros, to_datetime, to_micros
from fairlane.model.job import AttemptOutcome, AttemptRecord, JobRecord, Progress
from fairlane.model.lifecycle import CancelReply, State, is_finished
from fairlane.model.payload import decode_arguments, decode_result, verify
from fairlane.model.priority import at_edge

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What metadata may hold."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a job, ended or still running; the error fields say why, where it did not succeed.

    `log` has the last lines of what its handler logged with `ctx.log`.
    """

    number: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    outcome: AttemptOutcome
    error_class: ErrorClass | None
    error_type: str | None
    # Free text may quote what is secret (S6), and a job's repr ends up in logs.
    message: str | None = field(repr=False)
    traceback: str | None = field(repr=False)
    log: str | None = field(repr=False, default=None)


class Keeper(Protocol):
    """What a job asks of the application that it came from."""

    @property
    def portal(self) -> Portal:
        """Where plain callers come in."""
        ...

    @property
    def settings(self) -> Settings:
        """What holds for the application."""
        ...

    def argument_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Return the Enum classes that arguments of this task may hold."""
        ...

    def result_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Give the Enum classes that a result of this task may hold."""
        ...

    async def arefresh(self, job: Job[R]) -> Job[R]:
        """Give a newer snapshot; `JobNotFound` if the job cannot be seen from here."""
        ...

    async def acancel(self, job: Job[Any], reason: str) -> CancelReply:
        """Cancel the job, or ask it to stop."""
        ...

    async def afinished(self, job: Job[R], at_most: Micros | None) -> Job[R]:
        """Wait for the job's end, at most so long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[R_co]):
    """One call of a task for one tenant, as it was at one instant; `refresh()` gives a newer snapshot.

    `created` is False if an earlier job answered for this enqueue. `because` says why a job is delayed, dead
    or cancelled. `attempts` holds the last ones, oldest first; a running job's last is the live one.
    `progress` is what its handler said last, None unless an attempt runs and has said something (S62).
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
    _keeper: Keeper = field(repr=False, compare=False)
    _unread: tuple[Stored, Keeper] | None = field(repr=False, compare=False)

    if not TYPE_CHECKING:  # a checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Read the record when a field is first asked for, which of a thousand new jobs few are."""
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
        """Whether nothing will ever happen to the job again."""
        return is_finished(self.state)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as they are stored, by name; decoded when asked for, anew each time.

        Datetimes, Decimals and the others come back as they were given; an Enum member does where its task is
        known, and is its text (`Colour.RED`) elsewhere. Values are in clear. Of a tenant that was forgotten
        there are none. ValueError if the stored bytes cannot be read.
        """
        if not self._payload:
            return MappingProxyType({})
        verify(self._payload, self._checksum)
        enums = self._keeper.argument_enums(self.task)
        return MappingProxyType(decode_arguments(self._payload, enums=enums, is_showing=True))

    @property
    def logs(self) -> Mapping[int, Sequence[str]]:
        """The lines that `ctx.log` kept, by number of the attempt; stored when the attempt ends (S62)."""
        kept = {one.number: tuple(one.log.splitlines()) for one in self.attempts if one.log}
        return MappingProxyType(kept)

    def refresh(self) -> Job[R_co]:
        """Give the job as it is now; `JobNotFound` if it is no longer kept."""
        return self._keeper.portal.run(self.arefresh())

    async def arefresh(self) -> Job[R_co]:
        """Give the job as it is now; `JobNotFound` if it is no longer kept."""
        return await self._keeper.arefresh(self)

    def cancel(self, reason: str = "") -> CancelReply:
        """Cancel the job if it waits, ask it to stop if it runs; the answer says which, or that it ended."""
        return self._keeper.portal.run(self.acancel(reason))

    async def acancel(self, reason: str = "") -> CancelReply:
        """Cancel the job if it waits, ask it to stop if it runs; the answer says which, or that it ended."""
        return await self._keeper.acancel(self, reason)

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the job's end and give what its handler returned.

        `JobFailed` if it is dead, `JobCancelled` if it was cancelled, `ResultGone` if its result is no longer
        kept or could not be, `TimeoutError` if it has not ended in time.
        """
        return self._keeper.portal.run(self.aresult(timeout))

    async def aresult(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 (the public word)
        """Wait for the job's end and give what its handler returned; see `result`."""
        if not self.is_finished:
            ended = await self._keeper.afinished(self, None if timeout is None else to_micros(timeout))
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


class Stored(Protocol):
    """What a store answers with for one job."""

    @property
    def job(self) -> JobRecord:
        """The job as the store keeps it."""
        ...

    @property
    def is_created(self) -> bool:
        """Whether this enqueue made it."""
        ...


def job_of(stored: Stored, keeper: Keeper) -> Job[Any]:
    """Show a stored job."""
    # Past `__init__`, which would fill in all fields: 0.2 µs instead of 8, for every job of a batch.
    kind: type[Job[Any]] = Job
    job = object.__new__(kind)
    object.__setattr__(job, "_unread", (stored, keeper))
    return job


def _fields(stored: Stored, keeper: Keeper) -> dict[str, Any]:
    """Read all fields of a record, its priority as the application counts."""
    record = stored.job
    return {
        "created": stored.is_created,
        "_keeper": keeper,
        "id": record.id,
        "tenant": record.tenant,
        "queue": record.queue,
        "task": record.task,
        "state": record.state,
        "because": record.because,
        "priority": at_edge(record.priority, lower_first=keeper.settings.is_lower_first),
        "attempt": record.attempt,
        "failures": record.failures,
        "max_attempts": record.max_attempts,
        "enqueued_at": to_datetime(record.enqueued_at),
        "run_at": to_datetime(record.run_at),
        "expires_at": _moment(record.expires_at),
        "settled_at": _moment(record.settled_at),
        "correlation_id": record.correlation_id,
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
        # A succeeded job was claimed at least once, so one without an attempt is the husk of a job that is
        # no longer kept; a tenant that was forgotten leaves jobs without payload.
        "_is_emptied": not record.attempt or not record.payload,
        "_enums": keeper.result_enums(record.task),
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
