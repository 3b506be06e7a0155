"""Encode a job as a row of the outbox, and decode it. Knows no database and no store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fairlane.model.errors import FairlaneError
from fairlane.model.instants import Instant
from fairlane.model.job import NewJob
from fairlane.model.names import name_hint, task_hint, tenant_hint
from fairlane.model.payload.encoding import verify

FORMAT: Final = 1
"""The version of a row's JSON. Raise it with every change of `NewJob` that an older relay would misread."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(NewJob).decode
_INTEGERS: Final = range(-(2**63), 2**63)


class UnreadableRowError(FairlaneError):
    """A row that can never be stored; the message says why."""


def to_row(job: NewJob, now: Instant) -> dict[str, Any]:
    """Return the columns of a job that is added now.

    Delays become instants: they count from now on, however late the relay is.
    """
    if job.delay:
        job = msgspec.structs.replace(job, run_at=now + job.delay, delay=0)
    if job.expires_in is not None:
        job = msgspec.structs.replace(job, expires_at=now + job.expires_in, expires_in=None)
    return {"id": str(job.id), "tenant": job.tenant, "format": FORMAT, "job": _encode(job), "created_at": now}


def from_row(id: str, tenant: str, version: int, data: Any) -> NewJob:
    """Return the job of a row; `UnreadableRowError` if `to_row` has not written it like this."""
    if version != FORMAT:
        message = (
            f"its format is {version}, this relay reads {FORMAT}; run a relay of the version that wrote it"
        )
        raise UnreadableRowError(message)
    try:
        job = _decode(data if isinstance(data, str) else bytes(data))
        verify(job.payload, job.checksum)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        message = f"it cannot be decoded: {error}"
        raise UnreadableRowError(message) from error
    for problem in _problems(job, id, tenant):
        raise UnreadableRowError(problem)
    return job


def _problems(job: NewJob, id: str, tenant: str) -> Iterator[str]:
    if (str(job.id), job.tenant) != (id, tenant):
        yield f"it holds job {job.id} of tenant {job.tenant}, not what its columns say"
    hints = (tenant_hint(job.tenant), name_hint(job.queue), task_hint(job.task))
    yield from (f"a name in it is not legal; {hint}" for hint in hints if hint is not None)
    numbers = (value for value in msgspec.structs.astuple(job) if isinstance(value, int))
    if any(value not in _INTEGERS for value in numbers):
        yield "a number in it is beyond 64 bits"
