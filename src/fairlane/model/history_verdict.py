"""What the history checker answers: what it counted and every promise it found broken. Judges nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from fairlane.model.ledger import Record, encode_line

SHOWN: Final = 20
"""How many violations `str(verdict)` spells out; the verdict itself holds all of them."""

_LAST: Final = 1 << 63


class Kind(StrEnum):
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
    ILLEGAL_MOVE = "illegal_move"
    LIMIT_EXCEEDED = "limit_exceeded"
    RATE_EXCEEDED = "rate_exceeded"
    WRONG_HOME = "wrong_home"
    MISCOUNTED = "miscounted"
    NOT_DRAINED = "not_drained"
    UNREAD = "unread"


class Violation(msgspec.Struct, frozen=True):
    """One broken promise: of which job, slot, key, batch or limit, in one sentence, with the proof."""

    kind: Kind
    subject: str
    story: str
    records: tuple[Record, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.story}"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much the verdict rests on. Lines, where it does not say jobs or claims."""

    records: int = 0
    torn: int = 0
    jobs: int = 0
    acknowledged_jobs: int = 0
    unknown_jobs: int = 0
    """Attempted, not acknowledged, and nowhere to be seen: their enqueue did not happen."""
    started: int = 0
    ended: int = 0
    settled: int = 0
    stale: int = 0
    reclaimed: int = 0
    found: int = 0
    unended: int = 0
    """Claims that started and whose end nobody recorded: the limits are checked without them."""
    forgiven: int = 0
    """What the store accepted within its stated durability of an outage, and therefore may have lost."""


class Reruns(msgspec.Struct, frozen=True, kw_only=True):
    """Second and later starts, by what ended the start before. At least once allows all of these (S63).

    ``unexplained`` has neither a settlement nor a reclaim before it: their recorder was killed too, or a
    claim was handed out twice. Where every duty lived to write, it must be zero.
    """

    jobs: int = 0
    retried: int = 0
    snoozed: int = 0
    handed_back: int = 0
    lost: int = 0
    unexplained: int = 0
    overlapped_jobs: int = 0
    """Jobs of which two handlers ran at the same time, the older one without a claim."""


class Verdict(msgspec.Struct, frozen=True):
    """What a ledger proves. Equal for the same records in any order."""

    counts: Counts
    reruns: Reruns
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is proved against the run."""
        return not self.violations

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of promise that were broken."""
        return frozenset(violation.kind for violation in self.violations)

    def __str__(self) -> str:
        """Tell people what was found, in bounded space.

        >>> print(Verdict(Counts(records=5, jobs=1), Reruns(), ()))
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


def accuse(kind: Kind, subject: str, story: str, *proof: Record) -> Violation:
    """Make a violation; its proof is put in the order of time, so that equal proofs are equal.

    >>> from fairlane.model.ledger import Stale
    >>> late, early = Stale(job="a", fence=7, at=12), Stale(job="a", fence=7, at=11)
    >>> [record.at for record in accuse(Kind.LOST, "a", "gone", late, early).records]
    [11, 12]
    """
    ordered = sorted(proof, key=lambda record: (getattr(record, "at", _LAST), encode_line(record)))
    return Violation(kind, subject, story, tuple(ordered))


def order(violation: Violation) -> tuple[str, str, str, tuple[bytes, ...]]:
    """Sort violations by kind, then by what they are about; never by where they were found."""
    return violation.kind, violation.subject, violation.story, tuple(map(encode_line, violation.records))
