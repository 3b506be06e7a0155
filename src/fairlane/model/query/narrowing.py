"""Find the part of a query that a store answers itself: what every job that matches must have.

A store compares these while it reads, some of them by an index; the whole query is tested afterwards on each
job that it returns. So narrowing may always leave something out, and never adds anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

import msgspec

from fairlane.model.lifecycle.states import State
from fairlane.model.query.fields import ALIASES
from fairlane.model.query.matching import states_of
from fairlane.model.query.parser import parse
from fairlane.model.query.syntax import AllOf, Node, Term, WrittenValue


class Narrowing(msgspec.Struct, frozen=True, kw_only=True):
    """What all jobs that match have. None, or no state: any. `is_complete`: nothing else is asked for."""

    tenant: str | None = None
    queue: str | None = None
    task: str | None = None
    correlation_id: str | None = None
    created_by: str | None = None
    tag: str | None = None
    parent_id: UUID | None = None
    id: UUID | None = None
    states: frozenset[State] = frozenset()
    is_complete: bool = False


_PLAIN: Final = {
    "tenant": "tenant",
    "queue": "queue",
    "task": "task",
    "corr": "correlation_id",
    "by": "created_by",
    "tag": "tag",
    "parent": "parent_id",
    "id": "id",
}
"""The filters of the store that fields stand for."""


def narrow(text: str) -> Narrowing:
    """Return what every job that matches a query must have.

    >>> found = narrow("state:dead task:send,sort queue:mail -tag:vip")
    >>> found.queue, found.task, found.states == {State.DEAD}, found.is_complete
    ('mail', None, True, False)
    """
    found = Narrowing(is_complete=True)
    for node in _required(parse(text)):
        more = _from_term(node, text) if isinstance(node, Term) else {}
        is_new = all(getattr(found, name) in {None, frozenset()} for name in more)
        if more and is_new:
            found = msgspec.structs.replace(found, **more)
        else:
            found = msgspec.structs.replace(found, is_complete=False)
    return found


def _required(node: Node) -> Iterator[Node]:
    """Return the parts of a query that must all hold."""
    if isinstance(node, AllOf):
        for one in node.nodes:
            yield from _required(one)
    else:
        yield node


def _from_term(term: Term, text: str) -> dict[str, object]:
    name = ALIASES.get(term.field, term.field)
    if name == "state":
        wanted = frozenset[State]().union(*(states_of(value, text) for value in term.values))
        return {"states": wanted}
    if name not in _PLAIN or len(term.values) != 1 or not _is_plain(term.values[0]):
        return {}
    field, (value,) = _PLAIN[name], term.values
    if field not in {"parent_id", "id"}:
        return {field: value.text}
    try:
        found = UUID(value.text)
    except ValueError:
        return {}
    return {field: found} if str(found) == value.text else {}


def _is_plain(value: WrittenValue) -> bool:
    return value.is_quoted or "*" not in value.text
