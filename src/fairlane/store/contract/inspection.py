"""What a store reports about itself to `doctor`. Nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.policy.pressure import StoreSize
from fairlane.store.contract.request import Request

PARTS_WITHIN: Final[Micros] = SECOND
"""How long a store counts what is in its parts, at most."""

MAX_PARTS: Final = 1_000
"""How many tables or keys an inspection lists at most."""


class InspectRequest(Request, frozen=True, kw_only=True):
    """Ask a store about itself. `at_most` bounds the check of its files for damage; 0: no check.

    `parts` is how many of its largest tables or keys to list; 0: none. Under the scope of one tenant there
    are none: they hold what belongs to all (S95).
    """

    at_most: Micros = 5 * SECOND
    parts: int = 0


class LeadRecord(msgspec.Struct, frozen=True, order=True):
    """The leader of some duties; `until` may have passed."""

    name: str
    worker: str
    until: Instant


class StoredPart(msgspec.Struct, frozen=True, kw_only=True):
    """A table or key of a store: its name and kind, how many entries it has, how many bytes it takes.

    What was not counted in time, or is only estimated by the server and was not yet, is None. `expires_in` is
    when the store removes it by itself; None: never.
    """

    name: str
    kind: str
    entries: int | None
    size: int | None
    expires_in: Micros | None = None


class Remark(msgspec.Struct, frozen=True):
    """A remark of a store about itself: what it checked, how bad it is, what to do about it."""

    check: str
    level: Literal["ok", "warn", "bad"]
    what: str
    advice: str = ""


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in the store's own terms, leaders, and the tasks of unfinished jobs in the scope.

    `first_lease_until` is the end of the lease that ends first. `damage` lists what is wrong with the store's
    files; `is_checked`: the check was completed. `remarks` are specific to the kind of store. `memory`: what
    a server uses, in bytes; `clients`: how many others are connected to it; None where that means nothing.
    `size`: how large the store is, as passes of pruning measure it (S126); None if it does not know.
    `parts` are the largest tables or keys, largest first; unless `are_all_parts`, there are more, or some
    were not looked at.
    """

    settings: Mapping[str, str]
    leads: tuple[LeadRecord, ...]
    tasks: tuple[str, ...]
    first_lease_until: Instant | None
    damage: tuple[str, ...] = ()
    is_checked: bool = True
    remarks: tuple[Remark, ...] = ()
    memory: int | None = None
    clients: int | None = None
    size: StoreSize | None = None
    parts: tuple[StoredPart, ...] = ()
    are_all_parts: bool = True


def largest_parts(parts: Iterable[StoredPart], limit: int) -> tuple[StoredPart, ...]:
    """Return the largest parts, largest first; those of unknown size come last, by name.

    >>> small, large, unknown = (StoredPart(name=n, kind="t", entries=0, size=s) for n, s in
    ...                          (("small", 1), ("large", 9), ("unknown", None)))
    >>> [part.name for part in largest_parts([unknown, small, large], 2)]
    ['large', 'small']
    """
    return tuple(sorted(parts, key=lambda one: (one.size is None, -(one.size or 0), one.name))[:limit])


def wanted_parts(request: InspectRequest) -> int:
    """Return how many parts a request is to get; ValueError if it asks for too many."""
    if not 0 <= request.parts <= MAX_PARTS:
        message = f"one inspection lists at most {MAX_PARTS} parts, not {request.parts}"
        raise ValueError(message)
    return request.parts if request.scope.tenant is None else 0
