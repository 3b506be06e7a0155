"""The result of the history checker: what it counted, and every violation. Judges nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from fairlane.lab.ledger import Record, encode_line

SHOWN: Final = 20
"""How many violations `str(verdict)` shows; the verdict itself has all of them."""

_LAST: Final = 1 << 63


class ViolationKind(StrEnum):
    """Which promise was broken. Closed; docs/reference/ledger.md says what proves each."""

    LOST = "lost"
    DOUBLED_HOME = "doubled_home"
    UNEXPECTED = "unexpected"
    CREATED_TWICE = "created_twice"
    KEY_DOUBLED = "key_doubled"
    TORN_BATCH = "torn_batch"
    TENANT_CROSSED = "tenant_crossed"
    SLOT_DOUBLED = "slot_doubled"
    SLOT_MISSED = "slot_missed"
    FENCE_REUSED = "fence_reused"
    ATTEMPT_REUSED = "attempt_reused"
    TWO_LIVE_CLAIMS = "two_live_claims"
    STALE_ACCEPTED = "stale_accepted"
    SETTLED_TWICE = "settled_twice"
    RAN_AGAIN = "ran_again"
    NEVER_RAN = "never_ran"
    FALSE_SUCCESS = "false_success"
    RAN_UNSTARTED = "ran_unstarted"
    ILLEGAL_MOVE = "illegal_move"
    LIMIT_EXCEEDED = "limit_exceeded"
    RATE_EXCEEDED = "rate_exceeded"
    CEILING_EXCEEDED = "ceiling_exceeded"
    SPEND_DOUBLED = "spend_doubled"
    SPEND_LOST = "spend_lost"
    PASSED_OPEN = "passed_open"
    PROBE_DOUBLED = "probe_doubled"
    WRONG_HOME = "wrong_home"
    MISCOUNTED = "miscounted"
    CONDEMNED = "condemned"
    NOT_ALONE = "not_alone"
    NOT_DRAINED = "not_drained"
    UNREAD = "unread"


class Violation(msgspec.Struct, frozen=True):
    """One broken promise: its kind, the job, slot, key, batch, limit or guard, a sentence, and the proof."""

    kind: ViolationKind
    subject: str
    description: str
    records: tuple[Record, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.description}"


class LedgerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much the verdict is based on: lines, unless the name says jobs or claims."""

    records: int = 0
    torn: int = 0
    jobs: int = 0
    acknowledged_jobs: int = 0
    unknown_jobs: int = 0
    """Attempted, not acknowledged, and never seen: their enqueue did not happen."""
    started: int = 0
    ended: int = 0
    settled: int = 0
    stale: int = 0
    reclaimed: int = 0
    found: int = 0
    unended: int = 0
    """Claims that started and have no recorded end: limits are checked without them."""
    forgiven: int = 0
    """What the store accepted shortly before an outage, and may have lost by its stated durability."""


class Reruns(msgspec.Struct, frozen=True, kw_only=True):
    """Second and later starts, by what ended the start before. "At least once" allows all of these (S63).

    ``unexplained`` has neither a settlement nor a reclaim before it: its recorder was killed too, or a claim
    was made twice. If no recorder was killed, it must be zero.
    """

    jobs: int = 0
    retried: int = 0
    snoozed: int = 0
    handed_back: int = 0
    lost: int = 0
    unexplained: int = 0
    overlapped_jobs: int = 0
    """Jobs with two handlers at the same time, the older one without a claim."""


class Verdict(msgspec.Struct, frozen=True):
    """What a ledger proves. Equal for the same records in any order."""

    counts: LedgerCounts
    reruns: Reruns
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """Whether no violation was found."""
        return not self.violations

    @property
    def kinds(self) -> frozenset[ViolationKind]:
        """The kinds of the violations."""
        return frozenset(violation.kind for violation in self.violations)

    def __str__(self) -> str:
        """Describe the verdict for people, in bounded space.

        >>> print(Verdict(LedgerCounts(records=5, jobs=1), Reruns(), ()))
        kept: 5 records of 1 jobs, 0 acknowledged, 0 starts (0 jobs more than once), 0 settled, 0 stale
        """
        counted = (
            f"{self.counts.records} records of {self.counts.jobs} jobs, {self.counts.acknowledged_jobs} "
            f"acknowledged, {self.counts.started} starts ({self.reruns.jobs} jobs more than once), "
            f"{self.counts.settled} settled, {self.counts.stale} stale"
        )
        if self.ok:
            return f"kept: {counted}"
        shown = [f"  {violation}" for violation in self.violations[:SHOWN]]
        if len(self.violations) > SHOWN:
            shown.append(f"  and {len(self.violations) - SHOWN} more")
        return "\n".join([f"broken {len(self.violations)} times: {counted}", *shown])


def make_violation(kind: ViolationKind, subject: str, description: str, *proof: Record) -> Violation:
    """Make a violation; its proof is sorted by time, so that equal proofs compare equal.

    >>> from fairlane.lab.ledger import Stale
    >>> late, early = Stale(job="a", fence=7, at=12), Stale(job="a", fence=7, at=11)
    >>> [record.at for record in make_violation(ViolationKind.LOST, "a", "gone", late, early).records]
    [11, 12]
    """
    ordered = sorted(proof, key=lambda record: (getattr(record, "at", _LAST), encode_line(record)))
    return Violation(kind, subject, description, tuple(ordered))


def order(violation: Violation) -> tuple[str, str, str, tuple[bytes, ...]]:
    """Sort key: by kind, then by subject; never by where a violation was found."""
    return (
        violation.kind,
        violation.subject,
        violation.description,
        tuple(map(encode_line, violation.records)),
    )
