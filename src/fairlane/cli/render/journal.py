"""Render entries of the journals: as table rows, in full, as lines that are followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from fairlane import AuditEntry, AuditReport, EventView
from fairlane.app.journals.views import audit_json, event_json
from fairlane.app.redaction import REDACTED
from fairlane.cli.render.escaping import cut
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.times import timestamp, timestamp_and_age
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, to_instant

_CELL_CHARS: Final = 160
_MOST_PROBLEMS: Final = 20
_NOT_SEALED: Final = "not sealed"

_ORDER: Final = ("task", "queue", "because", "error_class", "review", "matches", "done", "count", "threshold")
"""What is shown first of the body of an entry: cells are short."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode


def audit_view(now: Instant) -> TableView[AuditEntry]:
    """Return the table of the audit, with times relative to `now`."""
    return TableView(
        {
            "NUMBER": lambda one: _NOT_SEALED if one.number is None else str(one.number),
            "AT": lambda one: ago(to_instant(one.at), now),
            "ACTOR": lambda one: one.actor,
            "DID": lambda one: one.kind if one.count == 1 else f"{one.kind} ×{one.count:,}",
            "SUBJECT": lambda one: REDACTED.text(one.subject),
            "TENANT": lambda one: one.tenant,
            "CHANGE": lambda one: cut(_change(one), _CELL_CHARS),
            "NOTE": lambda one: cut(REDACTED.text(one.note) or "", _CELL_CHARS),
        },
        audit_json,
        stacks=True,
    )


def _change(entry: AuditEntry) -> str:
    """Return what an entry changed, field by field; else what it says besides."""
    before, after = REDACTED.value(dict(entry.before)), REDACTED.value(dict(entry.after))
    names = [*before, *(name for name in after if name not in before)]
    if names:
        return ", ".join(_changed(name, before.get(name), after.get(name)) for name in names)
    details = REDACTED.value(dict(entry.details))
    step = details.pop("step", None)
    details.pop("run", None)
    return f"{step}: {_pairs(details)}" if step is not None else _pairs(details)


def _changed(name: str, before: Any, after: Any) -> str:
    """Return what became of one field. Of arguments only the checksum is in the audit, which says nothing."""
    if name == "checksum":
        return "arguments: changed"
    return f"{name}: {_moment(name, before)} → {_moment(name, after)}"


def _brief(value: Any) -> str:
    """Return a value without braces, and without who and when: the entry has both."""
    if value is None or value == {}:
        return "-"
    if isinstance(value, dict):
        return f"({_pairs(cast('dict[str, Any]', value))})"
    return value if isinstance(value, str) else _encode(value).decode()


def _pairs(values: Mapping[str, Any]) -> str:
    known = [name for name in _ORDER if name in values]
    names = [*known, *(name for name in values if name not in known)]
    return ", ".join(
        f"{name} {_moment(name, values[name])}"
        for name in names
        if values[name] not in (None, "", [], {}) and name not in {"who", "set_at"}
    )


def _moment(name: str, value: Any) -> str:
    is_instant = isinstance(value, int) and (name.endswith("_at") or name == "until")
    return timestamp(value) if is_instant else _brief(value)


def audit_fields(entry: AuditEntry, now: Instant) -> dict[str, Cell]:
    """Return an entry of the audit, for people."""
    shown = audit_json(entry)
    return {
        "number": entry.number,
        "at": timestamp_and_age(to_instant(entry.at), now),
        "actor": entry.actor,
        "from": entry.origin,
        "did": entry.kind,
        "subject": shown["subject"],
        "tenant": entry.tenant,
        "times": entry.count if entry.count > 1 else None,
        "note": shown["note"],
        "before": _lines(shown["before"]),
        "after": _lines(shown["after"]),
        "details": _lines(shown["details"]),
        "seal": entry.seal,
    }


def _lines(values: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {_moment(name, value)}" for name, value in values.items())


def report_text(report: AuditReport) -> str:
    """Return what a verification has found, in words."""
    lines = [f"entry {one.number}: {one.problem}" for one in report.problems[:_MOST_PROBLEMS]]
    if len(report.problems) > _MOST_PROBLEMS:
        lines.append(f"and {len(report.problems) - _MOST_PROBLEMS:,} more")
    found = "is intact" if report.is_intact else f"has {len(report.problems):,} problem(s):"
    span = f", {report.first:,} to {report.last:,}" if report.sealed else ""
    lines.insert(0, f"The audit {found}{'.' if report.is_intact else ''}")
    lines.append(f"{report.sealed:,} sealed entries{span}; {report.unsealed:,} not sealed yet.")
    if not report.is_keyed and report.last:
        lines.append(
            "There is no key, so this is a checksum: it finds accidents, not forgers. Set audit.key."
        )
    elif report.keyed_from > report.first:
        lines.append(f"Entries before {report.keyed_from:,} were sealed without a key.")
    return "\n".join(lines)


def events_view(now: Instant) -> TableView[EventView]:
    """Return the table of events, with times relative to `now`."""
    return TableView(
        {
            "NUMBER": lambda one: str(one.number),
            "AT": lambda one: ago(to_instant(one.at), now),
            "SEVERITY": lambda one: one.severity,
            "KIND": lambda one: one.kind,
            "COUNT": lambda one: one.count,
            "TENANT": lambda one: one.tenant,
            "SUBJECT": lambda one: REDACTED.text(one.subject),
            "ABOUT": lambda one: cut(_about(event_json(one)), _CELL_CHARS),
        },
        event_json,
        stacks=True,
    )


def _about(event: Mapping[str, Any]) -> str:
    """Return what an event says: in words, or as names and values."""
    text: str = event["text"]
    return text or _pairs(event["body"])


def event_line(event: EventView) -> str:
    """Return an event on one line, for following."""
    shown = event_json(event)
    often = f" ×{event.count:,}" if event.count > 1 else ""
    whose = f" {event.tenant}" if event.tenant is not None else ""
    parts = f"{event.number} {event.severity} {event.kind}{often}{whose} {shown['subject']}".rstrip()
    about = _about(shown)
    return f"{timestamp(to_instant(event.at))}  {parts}" + (f"  ({about})" if about else "")
