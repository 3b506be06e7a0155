"""Check a ledger: compare the records of a run with each other and with a final reading of the store.

Handlers, clients, workers, duties and the harness write the records (`fairlane.lab.ledger`). A violation is
reported only if records prove it; docs/reference/ledger.md says what proves what, and what cannot be seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import msgspec

from fairlane.lab.history.breakers import BreakerPasses
from fairlane.lab.history.budgets import BudgetUsages
from fairlane.lab.history.groups import JobGroups
from fairlane.lab.history.job_history import ClaimHistory, JobHistory, RunConditions, collect_history
from fairlane.lab.history.limits import LimitUsages
from fairlane.lab.history.rules import RULES
from fairlane.lab.history.suspects import ProcessRuns
from fairlane.lab.history.verdict import (
    LedgerCounts,
    Reruns,
    Verdict,
    Violation,
    ViolationKind,
    make_violation,
    order,
)
from fairlane.lab.ledger import (
    Bound,
    Ceiling,
    Counted,
    Found,
    JobEvent,
    Opened,
    Outage,
    Reading,
    Record,
    Torn,
)
from fairlane.model.lifecycle.states import Event, Home

_REASONS: Final = {Event.RETRY: "retried", Event.SNOOZE: "snoozed", Event.HAND_BACK: "handed_back"}
_COUNTED: Final = ("Started", "Ended", "Settled", "Stale", "Reclaimed", "Found", "Torn")


def check(records: Iterable[Record], *, drained: bool = False, isolated: bool = False) -> Verdict:
    """Check one store's run from its first enqueue to its final reading.

    The order of the records does not matter, neither within a file nor between files: claims are ordered by
    fence and attempt, and only limits, rates, guards, outages and late ends use the recording clock. All
    records are held in memory. With ``drained``, no job may be left delayed, ready or running. With
    ``isolated``, every worker could run suspects in a child process, so none may have run beside another job
    (S39).

    >>> from fairlane.lab.ledger import Acknowledged
    >>> sent = Acknowledged(job="a", tenant="acme", queue="mail", task="send", at=1)
    >>> print(check([sent, Reading(hot=0, history=0, dead=0)]))
    broken 1 times: 2 records of 1 jobs, 1 acknowledged, 0 starts (0 jobs more than once), 0 settled, 0 stale
      lost: job a was acknowledged, and is in no home
    """
    ledger = _group_records(records)
    unread = list(_unread(ledger))
    conditions = RunConditions(tuple(ledger.outages), is_read=not unread, is_drained=drained)
    return _judge(ledger, conditions, unread, isolated=isolated)


class _Ledger(msgspec.Struct):
    """The records of a run, grouped by job and by kind."""

    lines: Counter[str] = msgspec.field(default_factory=Counter[str])
    homes: Counter[Home] = msgspec.field(default_factory=Counter[Home])
    jobs: dict[str, list[JobEvent]] = msgspec.field(default_factory=lambda: defaultdict(list))
    readings: list[Reading] = []
    bounds: list[Bound] = []
    openings: list[Opened] = []
    ceilings: list[Ceiling] = []
    counted: list[Counted] = []
    outages: list[Outage] = []


def _group_records(records: Iterable[Record]) -> _Ledger:
    ledger = _Ledger()
    for record in records:
        ledger.lines[type(record).__name__] += 1
        match record:
            case Reading():
                ledger.readings.append(record)
            case Bound():
                ledger.bounds.append(record)
            case Opened():
                ledger.openings.append(record)
            case Ceiling():
                ledger.ceilings.append(record)
            case Counted():
                ledger.counted.append(record)
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
    """Require a complete final reading: a row missing from it would look like a lost job."""
    if not ledger.readings:
        yield make_violation(
            ViolationKind.UNREAD, "reading", "the ledger has no final reading that reached its end"
        )
        return
    told = {home: sum(getattr(one, home.value) for one in ledger.readings) for home in Home}
    if any(told[home] != ledger.homes[home] for home in Home):
        rows = ", ".join(f"{ledger.homes[home]} of {told[home]} in {home}" for home in Home)
        description = f"the final reading does not have the rows it counted: {rows}"
        yield make_violation(ViolationKind.UNREAD, "reading", description, *ledger.readings)


def _judge(ledger: _Ledger, conditions: RunConditions, unread: list[Violation], *, isolated: bool) -> Verdict:
    usages, groups, runs = LimitUsages(ledger.bounds), JobGroups(), ProcessRuns()
    budgets, passes = BudgetUsages(ledger.ceilings, ledger.counted), BreakerPasses(ledger.openings)
    counts: Counter[str] = Counter({name.lower(): ledger.lines[name] for name in _COUNTED})
    counts.update(records=ledger.lines.total(), jobs=len(ledger.jobs))
    reruns: Counter[str] = Counter()
    violations = unread
    for job, records in ledger.jobs.items():
        history = collect_history(job, records, conditions)
        for rule in RULES:
            violations.extend(rule(history, conditions))
        usages.note(history)
        budgets.note(history)
        passes.note(history, conditions)
        groups.note(history)
        if isolated:
            runs.note(history)
        _count(history, counts, reruns)
    for kept in (usages, budgets, passes):
        violations.extend(kept.violations())
    violations.extend(groups.violations(is_read=conditions.is_read))
    violations.extend(runs.violations())
    return Verdict(LedgerCounts(**counts), Reruns(**reruns), tuple(sorted(violations, key=order)))


def _count(history: JobHistory, counts: Counter[str], reruns: Counter[str]) -> None:
    starts = history.starts
    counts["acknowledged_jobs"] += bool(history.acknowledged)
    counts["unknown_jobs"] += bool(history.enqueues) and not history.exists
    counts["forgiven"] += history.forgiven
    counts["unended"] += sum(not claim.ends for claim in starts)
    reruns["jobs"] += len(starts) > 1
    reruns["overlapped_jobs"] += any(_outlived(claim) for claim in starts)
    for claim, _ in pairwise(starts):
        if not claim.finishes:  # a start after the job's end is a violation, not a rerun
            reruns[_reason(claim)] += 1


def _outlived(claim: ClaimHistory) -> bool:
    return any(record.at > claim.next_start_at for record in claim.ended)


def _reason(claim: ClaimHistory) -> str:
    if claim.reclaimed:
        return "lost"
    return _REASONS.get(claim.settled[0].event, "unexplained") if claim.settled else "unexplained"
