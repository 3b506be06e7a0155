"""The records of a job: as sent, as stored, as claimed, as settled. They decide nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import Instant, Micros
from fairlane.model.lifecycle.states import Event, State

AttemptOutcome: TypeAlias = Literal[
    "running", "succeeded", "failed", "snoozed", "returned", "lost", "cancelled"
]
DedupUntil: TypeAlias = Literal["started", "settled"]
OnDuplicate: TypeAlias = Literal["return", "raise", "replace_dead"]
"""What a repeated idempotency key does (S13)."""

OnStuck: TypeAlias = Literal["dead", "requeue"]
"""What becomes of a job whose claim is stuck (S31)."""

ATTEMPTS_KEPT = 10
"""How many ended attempts a job's record keeps (S24), unless the configuration says otherwise."""

MAX_ATTEMPTS_KEPT = 100


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job on its way into a store. Every name, size and number has been checked.

    `run_at` and `delay` exclude each other, as do `expires_at` and `expires_in`; relative times count from
    the store's own now. Without `idempotency_key` the id is the key and costs nothing; without
    `correlation_id` the id takes its place. `created_by` names who asked for the job (S22): a user, an API
    token, a service; None if nobody said. Without `stuck_after` a claim is stuck at twice its timeout (S31).
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
    stuck_after: Micros | None = None
    on_stuck: OnStuck = "dead"


class AttemptRecord(msgspec.Struct, frozen=True):
    """One ended attempt. `failure` says why it failed, was lost or was returned.

    For a success, `failure` says why its result was dropped (S34).
    """

    number: int
    worker: str
    started_at: Instant
    ended_at: Instant
    outcome: AttemptOutcome
    failure: Failure | None = None
    log: str | None = None


class Progress(msgspec.Struct, frozen=True):
    """The progress that a running handler reported last: a fraction from 0 to 1 and a note (S62)."""

    fraction: float
    note: str = ""


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job as stored, in any of its homes.

    `run_at` is when the job was or is due. While it runs, `worker`, `fence`, `started_at` and `lease_until`
    describe the live claim; afterwards they are None, except the fence, which only grows. `attempts` holds
    the last ended ones, oldest first. `result` is None if there was none, and empty if it is no longer
    stored. Stores may pass the fields by position: naming forty fields takes longer than the rest of reading.
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
    stuck_after: Micros | None = None
    on_stuck: OnStuck = "dead"


class Claim(msgspec.Struct, frozen=True):
    """A worker's exclusive, leased, fenced right to run one attempt.

    If `job.is_suspect`, the attempt runs alone in a child process of the worker (S39). If it
    `is_over_budget`, its handler is not entered (S59).
    """

    job: JobRecord
    fence: int
    lease_until: Instant
    is_over_budget: bool = False


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended. `decide_settlement` makes it, a store applies it (S1: a delay, never an instant).

    The counters are the job's new ones, and so is `metadata`; None if the handler has not changed it.
    `failure` and `log` go into the attempt's record. An attempt that `is_unstarted` is handed back as if it
    had not been claimed (S68): no record, its number and the tenant's charge given back. `spent` is the sum
    of what its handler has reported (S113).
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
    is_unstarted: bool = False
    result: bytes | None = None
    failure: Failure | None = None
    log: str | None = None
    metadata: bytes | None = None
    spent: int = 0
