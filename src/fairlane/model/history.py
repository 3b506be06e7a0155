"""Decide from an outside record alone whether a run kept Fairlane's promises. Asks no store anything.

A checker for campaigns, the demo and benchmarks: what handlers, enqueuers, workers, duties and the harness
wrote down (`fairlane.model.ledger`) is compared with itself and with a final reading of the store's homes.
It accuses only where records prove it; docs/reference/ledger.md says what proves what, and what nobody
can see.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import msgspec

from fairlane.model.history_groups import Groups
from fairlane.model.history_life import Circumstances, Claim, Life, gather
from fairlane.model.history_limits import Watches
from fairlane.model.history_rules import RULES
from fairlane.model.history_verdict import Counts, Kind, Reruns, Verdict, Violation, accuse, order
from fairlane.model.ledger import Bound, Found, OfJob, Outage, Reading, Record, Torn
from fairlane.model.lifecycle import Event, Home

__all__ = ["Counts", "Kind", "Reruns", "Verdict", "Violation", "check"]

_REASONS: Final = {Event.RETRY: "retried", Event.SNOOZE: "snoozed", Event.HAND_BACK: "handed_back"}
_COUNTED: Final = ("Started", "Ended", "Settled", "Stale", "Reclaimed", "Found", "Torn")


def check(records: Iterable[Record], *, drained: bool = False) -> Verdict:
    """Judge one store's run from its first enqueue to its final reading.

    The order of the records does not matter, neither within a file nor between files: claims are ordered by
    fence and attempt, and only limits, rates, outages and late ends are told by the recording clock. One
    pass over the records, which are kept, then one over the jobs: memory grows with the jobs and their
    attempts. With ``drained``, nothing may be left delayed, ready or running.

    >>> from fairlane.model.ledger import Acknowledged
    >>> sent = Acknowledged(job="a", tenant="acme", queue="mail", task="send", at=1)
    >>> print(check([sent, Reading(hot=0, history=0, dead=0)]))
    broken 1 times: 2 records of 1 jobs, 1 acknowledged, 0 starts (0 jobs more than once), 0 settled, 0 stale
      lost: job a was acknowledged, and is in no home
    """
    ledger = _sort_out(records)
    unread = list(_unread(ledger))
    around = Circumstances(tuple(ledger.outages), is_read=not unread, is_drained=drained)
    return _judge(ledger, around, unread)


class _Ledger(msgspec.Struct):
    """The records of a run by what they speak of."""

    lines: Counter[str] = msgspec.field(default_factory=Counter[str])
    homes: Counter[Home] = msgspec.field(default_factory=Counter[Home])
    jobs: dict[str, list[OfJob]] = msgspec.field(default_factory=lambda: defaultdict(list))
    readings: list[Reading] = []
    bounds: list[Bound] = []
    outages: list[Outage] = []


def _sort_out(records: Iterable[Record]) -> _Ledger:
    ledger = _Ledger()
    for record in records:
        ledger.lines[type(record).__name__] += 1
        match record:
            case Reading():
                ledger.readings.append(record)
            case Bound():
                ledger.bounds.append(record)
            case Outage():
                ledger.outages.append(record)
            case Torn():
                pass  # counted above; it proves nothing
            case Found():
                ledger.homes[record.home] += 1
                ledger.jobs[record.job].append(record)
            case _:
                ledger.jobs[record.job].append(record)
    return ledger


def _unread(ledger: _Ledger) -> Iterator[Violation]:
    """Ask for a whole final reading: a row that is missing in it would look like a lost job."""
    if not ledger.readings:
        yield accuse(Kind.UNREAD, "reading", "the ledger has no final reading that reached its end")
        return
    told = {home: sum(getattr(one, home.value) for one in ledger.readings) for home in Home}
    if any(told[home] != ledger.homes[home] for home in Home):
        rows = ", ".join(f"{ledger.homes[home]} of {told[home]} in {home}" for home in Home)
        story = f"the final reading has not the rows it counted: {rows}"
        yield accuse(Kind.UNREAD, "reading", story, *ledger.readings)


def _judge(ledger: _Ledger, around: Circumstances, unread: list[Violation]) -> Verdict:
    watches, groups = Watches(ledger.bounds), Groups()
    counts: Counter[str] = Counter({name.lower(): ledger.lines[name] for name in _COUNTED})
    counts.update(records=ledger.lines.total(), jobs=len(ledger.jobs))
    reruns: Counter[str] = Counter()
    violations = unread
    for job, records in ledger.jobs.items():
        life = gather(job, records, around)
        for rule in RULES:
            violations.extend(rule(life, around))
        watches.note(life)
        groups.note(life)
        _count(life, counts, reruns)
    violations.extend(watches.violations())
    violations.extend(groups.violations(is_read=around.is_read))
    return Verdict(Counts(**counts), Reruns(**reruns), tuple(sorted(violations, key=order)))


def _count(life: Life, counts: Counter[str], reruns: Counter[str]) -> None:
    starts = life.starts
    counts["acknowledged_jobs"] += bool(life.acknowledged)
    counts["unknown_jobs"] += bool(life.enqueues) and not life.exists
    counts["forgiven"] += life.forgiven
    counts["unended"] += sum(not claim.ends for claim in starts)
    reruns["jobs"] += len(starts) > 1
    reruns["overlapped_jobs"] += any(_outlived(claim) for claim in starts)
    for claim, _ in pairwise(starts):
        if not claim.finishes:  # running on after an end is no rerun but a violation
            reruns[_reason(claim)] += 1


def _outlived(claim: Claim) -> bool:
    return any(said.at > claim.next_start_at for said in claim.ended)


def _reason(claim: Claim) -> str:
    if claim.reclaimed:
        return "lost"
    return _REASONS.get(claim.settled[0].event, "unexplained") if claim.settled else "unexplained"
