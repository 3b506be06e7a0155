"""What the doctor finds, as entries of the events (S76): that a problem began, lasts, or has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from fairlane.model.instants import DAY, Instant, Micros
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.kinds import EventKind

TOLD_AGAIN_AFTER: Final[Micros] = DAY
"""A problem that lasts is told again each day, so that it is among the events as long as it lasts."""

_KINDS: Final = {"warn": EventKind.FINDING.value, "bad": EventKind.FINDING_CRITICAL.value}
KINDS_OF_FINDINGS: Final = frozenset({*_KINDS.values(), EventKind.FINDING_ENDED.value})


class DoctorFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem: which check found it, what it is about, and what to do. `level` is `warn` or `bad`."""

    check: str
    subject: str = ""
    level: Literal["warn", "bad"]
    what: str
    advice: str = ""

    @property
    def key(self) -> str:
        """What stays the same while the problem lasts.

        >>> DoctorFinding(check="depth", subject="queue mail", level="warn", what="1,234 jobs are ready").key
        'depth queue mail'
        """
        return f"{self.check} {self.subject}".rstrip()


class Told(msgspec.Struct, frozen=True):
    """A problem that was told and has not ended: with which words, and when last."""

    finding: DoctorFinding
    at: Instant


class News(msgspec.Struct, frozen=True):
    """What is to be told now, and what will have been told then, by key."""

    entries: tuple[NewEntry, ...]
    told: Mapping[str, Told]


def news_of(found: Iterable[DoctorFinding], told: Mapping[str, Told], now: Instant) -> News:
    """Compare what is found with what was told: new, worse or better, a day old, or ended.

    >>> late = DoctorFinding(check="waiting", subject="queue mail", level="warn", what="16m")
    >>> begun = news_of([late], {}, 0)
    >>> [one.kind for one in begun.entries], begun.told["waiting queue mail"].at
    (['finding'], 0)
    >>> news_of([late], begun.told, 60).entries
    ()
    >>> [one.kind for one in news_of([], begun.told, 120).entries]
    ['finding_ended']
    """
    entries: list[NewEntry] = []
    after: dict[str, Told] = {}
    for finding in found:
        before = told.get(finding.key)
        is_same = before is not None and before.finding.level == finding.level
        if is_same and before is not None and now - before.at < TOLD_AGAIN_AFTER:
            after[finding.key] = before
        else:
            after[finding.key] = Told(finding, now)
            entries.append(_entry(_KINDS[finding.level], finding))
    gone = [one.finding for key, one in told.items() if key not in after]
    entries += [_entry(EventKind.FINDING_ENDED.value, finding) for finding in gone]
    return News(tuple(entries), after)


def finding_of(entry: NewEntry) -> DoctorFinding:
    """Return the finding of an entry that `news_of` made.

    >>> late = DoctorFinding(check="waiting", level="warn", what="16m", advice="Add slots.")
    >>> finding_of(news_of([late], {}, 0).entries[0]) == late
    True
    """
    return msgspec.json.decode(entry.body, type=DoctorFinding)


def _entry(kind: str, finding: DoctorFinding) -> NewEntry:
    return NewEntry(kind=kind, subject=finding.key, body=msgspec.json.encode(finding, order="sorted"))
