"""Access: users, tokens, sessions, sign-in links, and how often somebody has tried to sign in (S79-S81)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from fairlane.model.access_records import AccessKey, AccessKind, AccessRecord, AccessRow
from fairlane.model.instants import Instant, Micros
from fairlane.store.contract.request import MAX_PAGE_SIZE, OperatorRequest, Request

MAX_ACCESS_CHANGES: Final = 100
"""How many records one request changes."""


class AccessChange(msgspec.Struct, frozen=True, kw_only=True):
    """Replace a record that has this revision; 0: there must be none. Without a `record` it is removed.

    The new record is kept for `valid_for`, or for good. When it was made and last seen stays.
    """

    key: AccessKey
    revision: int = 0
    record: AccessRecord | None = None
    valid_for: Micros | None = None

    def __post_init__(self) -> None:
        if self.record is not None and self.record.key != self.key:
            message = f"the record of {self.record.key} cannot be kept as {self.key}"
            raise ValueError(message)
        if self.record is None and not self.revision:
            raise ValueError("a record that is not there cannot be removed")


class AccessWriteRequest(OperatorRequest, frozen=True, kw_only=True):
    """Change records, at most `MAX_ACCESS_CHANGES` and each once."""

    changes: tuple[AccessChange, ...]

    def __post_init__(self) -> None:
        if len(self.changes) > MAX_ACCESS_CHANGES:
            message = f"one request changes at most {MAX_ACCESS_CHANGES} records, not {len(self.changes)}"
            raise ValueError(message)
        if len({one.key for one in self.changes}) < len(self.changes):
            raise ValueError("one request changes a record once")


class AccessFindRequest(Request, frozen=True, kw_only=True):
    """Ask for records by their keys."""

    keys: tuple[AccessKey, ...]


class AccessListRequest(Request, frozen=True, kw_only=True):
    """Ask for the records of a kind, by name, after a name; "": from the first."""

    kind: AccessKind
    after: str = ""
    limit: int = MAX_PAGE_SIZE


class AccessReply(msgspec.Struct, frozen=True):
    """Records that are there, and the store's now."""

    rows: tuple[AccessRow, ...]
    now: Instant


class SeenRequest(Request, frozen=True, kw_only=True):
    """Note that these are used."""

    keys: tuple[AccessKey, ...]


class AttemptRequest(Request, frozen=True, kw_only=True):
    """Count an attempt under each label. Each label allows a number of them within a time."""

    most: Mapping[str, int]
    within: Micros


class ForgiveRequest(Request, frozen=True, kw_only=True):
    """Give back one attempt under each label."""

    labels: tuple[str, ...]


class AccessFacet(Protocol):
    """Who may sign in, and who has. Keeps records, decides nothing about a request.

    All verbs serve all tenants: ValueError under the scope of one. What has expired is not there: it is not
    found, not listed and not changed. Only hashes come here, and none is in the audit.
    """

    async def write(self, request: AccessWriteRequest) -> bool:
        """Change records, all in one step, and append what was changed to the audit.

        False, and nothing changes: one of them has another revision. So of two who use a link, or change a
        user, at the same time one has done it and the other is told.
        """

    async def find(self, request: AccessFindRequest) -> AccessReply:
        """Return the records that are there, in the order of the keys; others are left out."""

    async def list(self, request: AccessListRequest) -> AccessReply:
        """Return the next records of a kind. Fewer than `limit` are the last. More than a page: ValueError.

        Not atomic: what changes meanwhile may be missing or old.
        """

    async def note_seen(self, request: SeenRequest) -> None:
        """Note the store's now as the last use, unless one is noted that is younger than `SEEN_EVERY`.

        Changes no revision, and says nothing about records that are not there.
        """

    async def attempt(self, request: AttemptRequest) -> Micros:
        """Count an attempt under every label, and return 0; unless one of them has had its most already.

        Then none is counted, and the reply says how long it is until the count of that label begins anew,
        which is `within` after its first attempt. Atomic: of many at once no more than allowed may be made.
        """

    async def forgive(self, request: ForgiveRequest) -> None:
        """Give back one attempt under each label: it was none of somebody who guesses. Never below zero."""

    async def clean(self, request: Request) -> int:
        """Delete records that have expired and counts whose time is over; return how many records."""
