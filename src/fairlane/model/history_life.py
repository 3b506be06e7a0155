"""Gather what a ledger says about one job: its enqueues, its claims by fence, its ends. Accuses nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from fairlane.model.ledger import (
    Acknowledged,
    Attempted,
    Due,
    Ended,
    Enqueue,
    Fired,
    Found,
    Moment,
    OfJob,
    Outage,
    Reclaimed,
    Settled,
    Stale,
    Started,
    Withdrawn,
    encode_line,
)
from fairlane.model.lifecycle import State, is_finished

FOREVER: Final[Moment] = 1 << 63
"""Later than every moment."""

_NEVER: Final[Moment] = -1 << 63


class Circumstances(msgspec.Struct, frozen=True):
    """What is true of the whole run while its jobs are judged one by one."""

    outages: tuple[Outage, ...]
    is_read: bool
    is_drained: bool

    def may_be_lost(self, at: Moment) -> bool:
        """Whether what was accepted then was still within the stated durability when the store died.

        >>> Circumstances((Outage(at=90, until=95, loses=10),), True, False).may_be_lost(80)
        True
        """
        return bool(self.outages) and any(
            one.loses and one.at - one.loses <= at <= one.until for one in self.outages
        )

    def had_outage(self, start: Moment, end: Moment) -> bool:
        """Whether the store was away at some time between the two."""
        return any(one.at <= end and start <= one.until for one in self.outages)


class Claim(msgspec.Struct):
    """All that was said under one fence of one job."""

    fence: int
    started: list[Started] = []
    ended: list[Ended] = []
    settled: list[Settled] = []
    reclaimed: list[Reclaimed] = []
    next_start_at: Moment = FOREVER
    """When the earliest handler under a later claim of the job started."""

    @property
    def numbered(self) -> list[Started | Ended | Settled]:
        """What names the attempt that the claim was for."""
        return [*self.started, *self.ended, *self.settled]

    @property
    def numbers(self) -> set[int]:
        """The attempt numbers seen under this fence; more than one is a fault."""
        return {said.attempt for said in self.numbered}

    @property
    def seen_at(self) -> Moment:
        """When the claim was first seen to be of an attempt."""
        return min(said.at for said in self.numbered)

    @property
    def ends(self) -> list[Settled | Reclaimed]:
        """What the store accepted as this claim's end; more than one is a fault."""
        return [*self.settled, *self.reclaimed]

    @property
    def finishes(self) -> list[Settled | Reclaimed]:
        """The ends after which the job must never run again."""
        return [end for end in self.ends if is_finished(end.state)]

    @property
    def is_stale(self) -> bool:
        """Whether a settlement was accepted after the claim had been taken back or replaced.

        Nothing can end both ways in either order, so a reclaim needs no clock; a settlement that was sent
        after a handler under a later claim had started does.
        """
        return bool(self.settled) and (
            bool(self.reclaimed) or max(said.at for said in self.settled) > self.next_start_at
        )


class Life(msgspec.Struct):
    """All that was said about one job, less what an outage may have undone."""

    job: str
    enqueues: list[Enqueue] = []
    """Who may have made it: everything but repeats."""
    repeats: list[Acknowledged | Fired] = []
    acknowledged: list[Acknowledged | Fired] = []
    """Confirmed, repeats included, and beyond what an outage may have lost."""
    claims: list[Claim] = []
    """In the order in which the store gave them out."""
    withdrawn: list[Withdrawn] = []
    found: list[Found] = []
    signs: list[Acknowledged | Fired | Started | Settled | Reclaimed | Withdrawn] = []
    """What only a job that is in the store can cause, and no outage can have undone."""
    forgiven: int = 0

    @property
    def exists(self) -> bool:
        """Whether the store certainly had the job, at the end or, if no outage took it, before."""
        return bool(self.found or self.signs)

    @property
    def work(self) -> Enqueue | None:
        """The enqueue that says where the job belongs."""
        return self.enqueues[0] if self.enqueues else None

    @property
    def starts(self) -> list[Claim]:
        """The claims whose handler started, in order."""
        return [claim for claim in self.claims if claim.started]

    def holds(self) -> Iterator[tuple[Started, Moment]]:
        """Give each start and until when its claim was certainly held; a claim of unknown end is left out.

        A handler that starts after its claim was taken back (its worker was paused) holds nothing.
        """
        for claim in self.starts:
            started = claim.started[0]
            until = self._held_until(claim, started.attempt)
            if until > started.at:
                yield started, until

    def _held_until(self, claim: Claim, attempt: int) -> Moment:
        if claim.is_stale:
            return _NEVER
        if claim.ends:
            return min(end.at for end in claim.ends)
        match self.found:
            case [Found(state=State.RUNNING) as row] if row.attempt == attempt and claim is self.claims[-1]:
                return FOREVER
            case _:
                return _NEVER


