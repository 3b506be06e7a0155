"""Read a job's arguments as its handler wants them today (S33). Knows no store and runs no handler."""

from __future__ import annotations

from typing import Any

from fairlane.app.declaration import Declaration
from fairlane.model.job import JobRecord
from fairlane.model.payload import decode_arguments, verify


def read_arguments(job: JobRecord, declared: Declaration) -> dict[str, Any]:
    """Give the arguments by name; `Undecodable` if their bytes have changed or cannot be read or upcast."""
    verify(job.payload, job.checksum)
    arguments = decode_arguments(job.payload, enums=declared.handler.argument_enums)
    if job.version == declared.version:
        return arguments
    return declared.upcasters.upcast(arguments, job.version, declared.version)
