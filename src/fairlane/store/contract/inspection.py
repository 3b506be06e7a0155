"""What a store says of itself when a person looks into it. For `doctor`; nothing decides by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.store.contract.request import Request


class InspectRequest(Request, frozen=True, kw_only=True):
    """Ask a store about itself. Checking its files for damage may take at most so long."""

    at_most: Micros = 5 * SECOND


class Lead(msgspec.Struct, frozen=True, order=True):
    """Who leads some duties, and until when; it may be over by now."""

    name: str
    worker: str
    until: Instant


class Remark(msgspec.Struct, frozen=True):
    """Something that a store has to say of itself: what it looked at, how bad it is, what to do about it."""

    check: str
    level: Literal["ok", "warn", "bad"]
    what: str
    advice: str = ""


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in the store's own words, leads, and what the scope's unfinished jobs need.

    `tasks` are those of unfinished jobs, by name. `first_lease_until` is that of the claim whose lease ends
    first. `damage` lists what is wrong with the store's files; `is_checked` says that the check has ended.
    `remarks` are what only a store of this kind can tell.
    """

    settings: Mapping[str, str]
    leads: tuple[Lead, ...]
    tasks: tuple[str, ...]
    first_lease_until: Instant | None
    damage: tuple[str, ...] = ()
    is_checked: bool = True
    remarks: tuple[Remark, ...] = ()