def gather(job: str, records: Sequence[OfJob], around: Circumstances) -> Life:
    """Sort a job's records by what they speak of; the same for every order of them."""
    life = Life(job)
    claims: dict[int, Claim] = {}
    # From here on "the first" of several means the same whatever order the files were read in.
    for record in sorted(records, key=encode_line):
        match record:
            case Started() | Ended() | Settled() | Reclaimed():
                _add_to_claim(life, claims, record, around)
            case Attempted() | Due():
                life.enqueues.append(record)
            case Acknowledged() | Fired():
                _add_acknowledged(life, record, around)
            case Found():
                life.found.append(record)
            case Stale():
                pass  # Any number of refusals is right: a repeat of a settlement that was accepted, too.
            case _:
                if _stands(life, record, around):
                    life.withdrawn.append(record)
    life.claims = _in_order(claims.values(), around)
    next_start_at = FOREVER
    for claim in reversed(life.claims):
        claim.next_start_at = next_start_at
        next_start_at = min([next_start_at, *(said.at for said in claim.started)])
    return life


def _in_order(claims: Iterable[Claim], around: Circumstances) -> list[Claim]:
    """Put claims into the order in which the store gave them out: that of their fences.

    If the attempt numbers say otherwise, the fences did not grow, which is one fault; to order by them
    would make more of it, and a claim without a number has no place then. An outage may set numbers back,
    so with one the fences are right.
    """
    ordered = sorted(claims, key=lambda claim: claim.fence)
    numbers = [max(claim.numbers) for claim in ordered if claim.numbers]
    if numbers != sorted(numbers) and not around.outages:
        return sorted((claim for claim in ordered if claim.numbers), key=lambda claim: max(claim.numbers))
    return ordered


def _add_acknowledged(life: Life, record: Acknowledged | Fired, around: Circumstances) -> None:
    # What an outage may have lost is still an enqueue that was sent; only the promise is gone.
    (life.enqueues if record.created else life.repeats).append(record)
    if _stands(life, record, around):
        life.acknowledged.append(record)


def _add_to_claim(
    life: Life,
    claims: dict[int, Claim],
    record: Started | Ended | Settled | Reclaimed,
    around: Circumstances,
) -> None:
    claim = claims.get(record.fence)
    if claim is None:
        claim = claims[record.fence] = Claim(record.fence)
    match record:
        case Started():
            claim.started.append(record)
            if not around.may_be_lost(record.at):
                life.signs.append(record)
        case Ended():
            claim.ended.append(record)
        case Settled():
            if _stands(life, record, around):
                claim.settled.append(record)
        case _:
            if _stands(life, record, around):
                claim.reclaimed.append(record)


def _stands(
    life: Life, record: Acknowledged | Fired | Settled | Reclaimed | Withdrawn, around: Circumstances
) -> bool:
    """Whether the store must still know what it accepted here; if so, it is a sign of the job."""
    if around.may_be_lost(record.at):
        life.forgiven += 1
        return False
    life.signs.append(record)
    return True
