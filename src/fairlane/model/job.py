"""A job as it is sent, kept and handed out. Plain records: they decide nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import Instant, Micros
from fairlane.model.lifecycle import Event, State

AttemptOutcome: TypeAlias = Literal[
    "running", "succeeded", "failed", "snoozed", "returned", "lost", "cancelled"
]
DedupUntil: TypeAlias = Literal["started", "settled"]
OnDuplicate: TypeAlias = Literal["return", "raise", "replace_dead"]
"""What a repeated idempotency key does (S13)."""

ATTEMPTS_KEPT = 10
"""How many attempts of a job its history holds (S24)."""


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job on its way into a store. Well formed: every name, size and number was checked before.

    `run_at` and `delay` exclude each other, as do `expires_at` and `expires_in`; relative ones are counted
    from the store's own now. Without `idempotency_key` the id is the key and costs nothing; without
    `correlation_id` the id stands for it.
    """

    id: UUID
    tenant: str
    queue: str
    task: str
    payload: bytes
    checksum: int
    version: int = 1
    priority: int = 0
    run_at: Instant | None = None
    delay: Micros = 0
    expires_at: Instant | None = None
    expires_in: Micros | None = None
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    on_duplicate: OnDuplicate = "return"
    dedup_key: str | None = None
    dedup_until: DedupUntil = "settled"
    correlation_id: str | None = None
    parent_id: UUID | None = None
    max_attempts: int = 5
    timeout: Micros | None = None
    at_most_once: bool = False
    tags: tuple[str, ...] = ()
    metadata: bytes = b"{}"
    created_by: str | None = None


class AttemptRecord(msgspec.Struct, frozen=True):
    """One ended execution of a job. `failure` says why, where it failed, was lost or was returned.

    Where it succeeded, `failure` says why its result was dropped (S34).
    """

    number: int
    worker: str
    started_at: Instant
    ended_at: Instant
    outcome: AttemptOutcome
    failure: Failure | None = None
    log: str | None = None


class Progress(msgspec.Struct, frozen=True):
    """The newest word of a running handler: a fraction from 0 to 1 and a note (S62)."""

    fraction: float
    note: str = ""


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job as a store keeps it, in any of its homes.

    `run_at` is when the job was or is due. While it runs, `worker`, `fence`, `started_at` and `lease_until`
    speak of the live claim; afterwards they are None, except the fence, which only grows. `attempts` holds
    the last ended ones, oldest first. `result` is None if there was none, and empty if it is no longer kept.
    A store may give the fields by their places: naming forty takes longer than all else in reading one.
    """

    id: UUID
    tenant: str
    queue: str
    task: str
    state: State
    because: str | None
    payload: bytes
    checksum: int
    version: int
    priority: int
    enqueued_at: Instant
    run_at: Instant
    sort_key: int
    expires_at: Instant | None
    settled_at: Instant | None
    idempotency_key: str
    dedup_key: str | None
    dedup_until: DedupUntil
    correlation_id: str
    parent_id: UUID | None
    max_attempts: int
    timeout: Micros | None
    at_most_once: bool
    tags: tuple[str, ...]
    metadata: bytes
    created_by: str | None
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    crashes_alone: int = 0
    snoozes: int = 0
    is_suspect: bool = False
    fence: int = 0
    worker: str | None = None
    started_at: Instant | None = None
    lease_until: Instant | None = None
    is_cancel_asked: bool = False
    progress: Progress | None = None
    result: bytes | None = None
    attempts: tuple[AttemptRecord, ...] = ()


class Claim(msgspec.Struct, frozen=True):
    """A worker's exclusive, leased, fenced right to run one attempt.

    `is_alone` says that the attempt must run alone in a child of the worker (S39).
    """

    job: JobRecord
    fence: int
    lease_until: Instant
    is_alone: bool = False


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended, decided by `judge`; a store only applies it (S1: a delay, never an instant).

    The counters are the job's new ones. `failure` and `log` go into the attempt's record.
    """

    id: UUID
    fence: int
    event: Event
    outcome: AttemptOutcome
    because: str | None = None
    delay: Micros = 0
    failures: int = 0
    crashes: int = 0
    crashes_alone: int = 0
    snoozes: int = 0
    is_suspect: bool = False
    result: bytes | None = None
    failure: Failure | None = None
    log: str | None = None


def begin(new: NewJob, now: Instant) -> tuple[State, Instant]:
    """Say how a new job begins: delayed until its time, or ready now; a past time means now (S2).

    >>> from uuid import UUID
    >>> job = NewJob(id=UUID(int=1), tenant="a", queue="q", task="t", payload=b"", checksum=0, run_at=5)
    >>> begin(job, 3), begin(job, 9)
    ((<State.DELAYED: 'delayed'>, 5), (<State.READY: 'ready'>, 9))
    """
    due_at = now + new.delay if new.run_at is None else new.run_at
    return (State.DELAYED, due_at) if due_at > now else (State.READY, now)
