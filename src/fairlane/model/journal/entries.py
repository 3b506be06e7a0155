"""Entries of a journal: as appended, as waiting for a number, as numbered. They decide nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlane.model.instants import Instant

JournalName: TypeAlias = Literal["audit", "events"]


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a step appends. `body` is a JSON object without secrets and without payloads.

    `tenant` is None if the entry concerns all tenants: no tenant sees it then. `subject` says what it is
    about: a job's id, `queue bulk`, the fingerprint of a failure. `count` is how many times it happened in
    this step.
    """

    kind: str
    tenant: str | None = None
    subject: str = ""
    count: int = 1
    body: bytes = b"{}"


class PendingEntry(msgspec.Struct, frozen=True):
    """An entry without a number. Its place identifies it; the store's clock set its instant."""

    place: int
    at: Instant
    entry: NewEntry


class Entry(msgspec.Struct, frozen=True):
    """An entry of a journal. Numbers begin at 1 and have no gaps; `seal` is empty for events."""

    number: int
    at: Instant
    entry: NewEntry
    seal: bytes = b""
