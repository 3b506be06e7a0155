"""Entries of the journals as users see them. Asks no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from fairlane.app.redaction import REDACTED, Redactor
from fairlane.model.instants import Instant, iso, to_datetime
from fairlane.model.journal.entries import Entry, NewEntry, PendingEntry
from fairlane.model.journal.event_text import event_text
from fairlane.model.journal.kinds import Addressee, Severity, addressee_of, severity_of

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """What somebody did: the kind of action, to what, from where and why, and what it changed.

    `number` is None until a duty has sealed the entry. `tenant` is None if it concerns all tenants. `before`
    and `after` have what changed, `details` what the action says besides: a filter, a result. `count` is how
    often it happened; more than 1 only for refusals.
    """

    number: int | None
    at: datetime
    kind: str
    tenant: str | None
    subject: str
    actor: str
    origin: str
    # Free texts may quote secrets (S6), and a repr ends up in logs.
    note: str = field(repr=False)
    before: Mapping[str, Any] = field(repr=False)
    after: Mapping[str, Any] = field(repr=False)
    details: Mapping[str, Any] = field(repr=False)
    count: int
    seal: str = field(repr=False)

    @property
    def is_sealed(self) -> bool:
        """Whether the entry is part of the chain; if not, a duty will add it within seconds."""
        return self.number is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditProblem:
    """Something that is wrong with the chain, at the number where it was found."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What `app.audit.verify` has found.

    `first` and `last` are the numbers of the oldest and newest sealed entry that should be stored, 0 without
    any; `sealed` were read, `unsealed` wait for a duty. If `is_keyed`, entries from `keyed_from` on are
    sealed under the key; without it the seals are checksums, which anybody can make.
    """

    problems: Sequence[AuditProblem]
    first: int
    last: int
    sealed: int
    unsealed: int
    is_keyed: bool
    keyed_from: int

    @property
    def is_intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """Something that happened. Numbers grow by one.

    `tenant` is None if it concerns all tenants. `subject` says what it is about, such as the fingerprint of a
    failure, and `count` how often it happened. `addressee` is whom it is for: operators, or the creator of
    the job. `body` has facts for programs, by kind; `text` says them in words where they are amounts of money
    or instants, else it is empty.
    """

    number: int
    at: datetime
    kind: str
    severity: Severity
    addressee: Addressee
    tenant: str | None
    subject: str
    count: int
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        """What the body says, for people; empty if it can be read as it is."""
        return event_text(self.kind, self.body)


def audit_entry(at: Instant, entry: NewEntry, number: int | None, seal: bytes) -> AuditEntry:
    """Return an entry of the audit."""
    body = _decode(entry.body)
    return AuditEntry(
        number=number,
        at=to_datetime(at),
        kind=entry.kind,
        tenant=entry.tenant,
        subject=entry.subject,
        actor=str(body.get("actor", "")),
        origin=str(body.get("origin", "")),
        note=str(body.get("note", "")),
        before=body.get("before", {}),
        after=body.get("after", {}),
        details=body.get("details", {}),
        count=entry.count,
        seal=seal.hex(),
    )


def sealed_view(one: Entry) -> AuditEntry:
    """Return a sealed entry of the audit."""
    return audit_entry(one.at, one.entry, one.number, one.seal)


def pending_view(one: PendingEntry) -> AuditEntry:
    """Return an entry of the audit that a duty has not sealed yet."""
    return audit_entry(one.at, one.entry, None, b"")


def event_view(one: Entry) -> EventView:
    """Return an event."""
    entry = one.entry
    return EventView(
        number=one.number,
        at=to_datetime(one.at),
        kind=entry.kind,
        severity=severity_of(entry.kind),
        addressee=addressee_of(entry.kind),
        tenant=entry.tenant,
        subject=entry.subject,
        count=entry.count,
        body=_decode(entry.body),
    )


def audit_json(entry: AuditEntry, redactor: Redactor = REDACTED) -> dict[str, Any]:
    """Return an entry of the audit, for programs."""
    return {
        "number": entry.number,
        "at": iso(entry.at),
        "kind": entry.kind,
        "tenant": entry.tenant,
        "subject": redactor.text(entry.subject),
        "actor": entry.actor,
        "origin": entry.origin,
        "note": redactor.text(entry.note),
        "before": redactor.value(dict(entry.before)),
        "after": redactor.value(dict(entry.after)),
        "details": redactor.value(dict(entry.details)),
        "count": entry.count,
        "is_sealed": entry.is_sealed,
        "seal": entry.seal or None,
    }


def report_json(report: AuditReport) -> dict[str, Any]:
    """Return what a verification has found, for programs."""
    return {
        "is_intact": report.is_intact,
        "problems": [{"number": one.number, "problem": one.problem} for one in report.problems],
        "first": report.first,
        "last": report.last,
        "sealed": report.sealed,
        "unsealed": report.unsealed,
        "is_keyed": report.is_keyed,
        "keyed_from": report.keyed_from,
    }


def event_json(event: EventView) -> dict[str, Any]:
    """Return an event, for programs."""
    return {
        "number": event.number,
        "at": iso(event.at),
        "kind": event.kind,
        "severity": event.severity,
        "addressee": event.addressee,
        "tenant": event.tenant,
        "subject": REDACTED.text(event.subject),
        "count": event.count,
        "text": REDACTED.text(event.text),
        "body": REDACTED.value(dict(event.body)),
    }
