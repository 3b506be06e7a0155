"""What all requests have in common. Holds no verb."""

from __future__ import annotations

import base64
from typing import Annotated, Final, TypeVar, overload
from uuid import UUID

import msgspec
from msgspec import UnsetType

from fairlane.model.instants import LAST_INSTANT, Instant
from fairlane.model.scope import Scope

P = TypeVar("P", bound=msgspec.Struct)

READ_MOST: Final = 10_000
"""How many rows one reading verb looks at before it answers with a cursor (S51)."""

PAGE_MOST: Final = 1_000
"""How many items one page holds at the most."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Every request says on whose behalf it comes."""

    scope: Scope


def check_serves_all(request: Request) -> None:
    """Raise ValueError if a verb that serves all tenants alike is asked under the scope of one."""
    if request.scope.tenant is not None:
        message = f"claims and passes serve all tenants: use Scope.all(), not {request.scope}"
        raise ValueError(message)


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a reading stopped, in the order newest enqueue first. It never changes for a job."""

    # Cursors come back from outside, so they are held to what a store can compare with.
    enqueued_at: Annotated[Instant, msgspec.Meta(ge=0, le=LAST_INSTANT)]
    id: UUID


def check_instant(name: str, instant: Instant | UnsetType | None) -> None:
    """Raise ValueError for an instant beyond those that every store can keep.

    >>> check_instant("until", 2**53 + 1)
    Traceback (most recent call last):
        ...
    ValueError: until is 9007199254740993; the last instant is 9007199254740992, in 2255
    """
    if isinstance(instant, int) and instant > LAST_INSTANT:
        message = f"{name} is {instant}; the last instant is {LAST_INSTANT}, in 2255"
        raise ValueError(message)


class CountPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a counting stopped, in the order of tenant, queue, and state or review."""

    tenant: str
    queue: str
    word: str


class BookPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a reading of the books stopped, in the order of queue and tenant."""

    queue: str
    tenant: str


def check_page(most: int) -> None:
    """Raise ValueError if more is asked for than a page holds."""
    if most > PAGE_MOST:
        message = f"a page holds at most {PAGE_MOST}, not {most}"
        raise ValueError(message)


def check_reading(most: int) -> None:
    """Raise ValueError if more is to be looked at than one call may, or nothing."""
    if not 1 <= most <= READ_MOST:
        message = f"one call looks at 1 to {READ_MOST} jobs, not at {most}"
        raise ValueError(message)


def to_cursor(place: msgspec.Struct) -> str:
    """Write a place as the opaque text that callers hand back.

    >>> from_cursor(to_cursor(Place(5, UUID(int=7)))) == Place(5, UUID(int=7))
    True
    """
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


@overload
def from_cursor(cursor: str) -> Place: ...
@overload
def from_cursor(cursor: str, kind: type[P]) -> P: ...
def from_cursor(cursor: str, kind: type[msgspec.Struct] = Place) -> msgspec.Struct:
    """Read a cursor; ValueError if it was not made by `to_cursor` from a place of this kind.

    >>> from_cursor("nonsense")
    Traceback (most recent call last):
        ...
    ValueError: 'nonsense' is no cursor; use the one that came with the page before
    """
    try:
        place = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=kind)
        if to_cursor(place) == cursor:
            return place
    except (msgspec.MsgspecError, RecursionError, ValueError):
        pass
    message = f"{cursor[:60]!r} is no cursor; use the one that came with the page before"
    raise ValueError(message)
