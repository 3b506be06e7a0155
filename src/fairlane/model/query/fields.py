"""The fields of the query language: what of a job each one compares, and with which kind of value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias

import msgspec

from fairlane.model.checking import is_listed
from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.facts import last_failure
from fairlane.model.lifecycle.states import FINISHED, State
from fairlane.model.query.syntax import QueryError, Term

FieldKind: TypeAlias = Literal["text", "tags", "part", "number", "duration", "time", "state", "json"]

_MISSING: Final[Any] = object()


class QueryField(msgspec.Struct, frozen=True):
    """A field: its kind, what it reads of a job at an instant (None: nothing there), and what it means."""

    kind: FieldKind
    read: Callable[[JobRecord, Instant], Any]
    meaning: str


def _attribute(name: str) -> Callable[[JobRecord, Instant], Any]:
    return lambda job, _: getattr(job, name)


def _failure(name: str) -> Callable[[JobRecord, Instant], Any]:
    def read(job: JobRecord, _: Instant) -> Any:
        failure = last_failure(job)
        return None if failure is None else getattr(failure, name)

    return read


def _error(job: JobRecord, _: Instant) -> str | None:
    failure = last_failure(job)
    return None if failure is None else f"{failure.error_type}: {failure.message}"


def _wait(job: JobRecord, now: Instant) -> int | None:
    """Return how long a ready job has been waiting since it was due."""
    return now - job.run_at if job.state is State.READY else None


def _run(job: JobRecord, now: Instant) -> int | None:
    """Return how long the running attempt has taken so far, or how long the last one took."""
    if job.started_at is not None:
        return now - job.started_at
    return job.attempts[-1].ended_at - job.attempts[-1].started_at if job.attempts else None


def _worker(job: JobRecord, _: Instant) -> str | None:
    return job.worker or (job.attempts[-1].worker if job.attempts else None)


FIELDS: Final[Mapping[str, QueryField]] = {
    "id": QueryField("text", lambda job, _: str(job.id), "its id"),
    "tenant": QueryField("text", _attribute("tenant"), "whose job it is"),
    "queue": QueryField("text", _attribute("queue"), "its queue"),
    "task": QueryField("text", _attribute("task"), "its task"),
    "state": QueryField("state", _attribute("state"), "its state"),
    "because": QueryField(
        "text", lambda job, _: (job.because or "").partition(":")[0] or None, "why it is there"
    ),
    "corr": QueryField("text", _attribute("correlation_id"), "its correlation id"),
    "key": QueryField("text", _attribute("idempotency_key"), "its idempotency key"),
    "dedup": QueryField("text", _attribute("dedup_key"), "its de-duplication key"),
    "parent": QueryField(
        "text", lambda job, _: job.parent_id and str(job.parent_id), "the job that enqueued it"
    ),
    "tag": QueryField("tags", _attribute("tags"), "one of its tags"),
    "by": QueryField("text", _attribute("created_by"), "who asked for it"),
    "worker": QueryField("text", _worker, "the worker that runs it, or ran it last"),
    "class": QueryField("text", _failure("error_class"), "the class of its last failure"),
    "error": QueryField("part", _error, "a part of the type or message of its last failure"),
    "group": QueryField("text", _failure("fingerprint"), "the fingerprint of its last failure"),
    "attempt": QueryField("number", _attribute("attempt"), "the number of its attempts"),
    "failures": QueryField("number", _attribute("failures"), "the number of its failures"),
    "crashes": QueryField("number", _attribute("crashes"), "how often it was lost or crashed"),
    "prio": QueryField("number", _attribute("priority"), "its priority"),
    "enqueued": QueryField("time", _attribute("enqueued_at"), "when it was enqueued"),
    "due": QueryField("time", _attribute("run_at"), "when it was or is due"),
    "settled": QueryField("time", _attribute("settled_at"), "when it ended"),
    "expires": QueryField("time", _attribute("expires_at"), "when it expires"),
    "wait": QueryField("duration", _wait, "how long it has been ready"),
    "run": QueryField("duration", _run, "how long its attempt runs, or the last one ran"),
}
"""Every field but `arg.PATH` and `meta.PATH`, which look into arguments and metadata."""

ALIASES: Final = {
    "correlation": "corr",
    "correlation_id": "corr",
    "created_by": "by",
    "priority": "prio",
    "fingerprint": "group",
    "type": "task",
    "status": "state",
    "since": "enqueued",
}
"""Other names of a field; `since:2h` is `enqueued:2h`."""

STATES: Final[Mapping[str, frozenset[State]]] = {
    **{state.value: frozenset({state}) for state in State},
    "waiting": frozenset({State.DELAYED, State.READY}),
    "finished": FINISHED,
    "pending": frozenset({State.DELAYED, State.READY}),
    "active": frozenset({State.RUNNING}),
    "processing": frozenset({State.RUNNING}),
    "completed": frozenset({State.SUCCEEDED}),
    "failed": frozenset({State.DEAD}),
    "retry_scheduled": frozenset({State.DELAYED}),
    "dead_letter": frozenset({State.DEAD}),
    "pending_review": frozenset({State.DEAD}),
}
"""The states, words for several of them, and the words that other systems use."""

_PATHS: Final = ("arg.", "meta.")


def field_of(term: Term, text: str) -> QueryField:
    """Return the field of a term; `QueryError` names the field that was probably meant."""
    name = ALIASES.get(term.field, term.field)
    if name in FIELDS:
        return FIELDS[name]
    for prefix in _PATHS:
        if name.startswith(prefix) and len(name) > len(prefix):
            return _inside(prefix, name.removeprefix(prefix))
    close = get_close_matches(name, [*FIELDS, *ALIASES, *_PATHS], 1)
    known = ", ".join([*FIELDS, "arg.PATH", "meta.PATH"])
    hint = f"did you mean {close[0]}?" if close else f"there are {known}"
    problem = f"there is no field {name[:40]!r}; {hint}"
    raise QueryError(problem, text, term.position)


def _inside(prefix: str, path: str) -> QueryField:
    is_argument, parts = prefix == "arg.", tuple(path.split("."))

    def read(job: JobRecord, _: Instant) -> Any:
        try:
            found: Any = msgspec.json.decode(job.payload if is_argument else job.metadata)
        except (msgspec.MsgspecError, ValueError):
            return _MISSING  # scrubbed or damaged
        for part in ("arguments", *parts) if is_argument else parts:
            key: Any = int(part) if part.isdecimal() and is_listed(found) else part
            try:
                found = found[key]
            except (LookupError, TypeError):
                return _MISSING
        return found

    return QueryField("json", read, "a value in its arguments or metadata")


def is_there(found: Any) -> bool:
    """Whether a field has found something to compare. None is a value of arguments and metadata alone."""
    return found is not _MISSING
