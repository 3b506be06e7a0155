"""Check the arguments of administrative calls: filters, limits, cursors, texts, policy values.

Every check raises one ValueError that names the field, the problem and what is allowed, before any store is
asked. So all stores get the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict, TypeVar, cast
from uuid import UUID

from msgspec import UnsetType

from fairlane.app.acting import current_actor
from fairlane.app.ambient import current_ambient, scope_for
from fairlane.app.enqueue.checks import LONGEST_WAIT, ProblemList, duration, instant, kind_of
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import LAST_INSTANT, Instant, Micros
from fairlane.model.lifecycle.states import State
from fairlane.model.names import (
    TEXT_CHARS,
    invalid_name,
    label_hint,
    name_hint,
    task_hint,
    tenant_hint,
    text_hint,
)
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import EVERY
from fairlane.model.scheduling.fairness import stride
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Scalar
from fairlane.store.contract.request import MAX_PAGE_SIZE, JobPosition, Request, from_cursor

Word = TypeVar("Word", bound=str)


class Filters(TypedDict, total=False):
    """The filters of `find`. A filter that is missing or None matches every job."""

    tenant: str | None
    queue: str | None
    task: str | None
    state: State | Iterable[State] | None
    correlation_id: str | None
    created_by: str | None
    tag: str | None
    parent: UUID | str | None
    since: datetime | None
    until: datetime | None


class FindFilters(Filters, total=False):
    """The filters of `find` and `each`: also those that counting does not know."""

    metadata: Mapping[str, Scalar] | None


_HINTS: Final[Mapping[str, Callable[[object], str | None]]] = {
    "tenant": tenant_hint,
    "queue": name_hint,
    "task": task_hint,
    "breaker": name_hint,
    "correlation_id": label_hint,
    "created_by": label_hint,
    "tag": label_hint,
    "label": label_hint,
}
_SHOWN: Final = 60


def name_of(field: str, value: object) -> str:
    """Return a legal name (S3); a store would find nothing, or report it in its own words.

    >>> try:
    ...     name_of("tag", "")
    ... except ValueError as error:
    ...     print(error)
    tag '' is not a legal name; use 1 to 255 bytes of UTF-8 without control characters
    """
    hint = _HINTS[field](value)
    if hint is not None:
        raise invalid_name(field, value, hint)
    return str(value)


def text_of(field: str, value: object) -> str:
    """Return a free text that is short enough and has no control characters.

    >>> text_of("note", "x" * 5_000)
    Traceback (most recent call last):
        ...
    ValueError: note: has 5,000 characters; use at most 2,000, and no control characters but newline and tab
    """
    hint = text_hint(value)
    if hint is None:
        return str(value)
    if not isinstance(value, str):
        wrong = f"is of type {kind_of(value)}"
    elif len(value) > TEXT_CHARS:
        wrong = f"has {len(value):,} characters"
    else:
        wrong = "has a control character"
    message = f"{field}: {wrong}; {hint}"
    raise ValueError(message)


def number_of(field: str, value: object, most: int, hint: str = "") -> int:
    """Return a whole number from 1 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{field}: is of type {kind_of(value)}; use a whole number, 1 to {most:,}"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    if not 1 <= value <= most:
        message = f"{field} is {value}; use 1 to {most}{hint}"
        raise ValueError(message)
    return value


def flag_of(field: str, value: object) -> bool:
    """Return True or False; ValueError for anything else."""
    if isinstance(value, bool):
        return value
    message = f"{field}: is of type {kind_of(value)}; use True or False"
    raise ValueError(message)


def one_of(field: str, value: Word, known: Sequence[Word]) -> Word:
    """Return a word that is one of these; ValueError for anything else."""
    if value in known:
        return value
    message = f"{field} is {str(value)[:40]!r}; use one of: {', '.join(known)}"
    raise ValueError(message)


def within_page(field: str, number: object) -> int:
    """Return a legal page size."""
    return number_of(field, number, MAX_PAGE_SIZE, ", and the cursor for more")


