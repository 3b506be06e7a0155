"""The audit: who changed what, when and why, and whether the chain of its entries is intact."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from fairlane.app.journals.views import AuditEntry, AuditReport, audit_json
from fairlane.model.access import Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.html.journal_rows import PAGE_SIZE, JournalPageQuery, flat, place_of
from fairlane.web.page import PageGroup, PageView

AUDIT: Final = PageGroup("Audit", section="watch", icon="audit", key="a")

_MOST: Final = 12
"""Changed fields of one entry that are listed; a policy has no more."""


class ChangedField(msgspec.Struct, frozen=True):
    """A field that an action changed, as text; empty where there was or is nothing."""

    name: str
    before: str
    after: str


class AuditRow(msgspec.Struct, frozen=True):
    """An entry as the page shows it: redacted, with what it changed side by side."""

    entry: AuditEntry
    subject: str
    note: str
    place: str
    changes: Sequence[ChangedField]
    facts: Sequence[tuple[str, str]]


class VerifyForm(Body, frozen=True, kw_only=True):
    """What the form sends that verifies the chain: nothing but where it stands."""

    next: str = ""


@AUDIT.page("/audit", "audit.list")
async def list_audit(call: WebCall, query: JournalPageQuery) -> PageView:
    """Show one page of the entries that match, newest first."""
    return await _view(call, query)


@AUDIT.page(
    "/audit/verification",
    "audit.verify",
    least=Role.ADMIN,
    tenants="all",
    method="POST",
    limited=False,
)
async def verify_audit(call: WebCall, query: VerifyForm) -> PageView:  # noqa: ARG001 (it has no more)
    """Read the whole chain and say whether it is intact."""
    try:
        report, problem = await call.app.audit.averify(), ""
    except ValueError as error:  # the key is missing or another one
        report, problem = None, str(error)
    return await _view(call, JournalPageQuery(), report=report, problem=problem)


async def _view(
    call: WebCall, query: JournalPageQuery, *, report: AuditReport | None = None, problem: str = ""
) -> PageView:
    values: dict[str, Any] = {
        "query": query,
        "report": report,
        "problem": problem,
        "link": query.link,
        "export": "",
    }
    try:
        page = await call.app.audit.afind(limit=PAGE_SIZE, cursor=query.cursor, **query.filters())
    except ValueError as error:
        return PageView("audit/list.html", values | {"rows": (), "next": "", "error": str(error)}, 422)
    rows = [_row(entry) for entry in page.items]
    return PageView(
        "audit/list.html",
        values
        | {
            "rows": rows,
            "next": query.link("/audit", cursor=page.cursor) if page.cursor else "",
            "error": "",
            "export": _export(query),
        },
    )


def _export(query: JournalPageQuery) -> str:
    """Return where the entries are that match, as a file."""
    given = {name: one for name, one in query.filters().items() if one}
    values = {name: one.isoformat() if isinstance(one, datetime) else one for name, one in given.items()}
    return f"/api/v1/audit/export?{urlencode(values)}"


def _row(entry: AuditEntry) -> AuditRow:
    shown = audit_json(entry)
    before, after = flat(shown["before"]), flat(shown["after"])
    names = list(dict.fromkeys([*before, *after]))[:_MOST]
    return AuditRow(
        entry=entry,
        subject=shown["subject"],
        note=shown["note"],
        place=place_of(entry.subject),
        changes=[ChangedField(name, before.get(name, ""), after.get(name, "")) for name in names],
        facts=list(flat(shown["details"]).items())[:_MOST],
    )
