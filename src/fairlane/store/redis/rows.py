"""Jobs as they are kept: a head with all that changes, a body with all that does not. Packs and unpacks.

Scripts read and write heads, field by field and by number; nobody but this module reads a body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import (
    ATTEMPTS_KEPT,
    AttemptOutcome,
    AttemptRecord,
    Claim,
    JobRecord,
    NewJob,
    Progress,
)
from fairlane.model.lifecycle import Event, State, target
from fairlane.model.moves import born
from fairlane.model.priority import sort_key
from fairlane.store.redis.heads import Head, is_short, read_birth, read_head, write_head

NUMBERS: Final = {state: number for number, state in enumerate(State, 1)}
STATES: Final = {number: state for state, number in NUMBERS.items()}

pack = msgspec.msgpack.Encoder().encode

ANY: Final[JobRecord] = born(NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0), 0)
"""Some job, of which nothing matters."""

_CLAIMED: Final = msgspec.structs.replace(ANY, state=target(Event.CLAIM))


class Body(msgspec.Struct, frozen=True, array_like=True):
    """What only an edit or an erasure changes."""

    payload: bytes
    checksum: int
    version: int
    max_attempts: int
    at_most_once: bool
    tags: tuple[str, ...]
    metadata: bytes
    created_by: str | None
    parent_id: bytes | None


class _Attempt(msgspec.Struct, frozen=True, array_like=True):
    number: int
    worker: str
    started_at: int
    ended_at: int
    outcome: AttemptOutcome
    failure: Failure | None
    log: str | None


_read_id = msgspec.msgpack.Decoder(UUID).decode
_ID_AHEAD: Final = b"\xc4\x10"
"""What msgpack writes before 16 bytes. Read so, a UUID costs a fifth of `UUID(bytes=…)`; its text, by
`to_builtins`, a third of `str`."""

_to_text: Callable[[UUID], str] = msgspec.to_builtins
_replace = msgspec.structs.replace
_read_body = msgspec.msgpack.Decoder(Body).decode
_read_attempts = msgspec.msgpack.Decoder(tuple[_Attempt, ...]).decode
_read_progress = msgspec.json.Decoder(Progress).decode


class Kept(msgspec.Struct, frozen=True):
    """A job as it was read: its record, its head as bytes (to be compared), and what its claim holds."""

    job: JobRecord
    raw: bytes
    head: Head


def read(id: bytes, raw: bytes, body: bytes, attempts: bytes | None, result: bytes | None) -> Kept:
    """Make a record of its parts."""
    head = read_head(raw)
    fixed = _read_body(body)
    uuid = _read_id(_ID_AHEAD + id)
    own = _to_text(uuid)
    job = JobRecord(
        id=uuid,
        tenant=head.tenant,
        queue=head.queue,
        task=head.task,
        state=STATES[head.state],
        because=head.because or None,
        payload=fixed.payload,
        checksum=fixed.checksum,
        version=fixed.version,
        priority=head.priority,
        enqueued_at=head.enqueued_at,
        run_at=head.run_at,
        sort_key=sort_key(head.run_at, head.priority),
        expires_at=head.expires_at or None,
        settled_at=head.settled_at or None,
        idempotency_key=head.idempotency_key or own,
        dedup_key=head.dedup_key or None,
        dedup_until="started" if head.is_dedup_short else "settled",
        correlation_id=head.correlation_id or own,
        parent_id=None if fixed.parent_id is None else UUID(bytes=fixed.parent_id),
        max_attempts=fixed.max_attempts,
        timeout=None if head.timeout < 0 else head.timeout,
        at_most_once=fixed.at_most_once,
        tags=fixed.tags,
        metadata=fixed.metadata,
        created_by=fixed.created_by,
        attempt=head.attempt,
        failures=head.failures,
        crashes=head.crashes,
        crashes_alone=head.crashes_alone,
        snoozes=head.snoozes,
        is_suspect=head.is_suspect,
        fence=head.fence,
        worker=head.worker or None,
        started_at=head.started_at or None,
        lease_until=head.lease_until or None,
        is_cancel_asked=head.is_cancel_asked,
        progress=_read_progress(head.progress) if head.progress else None,
        result=(result or b"") if head.has_result else None,
        attempts=_attempts(head, attempts) if attempts else (),
    )
    return Kept(job, raw, head)


class FirstClaims:
    """Jobs that one script handed out for the first time: it gives the heads they had, and this the rest."""

    def __init__(self, worker: str, now: Instant, lease: Micros) -> None:
        """Lay down what is the same for all of them."""
        self._lease_until = now + lease
        self._like = msgspec.structs.replace(
            _CLAIMED, attempt=1, fence=now, worker=worker, started_at=now, lease_until=self._lease_until
        )

    def read(self, id: bytes, raw: bytes, body: bytes) -> Claim:
        """Make a claim of its parts. A copy of another record costs a third of a new one."""
        numbers, texts = read_birth(raw)
        _, _, priority, is_dedup_short, enqueued_at, run_at, expires_at, timeout = numbers
        tenant, queue, task, because, dedup_key, idempotency_key, correlation_id = texts
        fixed = _read_body(body)
        uuid = _read_id(_ID_AHEAD + id)
        own = _to_text(uuid)
        job = _replace(
            self._like,
            id=uuid,
            tenant=tenant,
            queue=queue,
            task=task,
            because=because or None,
            payload=fixed.payload,
            checksum=fixed.checksum,
            version=fixed.version,
            priority=priority,
            enqueued_at=enqueued_at,
            run_at=run_at,
            sort_key=sort_key(run_at, priority),
            expires_at=expires_at or None,
            idempotency_key=idempotency_key or own,
            dedup_key=dedup_key or None,
            dedup_until="started" if is_dedup_short else "settled",
            correlation_id=correlation_id or own,
            parent_id=None if fixed.parent_id is None else UUID(bytes=fixed.parent_id),
            max_attempts=fixed.max_attempts,
            timeout=None if timeout < 0 else timeout,
            at_most_once=fixed.at_most_once,
            tags=fixed.tags,
            metadata=fixed.metadata,
            created_by=fixed.created_by,
        )
        return Claim(job, job.fence, self._lease_until)


def read_claims(worker: str, now: Instant, lease: Micros, parts: Sequence[bytes]) -> list[Claim]:
    """Make claims of what a script gives of each: id, head, body, attempts."""
    first = FirstClaims(worker, now, lease)
    return [
        first.read(id, raw, body) if is_short(raw) else _read_claim(id, raw, body, attempts)
        for id, raw, body, attempts in zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True)
    ]


def _read_claim(id: bytes, raw: bytes, body: bytes, attempts: bytes) -> Claim:
    kept = read(id, raw, body, attempts, None)
    return Claim(kept.job, kept.job.fence, kept.head.lease_until, kept.head.is_alone)


def _attempts(head: Head, attempts: bytes) -> tuple[AttemptRecord, ...]:
    # Scripts add one packed attempt after the other; how many there are, the job itself says.
    ended = head.attempt - (head.state == NUMBERS[State.RUNNING])
    found = _read_attempts(bytes((0x90 + min(ended, ATTEMPTS_KEPT),)) + attempts)
    return tuple(
        AttemptRecord(one.number, one.worker, one.started_at, one.ended_at, one.outcome, one.failure, one.log)
        for one in found
    )


def read_all(
    ids: Iterable[bytes],
    heads: Sequence[bytes | None],
    bodies: Sequence[bytes | None],
    attempts: Sequence[bytes | None],
    results: Sequence[bytes | None],
) -> list[Kept | None]:
    """Make records of what a script read of many; None where there is no such job."""
    return [
        None if head is None or body is None else read(id, head, body, tried, result)
        for id, head, body, tried, result in zip(ids, heads, bodies, attempts, results, strict=True)
    ]


def to_body(job: NewJob | JobRecord) -> bytes:
    """Pack the body of a job that comes in, or was edited or erased."""
    return pack(
        Body(
            job.payload,
            job.checksum,
            job.version,
            job.max_attempts,
            job.at_most_once,
            job.tags,
            job.metadata,
            job.created_by,
            None if job.parent_id is None else job.parent_id.bytes,
        )
    )


def to_head(kept: Kept, job: JobRecord) -> bytes:
    """Pack the head of what a job has become; what its claim holds stays, until a script takes it back."""
    own = str(job.id)
    return write_head(
        Head(
            is_short=False,
            state=NUMBERS[job.state],
            tenant=job.tenant,
            queue=job.queue,
            task=job.task,
            priority=job.priority,
            enqueued_at=job.enqueued_at,
            run_at=job.run_at,
            expires_at=job.expires_at or 0,
            settled_at=job.settled_at or 0,
            attempt=job.attempt,
            fence=job.fence,
            worker=job.worker or "",
            started_at=job.started_at or 0,
            lease_until=job.lease_until or 0,
            failures=job.failures,
            crashes=job.crashes,
            crashes_alone=job.crashes_alone,
            snoozes=job.snoozes,
            is_suspect=job.is_suspect,
            is_cancel_asked=job.is_cancel_asked,
            because=job.because or "",
            timeout=-1 if job.timeout is None else job.timeout,
            dedup_key=job.dedup_key or "",
            is_dedup_short=job.dedup_until == "started",
            idempotency_key="" if job.idempotency_key == own else job.idempotency_key,
            correlation_id="" if job.correlation_id == own else job.correlation_id,
            gate=kept.head.gate,
            is_alone=kept.head.is_alone,
            charged=kept.head.charged,
            progress=to_progress(job.progress),
            has_result=job.result is not None,
        )
    )


def to_attempts(job: JobRecord) -> bytes:
    """Pack ended attempts as scripts do: one after the other."""
    return b"".join(
        pack(
            _Attempt(one.number, one.worker, one.started_at, one.ended_at, one.outcome, one.failure, one.log)
        )
        for one in job.attempts
    )


def to_progress(progress: Progress | None) -> str:
    """Write progress as the text that a head holds."""
    return "" if progress is None else msgspec.json.encode(progress).decode()