def cursor_of(cursor: object) -> str | None:
    """Return a cursor of `find`, or None for the first page."""
    if cursor is None:
        return None
    if not isinstance(cursor, str):
        message = f"cursor: is of type {kind_of(cursor)}; use the one that came with the page before"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    from_cursor(cursor, JobPosition)
    return cursor


def labels_of(labels: object) -> dict[str, str]:
    """Return labels: short texts by short texts."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        message = f"labels: is of type {kind_of(labels)}; give a dict of texts"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    pairs: dict[object, object] = dict(cast("Mapping[object, object]", labels))
    return {name_of("label", key): name_of("label", value) for key, value in pairs.items()}


def tenant_cursor(cursor: object) -> str:
    """Return a cursor of the list of tenants; "" for the first page."""
    if cursor is None or tenant_hint(cursor) is None:
        return str(cursor or "")
    shown = repr(cursor[:_SHOWN]) if isinstance(cursor, str) else f"a value of type {kind_of(cursor)}"
    message = f"{shown} is not a cursor; use the one that came with the page before"
    raise ValueError(message)


def text_or_none(field: str, value: object) -> str | None:
    """Return a text or None."""
    if value is None or isinstance(value, str):
        return value
    message = f"{field}: is of type {kind_of(value)}; give a text"
    raise ValueError(message)


def instant_or_none(field: str, value: object) -> Instant | None:
    """Return an instant that every store can hold, or None (S2); naive datetimes are refused."""
    if value is None:
        return None
    problems = ProblemList(0)
    found = instant(problems, field, value)
    if problems.found:
        (problem,) = problems.found
        message = f"{field}: {problem.message}; {problem.hint}"
        raise ValueError(message)
    return found


def age_of(field: str, value: object) -> Micros:
    """Return how long ago, in microseconds: seconds or a timedelta, 0 or more."""
    problems = ProblemList(0)
    found = duration(problems, field, value, 0, LONGEST_WAIT)
    if problems.found:
        (problem,) = problems.found
        message = f"{field}: {problem.message}; {problem.hint}"
        raise ValueError(message)
    return found


def find_filters_of(filters: FindFilters) -> dict[str, Any]:
    """Return the filters as fields of a `FindRequest`; see `filters_of`."""
    rest = cast("Filters", {name: value for name, value in filters.items() if name != "metadata"})
    metadata = metadata_of(filters.get("metadata"))
    return {**filters_of(rest, FindFilters), "metadata": metadata}


def metadata_of(metadata: object) -> tuple[tuple[str, Scalar], ...]:
    """Return what must stand in the metadata: plain values by dotted paths."""
    if metadata is None:
        return ()
    if not isinstance(metadata, Mapping):
        message = f"metadata: is of type {kind_of(metadata)}; give a dict of paths and plain values"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    wanted: list[tuple[str, Scalar]] = []
    for path, value in cast("Mapping[object, object]", metadata).items():
        if not isinstance(path, str) or not path:
            message = f"metadata: has a key of type {kind_of(path)}; use dotted paths, such as 'import.page'"
            raise ValueError(message)
        if value is not None and type(value) not in {str, int, float, bool}:
            message = f"metadata.{path[:_SHOWN]}: is of type {kind_of(value)}; compare with text, a number, "
            raise ValueError(message + "True, False or None")
        wanted.append((path, cast("Scalar", value)))
    return tuple(wanted)


async def begin_of(store: Store, since: object, field: str = "since") -> Instant:
    """Return a time, or the time so long ago by the store's clock."""
    if not isinstance(since, timedelta):
        return instant_or_none(field, since) or 0
    age = age_of(field, since)
    return max(0, (await store.registry.status(Request(scope=Scope.all()))).now - age)


def filters_of(filters: Filters, kind: type[Any] = Filters) -> dict[str, Any]:
    """Return the filters as fields of a store request, with the scope; TypeError for an unknown filter.

    All values are checked before the scope is.
    """
    unknown = sorted(set(filters) - set(kind.__annotations__))
    if unknown:
        message = f"{unknown[0]!r} is not a filter; there are {', '.join(kind.__annotations__)}"
        raise TypeError(message)
    given = {name: value for name, value in filters.items() if value is not None}
    found: dict[str, Any] = {name: name_of(name, value) for name, value in given.items() if name in _HINTS}
    tenant = found.pop("tenant", None)
    if "parent" in given:
        found["parent_id"] = _parent(given["parent"])
    found["states"] = states_of(filters.get("state"))
    found["since"] = instant_or_none("since", filters.get("since"))
    found["until"] = instant_or_none("until", filters.get("until"))
    return {**found, "scope": scope_for(tenant)}


