"""Compute each tenant's share of the service from the times of its jobs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlane.lab.ledger import Moment
from fairlane.lab.workload.stats import Interval, JobTimes
from fairlane.model.instants import Micros

WINDOW: Final = 1_000
"""The number of consecutive dispatches over which shares are compared."""

_TOLERANCE: Final = 0.02


def contest_end(spans: Iterable[Interval]) -> int:
    """Return until when all tenants had jobs waiting: the last start of the one that ran out first.

    >>> contest_end([Interval("a", 5, 6), Interval("a", 9, 10), Interval("b", 6, 7)])
    6
    """
    last: dict[str, int] = {}
    for span in spans:
        last[span.tenant] = max(last.get(span.tenant, 0), span.start)
    return min(last.values(), default=0)


def dispatches(spans: Iterable[Interval], until: int) -> list[str]:
    """Return the tenants in the order in which their jobs started, up to `until`.

    >>> dispatches([Interval("a", 5, 6), Interval("b", 4, 5), Interval("a", 9, 10)], until=6)
    ['b', 'a']
    """
    return [tenant for start, tenant in sorted((one.start, one.tenant) for one in spans) if start <= until]


def share_error(turns: Sequence[str], weights: Mapping[str, float], window: int = WINDOW) -> float:
    """Return the largest difference between a tenant's share and its due share, in any whole window.

    With fewer turns than a window, all turns are the window. 1 if there were none.

    >>> share_error(["a", "b", "b", "b"], {"a": 1, "b": 1})
    0.25
    """
    if not turns:
        return 1
    total = sum(weights.values())
    size = min(window, len(turns))
    worst = 0.0
    for start in range(0, len(turns) - size + 1, size):
        got = Counter(turns[start : start + size])
        worst = max(worst, *(abs(got[name] / size - due / total) for name, due in weights.items()))
    return worst


def jain(amounts: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 if all got the same, 1/n if one got everything; 0 of nothing.

    >>> jain([3, 3, 3]), jain([4, 0, 0, 0]), jain([])
    (1.0, 0.25, 0)
    """
    squares = sum(amount * amount for amount in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else 0


def busy(spans: Iterable[Interval], until: int) -> dict[str, Micros]:
    """Return the total duration of each tenant's intervals, up to `until`.

    >>> times = (("a", 5, 9), ("a", 6, 20), ("b", 8, 9), ("b", 30, 31))
    >>> busy([Interval(*one) for one in times], until=10)
    {'a': 8, 'b': 1}
    """
    spent: dict[str, Micros] = {}
    for tenant, start, end in spans:
        if start <= until:
            spent[tenant] = spent.get(tenant, 0) + min(end, until) - start
    return spent


def share_of_due(jobs: Iterable[JobTimes], tenant: str, until: Moment) -> float:
    """Return what a tenant that always has jobs waiting got, as a fraction of what it was due.

    At every turn it is due an equal part among the tenants with jobs waiting then.

    >>> jobs = [JobTimes(tenant, 0, 0, at) for at, tenant in enumerate("abba", 1)]
    >>> share_of_due(jobs, "a", until=4)  # 2 turns; 1/2 + 1/2 + 1/2 + 1 were due
    0.8
    """
    events: list[tuple[Moment, int, str]] = []
    for job in jobs:
        if job.started_at is None or job.started_at > until:
            events.append((job.acknowledged_at, 0, job.tenant))
        else:
            # A job may start before its enqueue is answered.
            events.append((min(job.acknowledged_at, job.started_at), 0, job.tenant))
            events.append((job.started_at, 1, job.tenant))
    waiting: Counter[str] = Counter()
    got = due = 0.0
    for _, is_start, name in sorted(events):
        if is_start:
            due += 1 / len(waiting)
            got += name == tenant
        waiting[name] += -1 if is_start else 1
        if not waiting[name]:
            del waiting[name]
    return got / due if due else 0


def held_since(
    spans: Iterable[Interval], weights: Mapping[str, float], since: Moment, until: Moment
) -> Moment | None:
    """Return from when on the turns were shared by these weights; None if they never were.

    A window is ten times the sum of the weights; its error may be 2 %.

    >>> turns = [Interval("a" if at <= 20 else "ab"[at % 2], at, at + 1) for at in range(1, 61)]
    >>> held_since(turns, {"a": 1, "b": 1}, since=0, until=60)
    21
    """
    window = 10 * round(sum(weights.values()))
    turns = sorted((one.start, one.tenant) for one in spans if since < one.start <= until)
    found: Moment | None = None
    for first in range(0, len(turns) - window + 1, window):
        ours = turns[first : first + window]
        if share_error([tenant for _, tenant in ours], weights, window) > _TOLERANCE:
            found = None
        elif found is None:
            found = ours[0][0]
    return found


def least_share(turns: Sequence[str], name: str, window: int) -> float:
    """Return a tenant's smallest share of any `window` consecutive turns; 0 if there were fewer.

    >>> least_share(["a", "b", "a", "a", "a", "b"], "b", 3)
    0.0
    >>> least_share(["a", "b", "a", "b", "b"], "b", 2)
    0.5
    """
    counts = [turns[first : first + window].count(name) for first in range(len(turns) - window + 1)]
    return min(counts, default=0) / window


def overtaken_by(jobs: Iterable[JobTimes], name: str) -> Micros:
    """Return by how much later than one of these jobs another arrived that still started before it.

    >>> times = (("low", 10, 11, 90), ("high", 70, 71, 80), ("high", 95, 96, 97))
    >>> overtaken_by([JobTimes(*one) for one in times], "low")
    60
    """
    seen = sorted((one.started_at, one.sent_at, one.tenant) for one in jobs if one.started_at is not None)
    most, newest = 0, 0
    for _, sent_at, tenant in seen:
        if tenant == name:
            most = max(most, newest - sent_at)
        else:
            newest = max(newest, sent_at)
    return most


def steady_rate(spans: Mapping[str, Sequence[tuple[Moment, Moment]]]) -> float:
    """Return the jobs per second from when every worker had begun, from each worker's starts and ends.

    >>> steady_rate({"early": [(0, 1_000_000)] * 9, "late": [(1_500_000, 2_000_000), (1_900_000, 3_500_000)]})
    1.0
    """
    if not spans:
        return 0
    since = max(min(start for start, _ in of_one) for of_one in spans.values())
    ends = [end for of_one in spans.values() for _, end in of_one if end > since]
    return len(ends) * 1e6 / (max(ends) - since) if ends else 0
