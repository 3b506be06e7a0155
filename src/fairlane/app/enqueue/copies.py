"""Build new jobs from stored ones: the same task and arguments, byte for byte. Sends nothing."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.errors import WrongState
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.payload.encoding import Undecodable, verify


def what_is_missing(record: JobRecord) -> str | None:
    """Return why a stored job cannot be copied; None if it can."""
    if not record.payload:  # its tenant was forgotten
        return "its arguments are no longer stored"
    try:
        verify(record.payload, record.checksum)
    except Undecodable:
        return "its arguments are damaged"
    return None


def check_copy(record: JobRecord) -> None:
    """Raise `WrongState` if the arguments of a stored job are gone or damaged."""
    what = what_is_missing(record)
    if what is not None:
        raise WrongState(record.id, record.state.value, what, "enqueue a new job")


def copy_of(record: JobRecord, id: UUID) -> NewJob:
    """Return a new job like a stored one, which is its parent: without key and expiry, to start at once."""
    return NewJob(
        id=id,
        tenant=record.tenant,
        queue=record.queue,
        task=record.task,
        payload=record.payload,
        checksum=record.checksum,
        version=record.version,
        priority=record.priority,
        dedup_key=record.dedup_key,
        dedup_until=record.dedup_until,
        correlation_id=record.correlation_id,
        parent_id=record.id,
        max_attempts=record.max_attempts,
        timeout=record.timeout,
        at_most_once=record.at_most_once,
        tags=record.tags,
        metadata=record.metadata,
        created_by=record.created_by,
        stuck_after=record.stuck_after,
        on_stuck=record.on_stuck,
    )
