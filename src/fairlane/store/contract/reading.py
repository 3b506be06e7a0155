"""What every store does alike with what it has read: filter, count (S51), explain. Reads nothing itself."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle import Because, State, is_finished
from fairlane.store.contract.dead import DeadLetter, DeadRequest
from fairlane.store.contract.jobs import Filtered, FindRequest, Reason, Scalar, Tally, TallyPage, Why

_MISSING: Any = object()


def matches(job: JobRecord, request: FindRequest) -> bool:
    """Whether a job, already within the scope, meets every filter of the request."""
    return meets(job, request) and (not request.where or _holds(job.payload, request.where))


def meets(job: JobRecord, request: Filtered) -> bool:
    """Whether a job, already within the scope, meets every filter that looks at no arguments."""
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
    return all(plain)


class Tallies:
    """Jobs that are being counted by queue, state and the first word of their `because`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: dict[tuple[str, State, str], tuple[int, Instant]] = {}

    def add(self, queue: str, state: State, word: str, jobs: int, first_at: Instant) -> None:
        """Count some jobs, the oldest of which was enqueued at an instant."""
        before, first = self._found.get((queue, state, word), (0, first_at))
        self._found[queue, state, word] = before + jobs, min(first, first_at)

    def add_job(self, job: JobRecord) -> None:
        """Count one job."""
        self.add(job.queue, job.state, because_word(job.because), 1, job.enqueued_at)

    def page(self, looked_at: int, cursor: str | None) -> TallyPage:
        """Give what was counted, sorted."""
        tallies = sorted(Tally(*key, jobs, first) for key, (jobs, first) in self._found.items())
        return TallyPage(tuple(tallies), looked_at, cursor)


def because_word(because: str | None) -> str:
    """Give the closed word of a job's `because`, without its detail.

    >>> because_word("retry: ConnectionError"), because_word("time"), because_word(None)
    ('retry', 'time', '')
    """
    return (because or "").partition(":")[0]


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
    word = because_word(job.because)
    return Why(_DELAYS.get(word, "snooze"), job.because or "", job.run_at)


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
