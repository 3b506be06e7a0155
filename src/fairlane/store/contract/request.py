"""What all requests have in common. Holds no verb."""

from __future__ import annotations

import base64
from typing import Annotated, Final
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.scope import Scope

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
    enqueued_at: Annotated[Instant, msgspec.Meta(ge=0, le=2**63 - 1)]
    id: UUID


def to_cursor(place: Place) -> str:
    """Write a place as the opaque text that callers hand back.

    >>> from_cursor(to_cursor(Place(5, UUID(int=7)))) == Place(5, UUID(int=7))
    True
    """
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def from_cursor(cursor: str) -> Place:
    """Read a cursor; ValueError if it was not made by `to_cursor`.

    >>> from_cursor("nonsense")
    Traceback (most recent call last):
        ...
    ValueError: 'nonsense' is no cursor; use the one that came with the page before
    """
    try:
        place = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=Place)
        if to_cursor(place) == cursor:
            return place
    except (msgspec.MsgspecError, RecursionError, ValueError):
        pass
    message = f"{cursor[:60]!r} is no cursor; use the one that came with the page before"
    raise ValueError(message)
