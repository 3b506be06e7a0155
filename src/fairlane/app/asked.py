"""What may be asked for: filters, numbers of items, free texts. One ValueError, before any store is asked.

Each text names the field, what is wrong and what is allowed. Knows no store: all of them hear the same
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypedDict, cast
from uuid import UUID

from fairlane.app.ambient import scope_for
from fairlane.app.checks import Sheet, instant, kind_of
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import Instant
from fairlane.model.lifecycle import State
from fairlane.model.names import (
    TEXT_CHARS,
    invalid_name,
    label_hint,
    name_hint,
    task_hint,
    tenant_hint,
    text_hint,
)
from fairlane.model.scope import Scope
from fairlane.store.contract.request import PAGE_MOST, Place, from_cursor


class Filters(TypedDict, total=False):
    """The filters of `find`, by name; those that are left out or None let every job through."""

    tenant: str | None
    queue: str | None
    task: str | None
    state: State | Iterable[State] | None
    correlation_id: str | None
    tag: str | None
    parent: UUID | str | None
    since: datetime | None
    until: datetime | None


_HINTS: Final[Mapping[str, Callable[[object], str | None]]] = {
    "tenant": tenant_hint,
    "queue": name_hint,
    "task": task_hint,
    "correlation_id": label_hint,
    "tag": label_hint,
    "label": label_hint,
}
_SHOWN: Final = 60


def name_of(field: str, value: object) -> str:
    """Refuse what can be the name of nothing (S3): a store would find nothing, or say so in its own words.

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
    """Refuse a free text that is too long or cannot be shown.

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
    """Refuse what is not a whole number from 1 to a bound."""
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{field}: is of type {kind_of(value)}; use a whole number, 1 to {most:,}"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    if not 1 <= value <= most:
        message = f"{field} is {value}; use 1 to {most}{hint}"
        raise ValueError(message)
    return value


def within_page(field: str, number: object) -> int:
    """Refuse a number of items that no page can have."""
    return number_of(field, number, PAGE_MOST, ", and the cursor for more")


def cursor_of(cursor: object) -> str | None:
    """Refuse a cursor of `find` that no page came with."""
    if cursor is None:
        return None
    if not isinstance(cursor, str):
        message = f"cursor: is of type {kind_of(cursor)}; use the one that came with the page before"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    from_cursor(cursor, Place)
    return cursor


def labels_of(labels: object) -> dict[str, str]:
    """Refuse labels that are not short texts by short texts."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        message = f"labels: is of type {kind_of(labels)}; give a dict of texts"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    pairs: dict[object, object] = dict(cast("Mapping[object, object]", labels))
    return {name_of("label", key): name_of("label", value) for key, value in pairs.items()}


def tenant_cursor(cursor: object) -> str:
    """Refuse a cursor of a list of tenants that no page came with; "" is its start."""
    if cursor is None or tenant_hint(cursor) is None:
        return str(cursor or "")
    shown = repr(cursor[:_SHOWN]) if isinstance(cursor, str) else f"a value of type {kind_of(cursor)}"
    message = f"{shown} is no cursor; use the one that came with the page before"
    raise ValueError(message)


def text_or_none(field: str, value: object) -> str | None:
    """Refuse what is neither a text nor missing."""
    if value is None or isinstance(value, str):
        return value
    message = f"{field}: is of type {kind_of(value)}; give a text"
    raise ValueError(message)


def moment_of(field: str, value: object) -> Instant | None:
    """Refuse what is no moment that every store can keep (S2)."""
    if value is None:
        return None
    sheet = Sheet(0)
    found = instant(sheet, field, value)
    if sheet.problems:
        (problem,) = sheet.problems
        message = f"{field}: {problem.message}; {problem.hint}"
        raise ValueError(message)
    return found


def filters_of(filters: Filters) -> dict[str, Any]:
    """Give the fields of a request that reads, the scope among them; all are checked before the scope is.

    TypeError for a name that is no filter.
    """
    unknown = sorted(set(filters) - set(Filters.__annotations__))
    if unknown:
        message = f"{unknown[0]!r} is no filter; there are {', '.join(Filters.__annotations__)}"
        raise TypeError(message)
    given = {name: value for name, value in filters.items() if value is not None}
    found: dict[str, Any] = {name: name_of(name, value) for name, value in given.items() if name in _HINTS}
    tenant = found.pop("tenant", None)
    if "parent" in given:
        found["parent_id"] = _parent(given["parent"])
    found["states"] = states_of(filters.get("state"))
    found["since"] = moment_of("since", filters.get("since"))
    found["until"] = moment_of("until", filters.get("until"))
    return {**found, "scope": scope_for(tenant)}


def scope_of(tenant: object) -> Scope:
    """Give the scope of a call that may name a tenant (S9); an illegal name is refused first."""
    return scope_for(None if tenant is None else name_of("tenant", tenant))


def states_of(state: object) -> frozenset[State]:
    """Read one state or several; none would find nothing."""
    if state is None:
        return frozenset()
    wanted: set[State] = set()
    for one in _several(state):
        if not isinstance(one, str) or one not in set(State):
            shown = repr(one[:_SHOWN]) if isinstance(one, str) else f"a value of type {kind_of(one)}"
            message = f"state: {shown} is no state; use {', '.join(state.value for state in State)}"
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
    """A state is a text as well, and a text is an iterable."""
    if isinstance(state, Iterable) and not isinstance(state, str):
        return list(cast("Iterable[object]", state))
    return [state]
