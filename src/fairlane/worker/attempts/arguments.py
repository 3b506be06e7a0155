"""Read the stored arguments of a job as its handler takes them today. Runs no handler."""

from __future__ import annotations

from typing import Any

from fairlane.app.task.declaration import Declaration
from fairlane.model.job import JobRecord
from fairlane.model.payload.encoding import decode_arguments, verify


def read_arguments(job: JobRecord, declared: Declaration) -> dict[str, Any]:
    """Return a job's arguments by name, as its handler takes them today (S33).

    `Undecodable` if their bytes have changed, or cannot be read or upcast.
    """
    verify(job.payload, job.checksum)
    arguments = decode_arguments(job.payload, enums=declared.handler.argument_enums)
    if job.version == declared.version:
        return arguments
    return declared.upcasters.upcast(arguments, job.version, declared.version)
