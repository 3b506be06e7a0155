"""Records of jobs for the tests of queries."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import DAY, HOUR, MINUTE, SECOND
from fairlane.model.job import AttemptRecord, JobRecord, NewJob
from fairlane.model.lifecycle.record_changes import new_record
from fairlane.model.lifecycle.states import State

NOW = 20_000 * DAY + 14 * HOUR
"""A day of 2024, at two in the afternoon."""

JOB_ID = UUID("01a3185c-5000-7137-b2a7-4de438b4e652")
PARENT_ID = UUID("01a3185c-5000-7137-b2a7-4de438b4e600")


def job(*, ago: int = HOUR, state: State = State.READY, **values: Any) -> JobRecord:
    """Return the record of a job that was enqueued so long ago."""
    new = {"tenant": "acme", "queue": "mail", "task": "mail.send", "tags": ("vip", "region=eu"), **values}
    arguments = {"to": "ann@example.org", "n": 5, "price": 1.5, "note": None, "is_new": True}
    arguments["lines"] = [{"sku": "a"}]
    payload = msgspec.json.encode({"v": 1, "arguments": arguments})
    later = {name: new.pop(name) for name in list(new) if name not in NewJob.__struct_fields__}
    body = {"id": JOB_ID, "payload": payload, "checksum": 0, "metadata": b'{"step":3}'}
    record = new_record(NewJob(**{**body, **new}), NOW - ago)
    return msgspec.structs.replace(record, state=state, **later)


def failed_job(message: str = "no user 4711", **values: Any) -> JobRecord:
    """Return a job that has failed once, after two seconds on worker w1."""
    failure = Failure(ErrorClass.TIMEOUT, "app.NoUser", message, None, "00112233aabbccdd")
    attempt = AttemptRecord(1, "w1", NOW - MINUTE, NOW - MINUTE + 2 * SECOND, "failed", failure)
    return job(attempts=(attempt,), failures=1, attempt=1, **values)
