"""Decide whether a new job is stored (S13-S18): idempotency, de-duplication, waiting limits.

A store gathers the facts, `admit` decides. The order is that of S15: the id of a repeated enqueue, tenancy,
closed queues, idempotency, de-duplication and last the limits, so that a repeat never counts against a
limit. The form of a job is checked before a store is asked.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.job import JobRecord, NewJob
from fairlane.model.policy.limits import NO_LIMITS, Limits, is_below
from fairlane.model.scope import SYSTEM


class RefusalKind(StrEnum):
    """Why a well-formed job was not stored."""

    UNKNOWN_TENANT = "unknown_tenant"
    CLOSED = "closed"
    ID_TAKEN = "id_taken"
    DUPLICATE = "duplicate"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    WAITING_LIMIT = "waiting_limit"
    QUEUE_FULL = "queue_full"


class KeyHolder(msgspec.Struct, frozen=True):
    """The job that has an idempotency key, with the fingerprint of its task and arguments."""

    id: UUID
    fingerprint: bytes
    is_dead: bool = False


class AdmissionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a store knows about one new job at the instant of its enqueue.

    `closed` names what takes no jobs, and why. `same_id` is the tenant's own job with the same id: in any
    home if the enqueue is marked as repeated, else at least in the hot one. `is_id_foreign`: another tenant's
    job has the id. Waiting counts include earlier items of the same batch.
    """

    is_tenant_known: bool = True
    closed: str | None = None
    same_id: UUID | None = None
    is_id_foreign: bool = False
    same_key: KeyHolder | None = None
    same_dedup: UUID | None = None
    waiting: int = 0
    limits: Limits = NO_LIMITS
    queue_waiting: int = 0
    max_waiting: int | None = None


class Refusal(msgspec.Struct, frozen=True):
    """A refused item of a batch, why, and the facts for its error."""

    index: int
    kind: RefusalKind
    tenant: str
    queue: str
    detail: str = ""
    existing: UUID | None = None
    waiting: int = 0
    limit: int = 0


class Admitted(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The job is stored. `over` is a limit that it exceeds and that only warns (S17).

    `replaces` is the dead job whose idempotency key it takes over (S13): see `linked_to_dead`.
    """

    over: int | None = None
    replaces: UUID | None = None


class Repeat(msgspec.Struct, frozen=True):
    """An earlier job answers for this enqueue; nothing is stored.

    If it has the new job's own id, the same enqueue was sent before.
    """

    existing: UUID


Admission: TypeAlias = Admitted | Repeat | Refusal


def admit(index: int, job: NewJob, standing: AdmissionFacts, *, repeated: bool) -> Admission:
    """Apply the checks in the order of S15; the first that answers decides.

    >>> from uuid import UUID
    >>> job = NewJob(id=UUID(int=1), tenant="acme", queue="bulk", task="t", payload=b"", checksum=0)
    >>> admit(0, job, AdmissionFacts(waiting=500, limits=Limits(waiting=500)), repeated=False)
    Admitted(over=500)
    >>> admit(0, job, AdmissionFacts(queue_waiting=9, max_waiting=9), repeated=False).kind.value
    'queue_full'
    """
    if repeated and standing.same_id is not None and not standing.is_id_foreign:
        # The first request arrived: that job answers, whatever was closed or filled up since.
        return Repeat(standing.same_id)
    if not standing.is_tenant_known:
        return _refuse(index, RefusalKind.UNKNOWN_TENANT, job)
    if standing.closed is not None:
        return _refuse(index, RefusalKind.CLOSED, job, detail=standing.closed)
    if standing.is_id_foreign:
        return _refuse(index, RefusalKind.ID_TAKEN, job)
    if standing.same_id is not None:
        return _refuse(index, RefusalKind.ID_TAKEN, job, existing=standing.same_id)
    holder = standing.same_key
    answer = None if holder is None else _by_key(index, job, holder, repeated=repeated)
    if answer is not None:
        return answer
    if standing.same_dedup is not None:
        return Repeat(standing.same_dedup)
    admission = _within_limits(index, job, standing)
    if holder is None or isinstance(admission, Refusal):
        return admission
    return msgspec.structs.replace(admission, replaces=holder.id)


def linked_to_dead(job: NewJob, dead: JobRecord | None) -> NewJob:
    """Return the job with the correlation id of the dead one it replaces, if that is still stored (S13)."""
    return job if dead is None else msgspec.structs.replace(job, correlation_id=dead.correlation_id)


def _by_key(index: int, job: NewJob, holder: KeyHolder, *, repeated: bool) -> Refusal | Repeat | None:
    """Compare with the job that has the key; None if it is dead and will be replaced."""
    if repeated and holder.id == job.id:
        return Repeat(holder.id)  # only the key is left of the first request
    if holder.fingerprint != job.fingerprint:
        return _refuse(index, RefusalKind.IDEMPOTENCY_MISMATCH, job, existing=holder.id)
    if job.on_duplicate == "raise":
        return _refuse(index, RefusalKind.DUPLICATE, job, existing=holder.id)
    if job.on_duplicate == "replace_dead" and holder.is_dead:
        return None
    return Repeat(holder.id)


def _within_limits(index: int, job: NewJob, standing: AdmissionFacts) -> Admitted | Refusal:
    max_waiting = standing.max_waiting
    if max_waiting is not None and not is_below(standing.queue_waiting, max_waiting):
        return _refuse(index, RefusalKind.QUEUE_FULL, job, waiting=standing.queue_waiting, limit=max_waiting)
    limit = standing.limits.waiting
    if limit is None or is_below(standing.waiting, limit) or job.tenant == SYSTEM:
        return Admitted()
    if standing.limits.on_full == "reject":
        return _refuse(index, RefusalKind.WAITING_LIMIT, job, waiting=standing.waiting, limit=limit)
    return Admitted(over=limit)


def _refuse(
    index: int,
    kind: RefusalKind,
    job: NewJob,
    *,
    detail: str = "",
    existing: UUID | None = None,
    waiting: int = 0,
    limit: int = 0,
) -> Refusal:
    return Refusal(index, kind, job.tenant, job.queue, detail, existing, waiting, limit)
