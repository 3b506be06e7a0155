"""Encode and decode jobs: a head with all that changes (head.py), a body with all that does not.

A job field that scripts need not know is one line at the end of `JobBody`, with a default: bodies of the
layout before are then still read, and encoding, decoding and the positions for Lua follow from that list.
Scripts read bodies only to compare filters (jobs/tally.lua).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, get_type_hints
from uuid import UUID

import msgspec

from fairlane.model.failure import Failure
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import (
    AttemptOutcome,
    AttemptRecord,
    Claim,
    JobRecord,
    NewJob,
    OnStuck,
    Progress,
)
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.lifecycle.states import Event, State, target
from fairlane.model.scheduling.priority import sort_key
from fairlane.store.redis.records.head import JobHead, is_new, read_head, read_new_head, write_head
from fairlane.store.redis.records.layout import NEW_JOB_LAYOUT, ON_DUPLICATE

NUMBERS: Final = {state: number for number, state in enumerate(State, 1)}
STATES: Final = {number: state for state, number in NUMBERS.items()}

pack = msgspec.msgpack.Encoder().encode

ANY: Final[JobRecord] = new_record(
    NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0), 0
)
"""A job of which nothing matters."""

_CLAIMED: Final = msgspec.structs.replace(ANY, state=target(Event.CLAIM))


class JobBody(msgspec.Struct, frozen=True, array_like=True):
    """What rarely changes, by an edit, a scrub or metadata: fields of `JobRecord` under the same names."""

    payload: bytes
    checksum: int
    version: int
    max_attempts: int
    at_most_once: bool
    tags: tuple[str, ...] = ()
    metadata: bytes = b""
    created_by: str | None = None
    parent_id: UUID | None = None  # 16 bytes
    stuck_after: Micros | None = None
    on_stuck: OnStuck = "dead"


_BODY_FIELDS: Final = JobBody.__struct_fields__
_BINARY: Final = (bytes, UUID | None)

BODY_CONSTANTS: Final[dict[str, int | str]] = {
    **{f"BODY_{name.upper()}": number for number, name in enumerate(_BODY_FIELDS, 1)},
    "BODY_KINDS": "".join("b" if hint in _BINARY else "v" for hint in get_type_hints(JobBody).values()),
}
"""What scripts need to read a body: positions, and which fields are bytes ("b") or other values ("v")."""


class _Attempt(msgspec.Struct, frozen=True, array_like=True):
    number: int
    worker: str
    started_at: int
    ended_at: int
    outcome: AttemptOutcome
    failure: Failure | None
    log: str | None


_SHORT_ARRAY: Final = 16
"""Arrays below this length have their length in the first byte."""

_read_id = msgspec.msgpack.Decoder(UUID).decode
_ID_AHEAD: Final = b"\xc4\x10"
"""What msgpack writes before 16 bytes. Decoded this way, a UUID costs a fifth of `UUID(bytes=…)`; its text by
`to_builtins` costs a third of `str`."""

_to_text: Callable[[UUID], str] = msgspec.to_builtins
_replace = msgspec.structs.replace
_read_body = msgspec.msgpack.Decoder(JobBody).decode
_as_dict = msgspec.structs.asdict
_body_of: Callable[[NewJob | JobRecord], tuple[Any, ...]] = attrgetter(*_BODY_FIELDS)
_pack_body = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_read_attempts = msgspec.msgpack.Decoder(tuple[_Attempt, ...]).decode
_read_progress = msgspec.json.Decoder(Progress).decode


ATTEMPT_CONSTANTS: Final = {"ATTEMPT_FAILURE": _Attempt.__struct_fields__.index("failure") + 1}


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it was read: its record, its head as bytes (to compare when it is written), its head.

    `review` is that of a dead letter, as bytes; see letter.py.
    """

    job: JobRecord
    raw: bytes
    head: JobHead
    review: bytes = b""


