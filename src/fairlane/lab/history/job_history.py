"""Collect the records of one job: its enqueues, its claims by fence, its ends. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from fairlane.lab.ledger import (
    Acknowledged,
    Attempted,
    ClaimEvent,
    Due,
    Ended,
    Enqueue,
    Fired,
    Found,
    JobEvent,
    Moment,
    Outage,
    Paid,
    Permitted,
    Reclaimed,
    Released,
    Settled,
    Stale,
    Started,
    Withdrawn,
    encode_line,
)
from fairlane.model.lifecycle.states import State, is_finished

FOREVER: Final[Moment] = 1 << 63
"""Later than every moment."""

_NEVER: Final[Moment] = -1 << 63


class RunConditions(msgspec.Struct, frozen=True):
    """What holds for the whole run while its jobs are checked one by one."""

    outages: tuple[Outage, ...]
    is_read: bool
    is_drained: bool

    def may_be_lost(self, at: Moment) -> bool:
        """Whether an outage may have lost what the store accepted at this time, by its stated durability.

        >>> RunConditions((Outage(at=90, until=95, loses=10),), True, False).may_be_lost(80)
        True
        """
        return bool(self.outages) and any(
            one.loses and one.at - one.loses <= at <= one.until for one in self.outages
        )

    def had_outage(self, start: Moment, end: Moment) -> bool:
        """Whether the store was down at some time between the two."""
        return any(one.at <= end and start <= one.until for one in self.outages)


class ClaimHistory(msgspec.Struct):
    """All records under one fence of one job."""

    fence: int
    started: list[Started] = []
    ended: list[Ended] = []
    settled: list[Settled] = []
    reclaimed: list[Reclaimed] = []
    paid: list[Paid] = []
    permits: list[Permitted] = []
    released: list[Released] = []
    next_start_at: Moment = FOREVER
    """When the earliest handler under a later claim of the job started."""

    @property
    def numbered(self) -> list[Started | Ended | Settled]:
        """The records that name the claim's attempt."""
        return [*self.started, *self.ended, *self.settled]

    @property
    def is_unstarted(self) -> bool:
        """Whether the claim went back unstarted: its attempt's number was given back (S68)."""
        return bool(self.settled) and all(one.unstarted and one.state is State.READY for one in self.settled)

    @property
    def numbers(self) -> set[int]:
        """The attempt numbers under this fence; more than one is a violation.

        Without those of a claim that went back unstarted, which are used again.
        """
        return set() if self.is_unstarted else {record.attempt for record in self.numbered}

    @property
    def seen_at(self) -> Moment:
        """The time of the first record that names the attempt."""
        return min(record.at for record in self.numbered)

    @property
    def ends(self) -> list[Settled | Reclaimed]:
        """What the store accepted as this claim's end; more than one is a violation."""
        return [*self.settled, *self.reclaimed]

    @property
    def finishes(self) -> list[Settled | Reclaimed]:
        """The ends after which the job must never run again."""
        return [end for end in self.ends if is_finished(end.state)]

    @property
    def is_stale(self) -> bool:
        """Whether a settlement was accepted after the claim had been reclaimed or replaced.

        A claim cannot be both settled and reclaimed in any order, so this needs no clock. Only a settlement
        that was sent after a later claim's handler had started is told by the clock.
        """
        return bool(self.settled) and (
            bool(self.reclaimed) or max(record.at for record in self.settled) > self.next_start_at
        )


class JobHistory(msgspec.Struct):
    """All records of one job, without what an outage may have undone."""

    job: str
    enqueues: list[Enqueue] = []
    """The enqueues that may have created it: all but repeats."""
    repeats: list[Acknowledged | Fired] = []
    acknowledged: list[Acknowledged | Fired] = []
    """Confirmed enqueues, repeats included, that no outage may have lost."""
    claims: list[ClaimHistory] = []
    """In the order in which the store made them."""
    withdrawn: list[Withdrawn] = []
    found: list[Found] = []
    evidence: list[Acknowledged | Fired | Started | Settled | Reclaimed | Withdrawn] = []
    """Records that prove that the job was in the store, and that no outage may have undone."""
    forgiven: int = 0

    @property
    def exists(self) -> bool:
        """Whether the store certainly had the job, at the end or before."""
        return bool(self.found or self.evidence)

    @property
    def work(self) -> Enqueue | None:
        """The enqueue that names the job's queue, tenant, task and gate."""
        return self.enqueues[0] if self.enqueues else None

    @property
    def starts(self) -> list[ClaimHistory]:
        """The claims whose handler started, in order."""
        return [claim for claim in self.claims if claim.started]

    def held_intervals(self) -> Iterator[tuple[Started, Moment]]:
        """Return each start and until when its claim was certainly held; claims of unknown end are left out.

        A handler that starts after its claim was reclaimed (its worker was suspended) holds nothing.
        """
        for claim in self.starts:
            started = claim.started[0]
            until = self._held_until(claim, started.attempt)
            if until > started.at:
                yield started, until

    def _held_until(self, claim: ClaimHistory, attempt: int) -> Moment:
        if claim.is_stale:
            return _NEVER
        if claim.ends:
            return min(end.at for end in claim.ends)
        match self.found:
            case [Found(state=State.RUNNING) as row] if row.attempt == attempt and claim is self.claims[-1]:
                return FOREVER
            case _:
                return _NEVER


