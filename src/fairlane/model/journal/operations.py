"""What an operator does, as an entry of the audit (S60). Copies no payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry

_encode: Final = msgspec.json.Encoder(order="sorted").encode

_WATCHED: Final = ("state", "because", "priority", "run_at", "expires_at", "tags", "version", "checksum")
"""What of a job is noted before and after; of its arguments only that they are others."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Who does what, from where, and why. Travels with the request; the store appends it in the same step.

    `details` are what the request says besides its subject: a filter, how many jobs match it.
    """

    action: str
    actor: str
    origin: str
    note: str = ""
    details: Mapping[str, Any] = {}


def entry_of(
    operation: Operation,
    subject: str,
    tenant: str | None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> NewEntry:
    """Return the entry of an operation on one subject, with what it changed.

    >>> entry_of(Operation(action="queues.pause", actor="ann", origin="cli"), "queue bulk", None).body
    b'{"actor":"ann","origin":"cli"}'
    """
    body: dict[str, Any] = {"actor": operation.actor, "origin": operation.origin}
    known = {"note": operation.note, "details": operation.details, "before": before, "after": after}
    body |= {name: value for name, value in known.items() if value}
    return NewEntry(kind=operation.action, tenant=tenant, subject=subject, body=_encode(body))


def job_entry(operation: Operation, before: JobRecord, after: JobRecord | None) -> NewEntry:
    """Return the entry of an operation on a job: what it changed. Without `after` the job is gone."""
    if after is None:
        return entry_of(operation, str(before.id), before.tenant, before={"state": before.state.value})
    was, now = _watched(before), _watched(after)
    changed = [name for name in _WATCHED if was[name] != now[name]]
    return entry_of(
        operation,
        str(before.id),
        before.tenant,
        {name: was[name] for name in changed},
        {name: now[name] for name in changed},
    )


def created_entry(operation: Operation, job: JobRecord) -> NewEntry:
    """Return the entry of an operation that made a job."""
    after = {"state": job.state.value, "queue": job.queue, "task": job.task, "parent": job.parent_id}
    return entry_of(operation, str(job.id), job.tenant, after=after)


def _watched(job: JobRecord) -> dict[str, Any]:
    return {name: getattr(job, name) for name in _WATCHED}
