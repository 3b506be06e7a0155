"""Filter jobs while they are read (S51): the filters that no store has an index for. Reads nothing itself."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.model.job import JobRecord
from fairlane.store.contract.jobs import FindRequest, Scalar

_MISSING: Any = object()


def matches(job: JobRecord, request: FindRequest) -> bool:
    """Whether a job, already within the scope, meets every filter of the request."""
    plain = (
        not request.states or job.state in request.states,
        request.queue in {None, job.queue},
        request.task in {None, job.task},
        request.correlation_id in {None, job.correlation_id},
        request.parent_id in {None, job.parent_id},
        request.tag is None or request.tag in job.tags,
        request.since is None or job.enqueued_at >= request.since,
        request.until is None or job.enqueued_at < request.until,
    )
    return all(plain) and (not request.where or _holds(job.payload, request.where))


def _holds(payload: bytes, where: tuple[tuple[str, Scalar], ...]) -> bool:
    try:
        arguments = msgspec.json.decode(payload)["arguments"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return False  # erased or undecodable: nothing stands there
    return all(_same(_at(arguments, path), value) for path, value in where)


def _at(arguments: Any, path: str) -> Any:
    found = arguments
    for part in path.split("."):
        key: Any = int(part) if part.isdecimal() and _is_list(found) else part
        try:
            found = found[key]
        except (LookupError, TypeError):
            return _MISSING
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _same(found: Any, wanted: Scalar) -> bool:
    """Compare plain values by type too: 1 is not True, and "1" is not 1."""
    return type(found) is type(wanted) and bool(found == wanted)