def collect_history(job: str, records: Sequence[JobEvent], conditions: RunConditions) -> JobHistory:
    """Group a job's records; the result does not depend on their order."""
    history = JobHistory(job)
    claims: dict[int, ClaimHistory] = {}
    # Sorted, so that "the first" of several is the same whatever the order of the files.
    for record in sorted(records, key=encode_line):
        match record:
            case Started() | Ended() | Settled() | Reclaimed() | Paid() | Permitted() | Released():
                _add_to_claim(history, claims, record, conditions)
            case Attempted() | Due():
                history.enqueues.append(record)
            case Acknowledged() | Fired():
                _add_acknowledged(history, record, conditions)
            case Found():
                history.found.append(record)
            case Stale():
                pass  # Any number of refusals is fine: also of a repeated settlement that was accepted.
            case _:
                if _is_durable(history, record, conditions):
                    history.withdrawn.append(record)
    history.claims = _in_order(claims.values(), conditions)
    next_start_at = FOREVER
    for claim in reversed(history.claims):
        claim.next_start_at = next_start_at
        next_start_at = min([next_start_at, *(record.at for record in claim.started)])
    return history


def _in_order(claims: Iterable[ClaimHistory], conditions: RunConditions) -> list[ClaimHistory]:
    """Return claims in the order in which the store made them: the order of their fences.

    If the attempt numbers contradict it, the fences did not grow, which is one violation. Ordering by them
    would report more, so the numbers decide, and claims without a number are left out. After an outage the
    numbers may be set back, so the fences decide.
    """
    ordered = sorted(claims, key=lambda claim: claim.fence)
    numbers = [max(claim.numbers) for claim in ordered if claim.numbers]
    if numbers != sorted(numbers) and not conditions.outages:
        return sorted((claim for claim in ordered if claim.numbers), key=lambda claim: max(claim.numbers))
    return ordered


def _add_acknowledged(history: JobHistory, record: Acknowledged | Fired, conditions: RunConditions) -> None:
    # An enqueue that an outage may have lost was still sent; only its promise is void.
    (history.enqueues if record.created else history.repeats).append(record)
    if _is_durable(history, record, conditions):
        history.acknowledged.append(record)


def _add_to_claim(
    history: JobHistory,
    claims: dict[int, ClaimHistory],
    record: ClaimEvent,
    conditions: RunConditions,
) -> None:
    claim = claims.get(record.fence)
    if claim is None:
        claim = claims[record.fence] = ClaimHistory(record.fence)
    match record:
        case Started():
            claim.started.append(record)
            if not conditions.may_be_lost(record.at):
                history.evidence.append(record)
        case Ended():
            claim.ended.append(record)
        case Paid() | Permitted() | Released():
            _add_of_guard(claim, record)
        case Settled():
            if _is_durable(history, record, conditions):
                claim.settled.append(record)
        case _:
            if _is_durable(history, record, conditions):
                claim.reclaimed.append(record)


def _add_of_guard(claim: ClaimHistory, record: Paid | Permitted | Released) -> None:
    match record:
        case Paid():
            claim.paid.append(record)
        case Permitted():
            claim.permits.append(record)
        case _:
            claim.released.append(record)


def _is_durable(
    history: JobHistory,
    record: Acknowledged | Fired | Settled | Reclaimed | Withdrawn,
    conditions: RunConditions,
) -> bool:
    """Whether no outage may have lost what the store accepted here; if so, add it to the evidence."""
    if conditions.may_be_lost(record.at):
        history.forgiven += 1
        return False
    history.evidence.append(record)
    return True
