"""Encode and decode entries of the journals.

An entry is the instant in 8 bytes, then msgpack. One without a number has one of five forms: an entry that
Python has made, or facts that a script has noted. The text of the latter is made when it is read, by the
same functions of the model that make it in other stores: scripts write no JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.job import AttemptRecord
from fairlane.model.journal.entries import Entry, JournalName, NewEntry, PendingEntry
from fairlane.model.journal.facts import deaths, over_limit
from fairlane.model.journal.operations import Operation, created_entry
from fairlane.model.policy.budget import Account, BudgetRules, alert
from fairlane.store.redis.records.job import ANY, STATES, pack
from fairlane.store.redis.records.layout import lua_format

ENTRY_CONSTANTS: Final = {"ENTRY_FORMAT": lua_format(("s", "bytes"))}
"""The journal, and the packed entry."""

_PLACE_BITS: Final = 20
"""A place is the milliseconds and the number within them of the id in the stream."""

_LAST_PLACE: Final = 2**64 << _PLACE_BITS

_replace = msgspec.structs.replace


class _Made(msgspec.Struct, frozen=True, array_like=True, tag="made"):
    """An entry that Python has made."""

    kind: str
    tenant: str | None
    subject: str
    count: int
    body: bytes


class _Died(msgspec.Struct, frozen=True, array_like=True, tag="died"):
    """Jobs of one tenant, queue, task and fingerprint that died in one script, and one of them."""

    tenant: str
    queue: str
    task: str
    fingerprint: str
    count: int
    job: UUID
    because: str
    error_class: str  # "": none
    created_by: str | None = None


class _OverLimit(msgspec.Struct, frozen=True, array_like=True, tag="over"):
    """Jobs that were stored above the waiting limit of a tenant."""

    tenant: str
    queue: str
    waiting: int
    limit: int
    count: int
    created_by: str | None = None


class _Created(msgspec.Struct, frozen=True, array_like=True, tag="created"):
    """A job that an operation, as JSON, has made."""

    operation: str
    tenant: str
    job: UUID
    state: int
    queue: str
    task: str
    parent: UUID | None = None


class _BudgetAlert(msgspec.Struct, frozen=True, array_like=True, tag="budget"):
    """An account of a budget that has reached a share of its ceiling."""

    budget: str
    tenant: str
    ceiling: int
    currency: str
    starts_at: int
    ends_at: int
    spent: int
    share: int


_Form: TypeAlias = _Made | _Died | _OverLimit | _Created | _BudgetAlert


class _Numbered(msgspec.Struct, frozen=True, array_like=True):
    """An entry with a number."""

    kind: str
    tenant: str | None
    subject: str
    count: int
    body: bytes
    seal: bytes = b""


_read_form = msgspec.msgpack.Decoder(_Form).decode
_read_numbered = msgspec.msgpack.Decoder(_Numbered).decode
_read_operation = msgspec.json.Decoder(Operation).decode


def encode_entries(journal: JournalName, entries: Iterable[NewEntry]) -> bytes:
    """Pack entries as `lib/journal.lua` reads them: one after the other."""
    packed = (pack(_Made(one.kind, one.tenant, one.subject, one.count, one.body)) for one in entries)
    return b"".join(f"{journal}\0".encode() + len(one).to_bytes(4) + one for one in packed)


def encode_operation(operation: Operation | None) -> str:
    """Return an operation as the text that scripts copy into entries; none is empty."""
    return "" if operation is None else msgspec.json.encode(operation).decode()


def read_pending(id: bytes, stored: bytes) -> PendingEntry:
    """Decode an entry without a number, whatever its form."""
    return PendingEntry(_to_place(id), int.from_bytes(stored[:8]), _made(_read_form(stored[8:])))


def encode_numbered(entry: Entry) -> bytes:
    """Encode an entry that has a number; the number is not in it."""
    one = entry.entry
    return entry.at.to_bytes(8) + pack(
        _Numbered(one.kind, one.tenant, one.subject, one.count, one.body, entry.seal)
    )


def read_entry(id: bytes, stored: bytes) -> Entry:
    """Decode an entry that has a number."""
    one = _read_numbered(stored[8:])
    new = NewEntry(kind=one.kind, tenant=one.tenant, subject=one.subject, count=one.count, body=one.body)
    return Entry(int(id.partition(b"-")[0]), int.from_bytes(stored[:8]), new, one.seal)


def _to_place(id: bytes) -> int:
    milliseconds, _, number = id.partition(b"-")
    return int(milliseconds) << _PLACE_BITS | int(number)


def to_stream_id(place: int) -> str:
    """Return the id in the stream of a place; of one that cannot be, an id that no entry has.

    >>> to_stream_id(5 << 20 | 1), to_stream_id(-1)
    ('5-1', '0-0')
    """
    if not 0 <= place < _LAST_PLACE:
        return "0-0"
    return f"{place >> _PLACE_BITS}-{place & (1 << _PLACE_BITS) - 1}"


def _made(form: _Form) -> NewEntry:
    match form:
        case _Made():
            return NewEntry(
                kind=form.kind, tenant=form.tenant, subject=form.subject, count=form.count, body=form.body
            )
        case _Died():
            return _death(form)
        case _OverLimit():
            return over_limit(form.tenant, form.queue, form.waiting, form.limit, form.count, form.created_by)
        case _BudgetAlert():
            rules = BudgetRules(ceiling=form.ceiling, currency=form.currency)
            account = Account(form.starts_at, form.ends_at, form.spent)
            return alert(form.budget, form.tenant, rules, account, form.share)
        case _Created():
            job = _replace(
                ANY,
                id=form.job,
                tenant=form.tenant,
                state=STATES[form.state],
                queue=form.queue,
                task=form.task,
                parent_id=form.parent,
            )
            return created_entry(_read_operation(form.operation), job)


def _death(form: _Died) -> NewEntry:
    failure = None
    if form.error_class:
        failure = Failure(ErrorClass(form.error_class), "", "", fingerprint=form.fingerprint)
    job = _replace(
        ANY,
        id=form.job,
        tenant=form.tenant,
        queue=form.queue,
        task=form.task,
        because=form.because or None,
        created_by=form.created_by,
        attempts=(AttemptRecord(1, "", 0, 0, "failed", failure, None),),
    )
    (entry,) = deaths([job])
    return _replace(entry, count=form.count)
