"""What a store reports about itself to `doctor`. Nothing is decided by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.store.contract.request import Request


class InspectRequest(Request, frozen=True, kw_only=True):
    """Ask a store about itself. `at_most` bounds the check of its files for damage."""

    at_most: Micros = 5 * SECOND


class LeadRecord(msgspec.Struct, frozen=True, order=True):
    """The leader of some duties; `until` may have passed."""

    name: str
    worker: str
    until: Instant


class Remark(msgspec.Struct, frozen=True):
    """A remark of a store about itself: what it checked, how bad it is, what to do about it."""

    check: str
    level: Literal["ok", "warn", "bad"]
    what: str
    advice: str = ""


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in the store's own terms, leaders, and the tasks of unfinished jobs in the scope.

    `first_lease_until` is the end of the lease that ends first. `damage` lists what is wrong with the store's
    files; `is_checked`: the check was completed. `remarks` are specific to the kind of store.
    """

    settings: Mapping[str, str]
    leads: tuple[LeadRecord, ...]
    tasks: tuple[str, ...]
    first_lease_until: Instant | None
    damage: tuple[str, ...] = ()
    is_checked: bool = True
    remarks: tuple[Remark, ...] = ()