def scope_of(tenant: object) -> Scope:
    """Return the scope of a call that may name a tenant (S9); the name is checked first."""
    return scope_for(None if tenant is None else name_of("tenant", tenant))


def states_of(state: object) -> frozenset[State]:
    """Return one state or several as a set; empty for every state. An empty list is refused."""
    if state is None:
        return frozenset()
    wanted: set[State] = set()
    for one in _several(state):
        if not isinstance(one, str) or one not in set(State):
            shown = repr(one[:_SHOWN]) if isinstance(one, str) else f"a value of type {kind_of(one)}"
            message = f"state: {shown} is not a state; use {', '.join(state.value for state in State)}"
            raise ValueError(message)
        wanted.add(State(one))
    if not wanted:
        message = "state names no state; leave it out to find jobs in every state"
        raise ValueError(message)
    return frozenset(wanted)


def _parent(value: object) -> UUID:
    if isinstance(value, UUID | str):
        return parse_id(value)
    message = f"parent: is of type {kind_of(value)}; give the id of a job"
    raise ValueError(message)


def _several(state: object) -> list[object]:
    """Return one or several states as a list; a state is a str, and a str is iterable."""
    if isinstance(state, Iterable) and not isinstance(state, str):
        return list(cast("Iterable[object]", state))
    return [state]


# ── values of a policy that is changed at run time ───────────────────────────


def weight_of(weight: object) -> float:
    """Return a tenant's weight."""
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise _refusal("weight", weight, "a number from 0.01 to 1000")
    stride(weight)  # ValueError if it is out of range
    return weight


def limits_of(limits: object) -> Limits:
    """Return limits."""
    if not isinstance(limits, Limits):
        raise _refusal("limits", limits, "Limits(...)")
    return limits


def rate_of(rate: object) -> Rate | UnsetType | None:
    """Return a rate; None removes the rate."""
    if rate is None or isinstance(rate, Rate | UnsetType):
        return rate
    raise _refusal("rate", rate, "Rate(...), or None for no rate")


def count_of(field: str, count: object) -> int | UnsetType | None:
    """Return a limit in jobs; None removes the limit."""
    if count is None or isinstance(count, UnsetType):
        return count
    if not isinstance(count, int) or isinstance(count, bool):
        raise _refusal(field, count, "a whole number, or None for no limit")
    if not 0 <= count <= LAST_INSTANT:
        message = f"{field} is {count}; use 0 or more, or None for no limit"
        raise ValueError(message)
    return count


def queue_or_every(queue: object) -> str:
    """Return the name of a queue, or `*` for every queue."""
    hint = None if queue == EVERY else name_hint(queue)
    if hint is not None:
        raise invalid_name("queue", queue, hint)
    return str(queue)


def _refusal(name: str, value: object, wanted: str) -> ValueError:
    return ValueError(f"{name} has a value of type {kind_of(value)}; give {wanted}")


# ── who changes it, why, and until when ──────────────────────────────────────


def actor(who: str | None) -> str:
    """Return who acts: as given, else the task of the running handler, else whoever acts in this process."""
    if who:
        return text_of("who", who)
    caller = current_ambient()
    if caller is not None and caller.job is not None:
        return f"task {caller.job.task}"
    return current_actor()


def reason_of(reason: str) -> str:
    """Return a reason; ValueError if it is blank."""
    text = text_of("reason", reason)
    if not text.strip():
        message = "reason is empty; say why: others will want to know"
        raise ValueError(message)
    return text


def until_of(moment: datetime | None) -> Instant | None:
    """Return the end of a change as an instant; naive datetimes are refused (S2)."""
    return instant_or_none("until", moment)
