"""Turn a store's refusals into the errors that callers catch. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.model.errors import (
    Closed,
    DuplicateJob,
    FairlaneError,
    IdempotencyMismatch,
    Problem,
    QueueFull,
    Refused,
    WaitingLimitReached,
    invalid_job,
)
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import Refusal, RefusalKind


def refusal_error(
    refused: Sequence[Refusal], jobs: Sequence[NewJob], *, is_batch: bool = False
) -> FairlaneError:
    """Return the error of the first refusal; its message lists the others.

    Unknown tenants come first, as one `UnknownTenant` with a problem for each item.
    """
    unknown = [refusal for refusal in refused if refusal.kind is RefusalKind.UNKNOWN_TENANT]
    if unknown:
        error: FairlaneError = invalid_job([_problem(refusal) for refusal in unknown], is_batch=is_batch)
        others = [refusal for refusal in refused if refusal.kind is not RefusalKind.UNKNOWN_TENANT]
    else:
        error, others = _error(refused[0], jobs[refused[0].index]), list(refused[1:])
    if others:
        lines = [f"  [{refusal.index}] {_error(refusal, jobs[refusal.index])}" for refusal in others]
        error.args = ("\n".join([str(error), "also refused:", *lines]),)
    return error


def _problem(refusal: Refusal) -> Problem:
    message = f"{refusal.tenant} is not declared, and tenancy is declared"
    return Problem(refusal.index, "tenant", message, "declare it before its first job", "unknown_tenant")


def _error(refusal: Refusal, job: NewJob) -> Refused:
    match refusal.kind:
        case RefusalKind.WAITING_LIMIT:
            return WaitingLimitReached(refusal.tenant, refusal.queue, refusal.waiting, refusal.limit)
        case RefusalKind.QUEUE_FULL:
            return QueueFull(refusal.queue, refusal.waiting, refusal.limit)
        case RefusalKind.CLOSED:
            subject, _, reason = refusal.detail.partition(": ")
            return Closed(subject, reason)
        case RefusalKind.DUPLICATE if refusal.existing is not None:
            return DuplicateJob(str(job.idempotency_key), refusal.existing)
        case RefusalKind.IDEMPOTENCY_MISMATCH if refusal.existing is not None:
            return IdempotencyMismatch(str(job.idempotency_key), refusal.existing)
        case _:
            return Refused(f"job {job.id} of tenant {refusal.tenant} was refused: {refusal.kind.value}")
