"""Make the test of a job from the tree of a query. Every value is checked before any job is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.query.fields import STATES, QueryField, field_of, is_there
from fairlane.model.query.parser import parse
from fairlane.model.query.syntax import AllOf, AnyOf, Negation, Node, QueryError, Term, WrittenValue
from fairlane.model.query.values import (
    Test,
    duration_test,
    json_test,
    number_test,
    part_test,
    text_test,
    time_test,
)

Matcher: TypeAlias = Callable[[JobRecord], bool]

_SHORTEST_ID: Final = 6
"""So many last characters of an id are enough for a bare word."""

_TESTS: Final[dict[str, Callable[[WrittenValue, str], Test]]] = {
    "text": text_test,
    "tags": text_test,
    "part": part_test,
    "number": number_test,
    "duration": duration_test,
    "json": json_test,
}


def matcher(text: str, now: Instant) -> Matcher:
    """Return the test of a query; `QueryError` says what is wrong with it.

    Ages and times of day are counted from `now`.
    """
    return _of(parse(text), text, now)


def _of(node: Node, text: str, now: Instant) -> Matcher:
    match node:
        case AllOf(nodes):
            every = [_of(one, text, now) for one in nodes]
            return lambda job: all(one(job) for one in every)
        case AnyOf(nodes):
            some = [_of(one, text, now) for one in nodes]
            return lambda job: any(one(job) for one in some)
        case Negation(inner):
            other = _of(inner, text, now)
            return lambda job: not other(job)
        case _:
            return _bare(node, text) if not node.field else _term(node, text, now)


def _term(term: Term, text: str, now: Instant) -> Matcher:
    field = field_of(term, text)
    tests = [_test(field, value, text, now) for value in term.values]
    read = field.read

    def holds(job: JobRecord) -> bool:
        found = read(job, now)
        if not is_there(found) or (found is None and field.kind != "json"):
            return False
        each = job.tags if field.kind == "tags" else (found,)
        return any(test(one) for test in tests for one in each)

    return holds


def _test(field: QueryField, value: WrittenValue, text: str, now: Instant) -> Test:
    if field.kind == "time":
        return time_test(value, text, now)
    if field.kind == "state":
        wanted = states_of(value, text)
        return lambda found: found in wanted
    return _TESTS[field.kind](value, text)


def states_of(value: WrittenValue, text: str) -> frozenset[State]:
    """Return the states that a word means; `QueryError` lists the words."""
    found = STATES.get(value.text)
    if found is None:
        problem = f"{value.text[:40]!r} is no state; there are {', '.join(STATES)}"
        raise QueryError(problem, text, value.position)
    return found


def _bare(term: Term, text: str) -> Matcher:
    """Return the test of a word without a field: an id or its end, a correlation id, the start of a task."""
    (value,) = term.values
    word, lower = value.text, value.text.lower()
    if not value.is_quoted and "*" in word:
        problem = "a * needs a field, as in task:mail.*"
        raise QueryError(problem, text, value.position)
    is_end = len(word) >= _SHORTEST_ID

    def holds(job: JobRecord) -> bool:
        id = str(job.id)
        is_id = id == lower or (is_end and id.endswith(lower))
        return is_id or job.correlation_id == word or job.task.startswith(word)

    return holds
