"""`/audit`: what operators did. A caller of one tenant sees that tenant's entries (S60)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from starlette.responses import Response

from fairlane.app.journals.views import audit_json, report_json
from fairlane.model.access import Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, EndpointGroup
from fairlane.web.http.download import NDJSON, download

AUDIT: Final = EndpointGroup("audit", "The audit: who did what, when, why, and what it changed.")


class JournalFilter(Body, frozen=True, kw_only=True):
    """Which entries: of these kinds, about this subject, in this time. Times are [since, until)."""

    kind: tuple[str, ...] = ()
    subject: str | None = None
    tenant: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def filters(self) -> dict[str, Any]:
        """Return the filters as `find` takes them: a field that a form leaves empty does not count."""
        return {
            "kind": self.kind or None,
            "subject": self.subject or None,
            "tenant": self.tenant or None,
            "since": self.since,
            "until": self.until,
        }


class JournalQuery(JournalFilter, frozen=True, kw_only=True):
    """The same, page by page."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50
    cursor: str | None = None


class AuditItem(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did. `number` is null until a duty has sealed the entry; secrets are redacted."""

    number: int | None
    at: str
    kind: str
    tenant: str | None
    subject: str
    actor: str
    origin: str
    note: str
    before: dict[str, Any]
    after: dict[str, Any]
    details: dict[str, Any]
    count: int
    is_sealed: bool
    seal: str | None


class AuditPage(msgspec.Struct, frozen=True):
    """One page of entries, newest first. Without a cursor there are no more."""

    items: Sequence[AuditItem]
    cursor: str | None


class AuditFinding(msgspec.Struct, frozen=True):
    """Something that is wrong with the chain, at the number where it was found."""

    number: int
    problem: str


class AuditVerification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the chain is intact, and what is wrong with it. Without a key its seals are checksums."""

    is_intact: bool
    problems: Sequence[AuditFinding]
    first: int
    last: int
    sealed: int
    unsealed: int
    is_keyed: bool
    keyed_from: int


@AUDIT.get("/audit", "audit.find")
async def find(call: WebCall, query: JournalQuery) -> AuditPage:
    """Return one page of the audit, newest first. Entries that are not sealed yet come first."""
    page = await call.app.audit.afind(limit=query.limit, cursor=query.cursor or None, **query.filters())
    return AuditPage(tuple(AuditItem(**audit_json(entry)) for entry in page.items), page.cursor)


@AUDIT.get("/audit/export", "audit.export", produces=NDJSON, limited=False)
async def export(call: WebCall, query: JournalFilter) -> Response:
    """Return all entries that match as JSON lines, oldest first, as a file; last what is not sealed yet."""
    write = partial(call.app.audit.aexport, **query.filters())
    answer, _ = await download(call.request, "audit.jsonl", write)
    return answer


@AUDIT.get("/audit/{number:int}", "audit.get")
async def get(call: WebCall, number: int) -> AuditItem:
    """Return the sealed entry with this number."""
    return AuditItem(**audit_json(await call.app.audit.aget(number)))


@AUDIT.get("/audit/verification", "audit.verify", least=Role.ADMIN, tenants="all")
async def verify(call: WebCall) -> AuditVerification:
    """Read the whole chain, and report entries that were changed, moved or removed."""
    return AuditVerification(**report_json(await call.app.audit.averify()))
