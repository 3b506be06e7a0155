"""What requests have in common: scope, bounds, cursors. Holds no verb."""

from __future__ import annotations

import base64
from typing import Annotated, Final, TypeVar, overload
from uuid import UUID

import msgspec
from msgspec import UnsetType

from fairlane.model.instants import LAST_INSTANT, Instant
from fairlane.model.journal.operations import Operation
from fairlane.model.scope import Scope

P = TypeVar("P", bound=msgspec.Struct)

MAX_ROWS_READ: Final = 10_000
"""How many rows a reading verb reads before it answers with a cursor (S51)."""

MAX_PAGE_SIZE: Final = 1_000
"""How many items a page holds at most."""

MAX_COUNTS: Final = 10_000
"""How many counts a page of counts holds at most: they are small, and all tenants have some."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Every request has a scope: on whose behalf it is made."""

    scope: Scope


class OperatorRequest(Request, frozen=True, kw_only=True):
    """A change that a person may ask for. With an `operation` it appends to the audit in the same step (S60).

    Nothing is appended for what has not changed.
    """

    operation: Operation | None = None


def check_serves_all(request: Request) -> None:
    """Raise ValueError if a verb that serves all tenants is called under the scope of one."""
    if request.scope.tenant is not None:
        message = f"claims and passes serve all tenants: use Scope.all(), not {request.scope}"
        raise ValueError(message)


class JobPosition(msgspec.Struct, frozen=True, array_like=True):
    """Where a reading stopped, in the order newest enqueue first. A job's position never changes."""

    # Cursors come from outside, so they are validated against what a store can compare.
    enqueued_at: Annotated[Instant, msgspec.Meta(ge=0, le=LAST_INSTANT)]
    id: UUID


def check_instant(name: str, instant: Instant | UnsetType | None) -> None:
    """Raise ValueError for an instant after the last one that every store accepts.

    >>> check_instant("until", 2**53 + 1)
    Traceback (most recent call last):
        ...
    ValueError: until is 9007199254740993; the last instant is 9007199254740992, in 2255
    """
    if isinstance(instant, int) and instant > LAST_INSTANT:
        message = f"{name} is {instant}; the last instant is {LAST_INSTANT}, in 2255"
        raise ValueError(message)


class CountPosition(msgspec.Struct, frozen=True, array_like=True):
    """Where counting stopped, ordered by tenant, queue, and state or review."""

    tenant: str
    queue: str
    label: str


class CounterPosition(msgspec.Struct, frozen=True, array_like=True):
    """Where reading the counters stopped, ordered by queue and tenant."""

    queue: str
    tenant: str


def check_page(limit: int) -> None:
    """Raise ValueError if a page could not hold that many."""
    if limit > MAX_PAGE_SIZE:
        message = f"a page holds at most {MAX_PAGE_SIZE}, not {limit}"
        raise ValueError(message)


def check_counts(limit: int) -> None:
    """Raise ValueError if a page of counts could not hold that many."""
    if limit > MAX_COUNTS:
        message = f"a page of counts holds at most {MAX_COUNTS}, not {limit}"
        raise ValueError(message)


def check_reading(limit: int) -> None:
    """Raise ValueError if a call may not read that many rows, or would read none."""
    if not 1 <= limit <= MAX_ROWS_READ:
        message = f"one call looks at 1 to {MAX_ROWS_READ} jobs, not at {limit}"
        raise ValueError(message)


def to_cursor(position: msgspec.Struct) -> str:
    """Encode a position as the opaque text that callers hand back.

    >>> from_cursor(to_cursor(JobPosition(5, UUID(int=7)))) == JobPosition(5, UUID(int=7))
    True
    """
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


@overload
def from_cursor(cursor: str) -> JobPosition: ...
@overload
def from_cursor(cursor: str, kind: type[P]) -> P: ...
def from_cursor(cursor: str, kind: type[msgspec.Struct] = JobPosition) -> msgspec.Struct:
    """Decode a cursor; ValueError if `to_cursor` did not make it from a position of this type.

    >>> from_cursor("nonsense")
    Traceback (most recent call last):
        ...
    ValueError: 'nonsense' is not a cursor; use the one that came with the page before
    """
    try:
        position = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=kind)
        if to_cursor(position) == cursor:
            return position
    except (msgspec.MsgspecError, RecursionError, ValueError):
        pass
    message = f"{cursor[:60]!r} is not a cursor; use the one that came with the page before"
    raise ValueError(message)
