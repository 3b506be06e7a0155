"""Who got how much of the service, from what was seen of each job. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlane.model.instants import Micros
from fairlane.model.ledger import Moment
from fairlane.stage.figures import Seen, Span

WINDOW: Final = 1_000
"""Over how many dispatches in a row shares are compared."""

_TOLERANCE: Final = 0.02


def contest_end(spans: Iterable[Span]) -> int:
    """Say until when all tenants had something waiting: the last start of the one that ran out first.

    >>> contest_end([Span("a", 5, 6), Span("a", 9, 10), Span("b", 6, 7)])
    6
    """
    last: dict[str, int] = {}
    for span in spans:
        last[span.tenant] = max(last.get(span.tenant, 0), span.start)
    return min(last.values(), default=0)


def dispatches(spans: Iterable[Span], until: int) -> list[str]:
    """Give the tenants in the order in which their jobs started, up to this moment.

    >>> dispatches([Span("a", 5, 6), Span("b", 4, 5), Span("a", 9, 10)], until=6)
    ['b', 'a']
    """
    return [tenant for start, tenant in sorted((one.start, one.tenant) for one in spans) if start <= until]


def share_error(turns: Sequence[str], weights: Mapping[str, float], window: int = WINDOW) -> float:
    """Give the largest difference between what a tenant got and was due, in any whole window of turns.

    Shorter than one window, all turns are the window. 1 if there were none.

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
    """Give Jain's index of fairness: 1 if all got the same, 1/n if one got everything; 0 of nothing.

    >>> jain([3, 3, 3]), jain([4, 0, 0, 0]), jain([])
    (1.0, 0.25, 0)
    """
    squares = sum(amount * amount for amount in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else 0


def busy(spans: Iterable[Span], until: int) -> dict[str, Micros]:
    """Add up how long something went on for each tenant, up to this moment.

    >>> busy([Span("a", 5, 9), Span("a", 6, 20), Span("b", 8, 9), Span("b", 30, 31)], until=10)
    {'a': 8, 'b': 1}
    """
    spent: dict[str, Micros] = {}
    for tenant, start, end in spans:
        if start <= until:
            spent[tenant] = spent.get(tenant, 0) + min(end, until) - start
    return spent


def share_of_due(jobs: Iterable[Seen], tenant: str, until: Moment) -> float:
    """Compare what a tenant that always has something waiting got with what it was due.

    At every turn it is due an equal part among the tenants that have something waiting then.

    >>> jobs = [Seen("a", 0, 0, 1), Seen("b", 0, 0, 2), Seen("b", 0, 0, 3), Seen("a", 0, 0, 4)]
    >>> share_of_due(jobs, "a", until=4)  # 2 turns; 1/2 + 1/2 + 1/2 + 1 were due
    0.8
    """
    events: list[tuple[Moment, int, str]] = []
    for job in jobs:
        if job.started_at is None or job.started_at > until:
            events.append((job.there_at, 0, job.tenant))
        else:
            # A job may start before its enqueue is answered.
            events.append((min(job.there_at, job.started_at), 0, job.tenant))
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
    spans: Iterable[Span], weights: Mapping[str, float], since: Moment, until: Moment
) -> Moment | None:
    """Say from when on every hundred turns or so were shared by these weights; None if they never were.

    A window is ten times what gives each its whole number of turns; its error may be 2 %.

    >>> turns = [Span("a" if at <= 20 else "ab"[at % 2], at, at + 1) for at in range(1, 61)]
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
    """Give the smallest part that somebody had of any so many turns in a row; 0 if there were fewer.

    >>> least_share(["a", "b", "a", "a", "a", "b"], "b", 3)
    0.0
    >>> least_share(["a", "b", "a", "b", "b"], "b", 2)
    0.5
    """
    counts = [turns[first : first + window].count(name) for first in range(len(turns) - window + 1)]
    return min(counts, default=0) / window


def overtaken_by(jobs: Iterable[Seen], name: str) -> Micros:
    """Say how much later a job came, at the most, that still started before one of these.

    >>> overtaken_by([Seen("low", 10, 11, 90), Seen("high", 70, 71, 80), Seen("high", 95, 96, 97)], "low")
    60
    """
    seen = sorted((one.started_at, one.brought_at, one.tenant) for one in jobs if one.started_at is not None)
    most, newest = 0, 0
    for _, brought_at, tenant in seen:
        if tenant == name:
            most = max(most, newest - brought_at)
        else:
            newest = max(newest, brought_at)
    return most


def steady_rate(spans: Mapping[str, Sequence[tuple[Moment, Moment]]]) -> float:
    """Give the jobs a second from when every worker had begun, from each worker's starts and ends.

    >>> steady_rate({"early": [(0, 1_000_000)] * 9, "late": [(1_500_000, 2_000_000), (1_900_000, 3_500_000)]})
    1.0
    """
    if not spans:
        return 0
    since = max(min(start for start, _ in of_one) for of_one in spans.values())
    ends = [end for of_one in spans.values() for _, end in of_one if end > since]
    return len(ends) * 1e6 / (max(ends) - since) if ends else 0