def read(
    id: bytes,
    raw: bytes,
    body: bytes,
    attempts: bytes | None,
    result: bytes | None,
    review: bytes | None = None,
) -> StoredJob:
    """Decode a job."""
    head = read_head(raw)
    uuid = _read_id(_ID_AHEAD + id)
    own = _to_text(uuid)
    job = JobRecord(
        id=uuid,
        tenant=head.tenant,
        queue=head.queue,
        task=head.task,
        state=STATES[head.state],
        because=head.because or None,
        priority=head.priority,
        enqueued_at=head.enqueued_at,
        run_at=head.run_at,
        sort_key=sort_key(head.run_at, head.priority),
        expires_at=head.expires_at or None,
        settled_at=head.settled_at or None,
        idempotency_key=head.idempotency_key or own,
        dedup_key=head.dedup_key or None,
        dedup_until="started" if head.is_dedup_until_started else "settled",
        correlation_id=head.correlation_id or own,
        timeout=None if head.timeout < 0 else head.timeout,
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
        **_as_dict(_read_body(body)),
    )
    return StoredJob(job, raw, head, review or b"")


class FirstClaimReader:
    """Decodes jobs that are claimed for the first time: the script returns the heads they had before."""

    def __init__(self, worker: str, now: Instant, lease: Micros) -> None:
        """Prepare what is the same for all claims of one script."""
        self._lease_until = now + lease
        self._like = msgspec.structs.replace(
            _CLAIMED, attempt=1, fence=now, worker=worker, started_at=now, lease_until=self._lease_until
        )

    def read(self, id: bytes, raw: bytes, body: bytes) -> Claim:
        """Decode a claim. Copying a prepared record costs a third of making one."""
        numbers, texts = read_new_head(raw)
        _, _, priority, is_dedup_until_started, enqueued_at, run_at, expires_at, timeout = numbers
        tenant, queue, task, because, dedup_key, idempotency_key, correlation_id = texts
        uuid = _read_id(_ID_AHEAD + id)
        own = _to_text(uuid)
        job = _replace(
            self._like,
            id=uuid,
            tenant=tenant,
            queue=queue,
            task=task,
            because=because or None,
            priority=priority,
            enqueued_at=enqueued_at,
            run_at=run_at,
            sort_key=sort_key(run_at, priority),
            expires_at=expires_at or None,
            idempotency_key=idempotency_key or own,
            dedup_key=dedup_key or None,
            dedup_until="started" if is_dedup_until_started else "settled",
            correlation_id=correlation_id or own,
            timeout=None if timeout < 0 else timeout,
            **_as_dict(_read_body(body)),
        )
        return Claim(job, job.fence, self._lease_until)


def read_claims(worker: str, now: Instant, lease: Micros, parts: Sequence[bytes]) -> list[Claim]:
    """Decode claims from id, head, body and attempts of each."""
    first = FirstClaimReader(worker, now, lease)
    return [
        first.read(id, raw, body) if is_new(raw) else _read_claim(id, raw, body, attempts)
        for id, raw, body, attempts in zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True)
    ]


def _read_claim(id: bytes, raw: bytes, body: bytes, attempts: bytes) -> Claim:
    stored = read(id, raw, body, attempts, None)
    return Claim(stored.job, stored.job.fence, stored.head.lease_until)


def _attempts(head: JobHead, attempts: bytes) -> tuple[AttemptRecord, ...]:
    # Scripts append packed attempts: the number of the first, and the head, say how many there are.
    ended = head.attempt - (head.state == NUMBERS[State.RUNNING])
    found = _read_attempts(_array_header(ended - _first_number(attempts) + 1) + attempts)
    return tuple(
        AttemptRecord(one.number, one.worker, one.started_at, one.ended_at, one.outcome, one.failure, one.log)
        for one in found
    )


