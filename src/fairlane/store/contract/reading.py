"""What every store does alike with what it has read: filter it (S51), explain it. Reads nothing itself."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Because, State, is_finished
from fairlane.store.contract.dead import DeadLetter, DeadRequest
from fairlane.store.contract.jobs import FindRequest, Reason, Scalar, Why

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


def is_wanted(letter: DeadLetter, request: DeadRequest) -> bool:
    """Whether a dead letter, already within the scope, meets every filter of the request."""
    job = letter.job
    died_at = job.settled_at or 0
    return all(
        (
            request.queue in {None, job.queue},
            request.task in {None, job.task},
            request.error_class in {None, letter.error_class},
            request.review in {None, letter.review},
            request.since is None or died_at >= request.since,
            request.until is None or died_at < request.until,
        )
    )


def explain_by_state(job: JobRecord) -> Why | None:
    """Say why a job does not run, where its own record tells; None for a ready one, which others hold up."""
    if is_finished(job.state):
        return Why("finished", job.because or job.state.value)
    if job.state is State.RUNNING:
        return Why("running", f"worker {job.worker}")
    if job.state is State.READY:
        return None
    word = (job.because or "").partition(":")[0]
    return Why(_DELAYS.get(word, "snooze"), job.because or "", job.run_at)


_DELAYS: dict[str, Reason] = {
    Because.TIME.value: "schedule",
    Because.RETRY.value: "retry",
    Because.UNKNOWN_TASK.value: "unknown_task",
    Because.UNKNOWN_VERSION.value: "unknown_version",
}


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
