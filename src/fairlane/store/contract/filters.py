"""Filter, tally and explain records that a store has read (S51). Reads no store."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import Because, State, is_finished
from fairlane.store.contract.dead import DeadFiltered, DeadLetter
from fairlane.store.contract.jobs import Filtered, FindRequest, JobTally, Reason, Scalar, TallyPage, Why

_MISSING: Any = object()


def matches(job: JobRecord, request: FindRequest) -> bool:
    """Whether a job within the scope matches every filter of the request."""
    return (
        matches_fields(job, request)
        and (not request.metadata or _all_stand(msgspec.json.decode(job.metadata), request.metadata))
        and (not request.where or _holds(job.payload, request.where))
    )


def matches_fields(job: JobRecord, request: Filtered) -> bool:
    """Whether a job within the scope matches every filter except those on its arguments and metadata."""
    plain = (
        not request.states or job.state in request.states,
        request.queue in {None, job.queue},
        request.task in {None, job.task},
        request.correlation_id in {None, job.correlation_id},
        request.created_by in {None, job.created_by},
        request.parent_id in {None, job.parent_id},
        request.tag is None or request.tag in job.tags,
        request.since is None or job.enqueued_at >= request.since,
        request.until is None or job.enqueued_at < request.until,
    )
    return all(plain)


class Tallies:
    """Counts jobs by queue, state and reason, the first word of their `because`."""

    def __init__(self) -> None:
        """Start with no jobs."""
        self._found: dict[tuple[str, State, str], tuple[int, Instant]] = {}

    def add(self, queue: str, state: State, reason: str, jobs: int, first_at: Instant) -> None:
        """Count jobs, the oldest of which was enqueued at `first_at`."""
        before, first = self._found.get((queue, state, reason), (0, first_at))
        self._found[queue, state, reason] = before + jobs, min(first, first_at)

    def add_job(self, job: JobRecord) -> None:
        """Count one job."""
        self.add(job.queue, job.state, reason_of(job.because), 1, job.enqueued_at)

    def page(self, looked_at: int, cursor: str | None) -> TallyPage:
        """Return the tallies, sorted."""
        tallies = sorted(JobTally(*key, jobs, first) for key, (jobs, first) in self._found.items())
        return TallyPage(tuple(tallies), looked_at, cursor)


def reason_of(because: str | None) -> str:
    """Return the reason of a job's `because`, without its detail.

    >>> reason_of("retry: ConnectionError"), reason_of("time"), reason_of(None)
    ('retry', 'time', '')
    """
    return (because or "").partition(":")[0]


def matches_dead(letter: DeadLetter, request: DeadFiltered) -> bool:
    """Whether a dead letter within the scope matches every filter of the request."""
    job = letter.job
    died_at = job.settled_at or 0
    return all(
        (
            request.queue in {None, job.queue},
            request.task in {None, job.task},
            request.error_class in {None, letter.error_class},
            request.fingerprint in {None, letter.fingerprint},
            request.review in {None, letter.review.review},
            request.is_acknowledged in {None, letter.review.acknowledged is not None},
            request.since is None or died_at >= request.since,
            request.until is None or died_at < request.until,
        )
    )


def explain_by_state(job: JobRecord) -> Why | None:
    """Return why a job does not run, if its own record says so; None for a ready job."""
    if is_finished(job.state):
        return Why("finished", job.because or job.state.value)
    if job.state is State.RUNNING:
        return Why("running", f"worker {job.worker}")
    if job.state is State.READY:
        return None
    reason = reason_of(job.because)
    return Why(_DELAYS.get(reason, "snooze"), job.because or "", job.run_at)


_DELAYS: dict[str, Reason] = {
    Because.TIME.value: "time",
    Because.RETRY.value: "retry",
    Because.UNKNOWN_TASK.value: "unknown_task",
    Because.UNKNOWN_VERSION.value: "unknown_version",
}


def _holds(payload: bytes, where: tuple[tuple[str, Scalar], ...]) -> bool:
    try:
        arguments = msgspec.json.decode(payload)["arguments"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return False  # scrubbed or undecodable: there are no arguments
    return _all_stand(arguments, where)


def _all_stand(values: Any, wanted: tuple[tuple[str, Scalar], ...]) -> bool:
    return all(_same(_at(values, path), value) for path, value in wanted)


def _at(values: Any, path: str) -> Any:
    found = values
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
