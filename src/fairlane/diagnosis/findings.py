"""The problems that the doctor has found, as the events remember them. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from fairlane.diagnosis.result import CheckResult
from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.findings import KINDS_OF_FINDINGS, DoctorFinding, Told, finding_of
from fairlane.model.journal.kinds import EventKind
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, PendingRequest

MAX_FINDINGS: Final = 1_000
"""How many events of findings are read, the newest."""


class PastFinding(msgspec.Struct, frozen=True):
    """A problem, when it began, when it was last told, and when it ended; None while it lasts."""

    finding: DoctorFinding
    began_at: Instant
    told_at: Instant
    ended_at: Instant | None


def findings_in(results: Iterable[CheckResult]) -> list[DoctorFinding]:
    """Return the problems among the results of checks.

    >>> findings_in([CheckResult("a", "ok", "fine"), CheckResult("b", "bad", "broken", "Mend it.")])[0].check
    'b'
    """
    return [
        DoctorFinding(check=one.check, subject=one.subject, level=one.level, what=one.what, advice=one.advice)
        for one in results
        if one.level != "ok"
    ]


async def past_findings(store: Store) -> list[PastFinding]:
    """Return the problems that the events still have, the newest first; also those without a number yet."""
    lasting: dict[str, PastFinding] = {}
    ended: list[PastFinding] = []
    for at, entry in await _told(store):
        finding = finding_of(entry)
        before = lasting.pop(finding.key, None)
        began_at = at if before is None else before.began_at
        if entry.kind == EventKind.FINDING_ENDED.value:
            told_at = at if before is None else before.told_at
            ended.append(PastFinding(finding, began_at, told_at, at))
        else:
            lasting[finding.key] = PastFinding(finding, began_at, at, None)
    return sorted([*lasting.values(), *ended], key=lambda one: one.told_at, reverse=True)


async def lasting_findings(store: Store) -> dict[str, Told]:
    """Return the problems that have not ended, by key."""
    past = await past_findings(store)
    return {one.finding.key: Told(one.finding, one.told_at) for one in past if one.ended_at is None}


async def _told(store: Store) -> list[tuple[Instant, NewEntry]]:
    """Return the events of findings, oldest first."""
    found: list[tuple[Instant, NewEntry]] = []
    request = EntriesRequest(
        scope=Scope.all(), journal="events", kinds=KINDS_OF_FINDINGS, backwards=True, limit=MAX_ENTRIES
    )
    while len(found) < MAX_FINDINGS:
        page = await store.journal.entries(request)
        found += [(one.at, one.entry) for one in page.entries]
        if page.after is None or page.after == request.after:
            break
        request = msgspec.structs.replace(request, after=page.after)
    found.reverse()
    pending = await store.journal.pending(PendingRequest(scope=Scope.all(), journal="events"))
    waiting = [(one.at, one.entry) for one in pending.entries if one.entry.kind in KINDS_OF_FINDINGS]
    return [*found[-MAX_FINDINGS:], *waiting]
