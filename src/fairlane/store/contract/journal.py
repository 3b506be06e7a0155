"""The journals: what operators did (`audit`) and what happened (`events`) (S60, S76)."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from fairlane.model.errors import InsideTenant, TenantMismatch
from fairlane.model.instants import Instant
from fairlane.model.journal.entries import Entry, JournalName, NewEntry, PendingEntry
from fairlane.store.contract.request import Request

MAX_ENTRIES: Final = 1_000
"""How many entries a request or a page holds."""


class AppendRequest(Request, frozen=True, kw_only=True):
    """Append entries that no other verb appends. Under the scope of a tenant they are that tenant's."""

    journal: JournalName
    entries: tuple[NewEntry, ...]


def check_append(request: AppendRequest) -> None:
    """Raise if there are too many entries, or one is not of the scope's tenant."""
    if len(request.entries) > MAX_ENTRIES:
        message = f"one request appends at most {MAX_ENTRIES} entries, not {len(request.entries)}"
        raise ValueError(message)
    mine = request.scope.tenant
    for entry in request.entries:
        if mine is not None and entry.tenant is None:
            raise InsideTenant("an entry without a tenant belongs to all tenants", mine)
        if mine is not None and entry.tenant != mine:
            raise TenantMismatch(str(entry.tenant), mine)


class PendingRequest(Request, frozen=True, kw_only=True):
    """Ask for entries without a number, and for the end of the journal."""

    journal: JournalName
    limit: int = MAX_ENTRIES


class JournalEnd(msgspec.Struct, frozen=True):
    """Where a journal ends, and what its duty remembers.

    `revision` rises with every `number` and `trim`. `first` is the number of the oldest entry that is
    stored, 0 if none is; `last` that of the newest one ever, stored or not, 0 in a new journal. `memory` is
    the duty's own: folds, cursors of subscribers, the last seal, the checkpoint.
    """

    revision: int = 0
    first: int = 0
    last: int = 0
    memory: bytes = b""


class PendingReply(msgspec.Struct, frozen=True):
    """Entries without a number in the order of their numbering, the end, and the store's now."""

    entries: tuple[PendingEntry, ...]
    end: JournalEnd
    now: Instant


class NumberRequest(Request, frozen=True, kw_only=True):
    """Replace pending entries by numbered ones, unless the journal has changed since `revision`.

    Numbers continue at `last + 1` without a gap; ValueError otherwise. With nothing taken and no entries
    only the memory changes. `taken` are places of pending entries; one place twice is an error of the caller,
    answered as if somebody else had taken it.
    """

    journal: JournalName
    revision: int
    taken: tuple[int, ...]
    entries: tuple[Entry, ...]
    memory: bytes


def check_numbers(request: NumberRequest, last: int) -> None:
    """Raise ValueError unless the numbers continue after the last one of the journal, without a gap."""
    for number, entry in enumerate(request.entries, last + 1):
        if entry.number != number:
            message = f"the next entry has the number {number}, not {entry.number}"
            raise ValueError(message)


class TrimRequest(Request, frozen=True, kw_only=True):
    """Delete the numbered entries up to this number, at most `limit`, unless the journal has changed."""

    journal: JournalName
    revision: int
    up_to: int
    memory: bytes
    limit: int = MAX_ENTRIES


def check_trim(request: TrimRequest, last: int) -> None:
    """Raise ValueError if the journal has no entry with that number yet."""
    if request.up_to > last:
        message = f"the journal ends at {last}; {request.up_to} entries cannot be deleted"
        raise ValueError(message)


class EntriesRequest(Request, frozen=True, kw_only=True):
    """Ask for numbered entries, all filters holding. Times are of the entry: [since, until).

    Without `backwards`: from `after` on, exclusive, oldest first. With it: before `after`, exclusive, newest
    first; an `after` of 0 then means from the end.
    """

    journal: JournalName
    after: int = 0
    backwards: bool = False
    kinds: frozenset[str] = frozenset()
    subject: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: int = 100


class EntryPage(msgspec.Struct, frozen=True):
    """A page of entries; it may be short or empty although `after` says where to continue. None: the end.

    Reading forwards, `after` is also the place for the next look, so it is None only in a journal that never
    had an entry; a page that ends where it began is the end. It never goes back.
    """

    entries: tuple[Entry, ...]
    after: int | None


class JournalFacet(Protocol):
    """Append to the journals, number what was appended, read and trim. Decides nothing.

    Every other verb that an operator calls with an `operation`, and every verb that makes an event, appends
    its entries in its own step (S60, S76); it needs no verb here. `pending` with a limit of 0 only returns
    the end. `number` and `trim` serve all tenants: ValueError under the scope of one.
    """

    async def append(self, request: AppendRequest) -> None:
        """Append entries, all or none. An entry of another tenant than the scope's raises `TenantMismatch`.

        So does an entry without a tenant under the scope of one. More than `MAX_ENTRIES` raise ValueError.
        Nobody waits for another who appends, nor for a duty.
        """

    async def pending(self, request: PendingRequest) -> PendingReply:
        """Return entries without a number that are committed, oldest first, and the end of the journal.

        An entry that was begun earlier but committed later may come in a later reply. Under the scope of a
        tenant only its entries are returned, and no memory. A limit above `MAX_ENTRIES` raises ValueError.
        """

    async def number(self, request: NumberRequest) -> bool:
        """Replace pending entries by numbered ones, and the memory, in one step.

        False, and nothing changes: the journal has another revision, or an entry is pending no longer. The
        revision is compared first: numbers are only wrong where the journal is the one that the caller saw.
        """

    async def entries(self, request: EntriesRequest) -> EntryPage:
        """Return numbered entries, of at most `MAX_ROWS_READ` read; those of the scope's tenant, or all.

        A limit above `MAX_ENTRIES` raises ValueError.
        """

    async def trim(self, request: TrimRequest) -> bool:
        """Delete the oldest numbered entries, at most `limit`, and replace the memory, in one step.

        False, and nothing changes: the journal has another revision. Otherwise an `up_to` above `last` raises
        ValueError.
        """