def _first_number(attempts: bytes) -> int:
    """Return the first field of the first attempt: a positive whole number as msgpack writes it.

    >>> _first_number(pack((7, "w1"))), _first_number(pack((300, "w1")))
    (7, 300)
    """
    kind = attempts[1]
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4}.get(kind, 0)
    return int.from_bytes(attempts[2 : 2 + width]) if width else kind


def _array_header(length: int) -> bytes:
    """Return what msgpack writes before an array of at most 65,535 items."""
    return bytes((0x90 + length,)) if length < _SHORT_ARRAY else b"\xdc" + length.to_bytes(2)


def read_all(
    ids: Iterable[bytes],
    heads: Sequence[bytes | None],
    bodies: Sequence[bytes | None],
    attempts: Sequence[bytes | None],
    results: Sequence[bytes | None],
    reviews: Sequence[bytes | None],
) -> list[StoredJob | None]:
    """Decode many jobs; None where there is no such job."""
    parts = zip(ids, heads, bodies, attempts, results, reviews, strict=True)
    return [
        None if head is None or body is None else read(id, head, body, *rest)
        for id, head, body, *rest in parts
    ]


def to_body(job: NewJob | JobRecord) -> bytes:
    """Encode the body of a job."""
    return _pack_body(_body_of(job))  # as the array that `JobBody` is decoded from


def to_head(stored: StoredJob, job: JobRecord) -> bytes:
    """Encode the head of what a job has become; gate and charge of its claim stay until it is released."""
    return _to_head(job, stored.head.gate, stored.head.charged)


def to_finished_head(job: JobRecord) -> bytes:
    """Encode the head of a job that holds nothing any more."""
    return _to_head(job, "", -1)


def _to_head(job: JobRecord, gate: str, charged: int) -> bytes:
    own = str(job.id)
    return write_head(
        JobHead(
            is_new=False,
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
            is_dedup_until_started=job.dedup_until == "started",
            idempotency_key="" if job.idempotency_key == own else job.idempotency_key,
            correlation_id="" if job.correlation_id == own else job.correlation_id,
            gate=gate,
            charged=charged,
            progress=to_progress(job.progress),
            has_result=job.result is not None,
        )
    )


def to_attempts(job: JobRecord) -> bytes:
    """Encode ended attempts as scripts do: one after the other."""
    return b"".join(
        pack(
            _Attempt(one.number, one.worker, one.started_at, one.ended_at, one.outcome, one.failure, one.log)
        )
        for one in job.attempts
    )


def to_progress(progress: Progress | None) -> str:
    """Encode progress as the text that a head has."""
    return "" if progress is None else msgspec.json.encode(progress).decode()


def encode_new_jobs(jobs: Iterable[NewJob]) -> bytes:
    """Pack jobs as scripts read them: one after the other."""
    return b"".join(map(_encode_new, jobs))


def _encode_new(new: NewJob) -> bytes:
    """Pack the fields of NEW_JOB_LAYOUT in their order."""
    given = new.correlation_id
    correlation = "" if given is None or given == str(new.id) else given
    numbers = NEW_JOB_LAYOUT.pack_numbers(
        new.id.bytes,
        new.priority,
        -1 if new.run_at is None else max(0, new.run_at),
        new.delay,
        0 if new.expires_at is None else new.expires_at,
        -1 if new.expires_in is None else new.expires_in,
        -1 if new.timeout is None else new.timeout,
        ON_DUPLICATE[new.on_duplicate],
        new.dedup_until == "started",
    )
    names = f"{new.tenant}\0{new.queue}\0{new.task}\0{new.idempotency_key or ''}\0"
    texts = f"{names}{new.fingerprint.hex()}\0{new.dedup_key or ''}\0{correlation}\0"
    if texts.count("\0") != NEW_JOB_LAYOUT.texts:
        message = "a name or label holds a NUL, which ends a text here (S3)"
        raise ValueError(message)
    body = to_body(new)
    return b"".join((numbers, texts.encode(), len(body).to_bytes(4), body))
