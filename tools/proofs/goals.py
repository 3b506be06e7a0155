"""Every goal of Fairlane on each store, and which figures answer it, or why none does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from benchmarks.peers.report import TUNED, against
from fairlane.lab.bench.report import Measure
from fairlane.lab.bench.throughput import COSTS_MORE, REACHES
from tools.proofs.stores import Store

_CASE: Final = re.compile(
    r"(?P<tenants>[\d,]+) tenants, (?P<jobs>[\d,]+) jobs(?P<held> and .*)?: (?P<cut>.*)"
)
"""How `scale` names its figures."""


class ProofGoal(NamedTuple):
    """One goal. All figures of the page whose scenario and name fit answer it; without a page, `why` does.

    The page is named without its store. Without a scenario those of any do. For `scale` the name begins with
    what has grown.
    """

    what: str
    goal: str
    page: str = ""
    scenario: str = ""
    name: str = ""
    why: str = ""

    def answers(self, figures: Sequence[Measure]) -> list[Measure]:
        """Choose the figures with a goal that answer this one."""
        judged = [
            one
            for one in figures
            if one.goal is not None and re.fullmatch(self.scenario or ".*", one.scenario)
        ]
        if self.page != "scale":
            return [one for one in judged if re.fullmatch(self.name, one.name)]
        wanted, _, cuts = self.name.partition(" ")
        return [one for one, kind, cut in grown(judged) if kind == wanted and re.fullmatch(cuts, cut)]


def grown(figures: Iterable[Measure]) -> list[tuple[Measure, str, str]]:
    """Return, for each figure of `scale`, what has grown in its case and what was measured."""
    read = [(one, found) for one in figures if (found := _CASE.fullmatch(one.name))]
    few = min((_number(found["tenants"]) for _, found in read), default=0)
    shallow = min((_number(found["jobs"]) for _, found in read), default=0)

    def kind(found: re.Match[str]) -> str:
        if found["held"]:
            return "held"
        if _number(found["tenants"]) > few:
            return "tenants"
        return "backlog" if _number(found["jobs"]) > shallow else "smallest"

    return [(one, kind(found), found["cut"]) for one, found in read]


def _number(text: str) -> int:
    return int(text.replace(",", ""))


_PAGES: Final = "pages of the dashboard are not measured here"
_CAMPAIGNS: Final = "`make prove` restarts servers under load; it is not measured here"


class _StoreGoals(NamedTuple):
    """The goals that differ between stores: the peers, the factors, milliseconds, megabytes.

    `drained` is for 1, 100, 1,000 and 100,000 tenants.
    """

    against: str
    peers: str
    drained: tuple[float, ...]
    bulk: int
    most_ms: int
    memory: int
    restart: str


_ASKS: Final[dict[Store, _StoreGoals]] = {
    "sqlite": _StoreGoals("Huey on SQLite", "huey-sqlite", (6, 6, 6), 10, 10, 50, "SQLite has no server"),
    "postgres": _StoreGoals(
        "every peer on PostgreSQL",
        r"pgqueuer-\d+|procrastinate|saq-postgres",
        (1.5, 1.2, 1, 1),
        1,
        10,
        50,
        _CAMPAIGNS,
    ),
    "redis": _StoreGoals(
        "every peer on Redis",
        "dramatiq|huey-redis|saq-redis|taskiq|celery|rq",
        (6, 6, 6),
        4,
        5,
        60,
        _CAMPAIGNS,
    ),
}


def _speed(store: Store) -> tuple[ProofGoal, ...]:
    asks = _ASKS[store]
    return (
        *(
            ProofGoal(
                against(f"throughput, against {asks.against}", tenants),
                f"at least {least:g} ×",
                "peers",
                against(f"(?:{asks.peers})", tenants),
                "drained",
            )
            for tenants, least in zip((1, 100, 1_000, 100_000), asks.drained, strict=False)
        ),
        ProofGoal(
            "throughput with default settings, against our own tuned ones",
            f"at least {TUNED:g} ×",
            "peers",
            rf"fairlane-{store}-tuned.*",
            "drained",
        ),
        ProofGoal(
            f"bulk enqueue, against {asks.against}",
            f"at least {asks.bulk} ×",
            "peers",
            asks.peers,
            "bulk enqueue",
        ),
        ProofGoal(
            "pick-up by an idle worker, p95", f"at most {asks.most_ms} ms", "latency", "idle pick-up", "p95"
        ),
        ProofGoal("enqueue of one job, p99", f"at most {asks.most_ms} ms", "latency", "enqueue", "p99"),
        ProofGoal("worker memory at rest", f"at most {asks.memory} MB", "worker", "at rest", "memory"),
        *_SPEED,
        ProofGoal("working again after a server restart", "within 5 min", why=asks.restart),
    )


_SPEED: Final = (
    ProofGoal("idle worker, processor", "at most 1 % of a core", "worker", "at rest", "processor"),
    ProofGoal("idle worker, queries", "at most 2 a second", "worker", "at rest", "queries"),
    ProofGoal(
        "processor time of a job with two workers, against one",
        "at most 10 % more",
        "throughput",
        "async",
        f".*: {re.escape(COSTS_MORE)}",
    ),
    ProofGoal("each worker process", "at least 1,000 jobs/s", "throughput", "async", ".*: drained"),
    ProofGoal("a claim, p99", "at most 50 ms", "scale", "claims", "smallest p99"),
    ProofGoal("connections of a worker, idle and busy", "at most 100", "worker", "at rest", "connections.*"),
    ProofGoal("a page with 10,000 finished jobs", "at most 2 s", why=_PAGES),
)

GROWTH: Final = (
    ProofGoal(
        "tenants 10² → 10⁵ with ready jobs", "a claim costs at most 2 ×", "scale", "claims", "tenants p50|p95"
    ),
    ProofGoal("backlog 10⁴ → 10⁶", "a claim costs at most 2 ×", "scale", "claims", "backlog p50|p95"),
    ProofGoal("the same, enqueue", "flat: at most 25 % more", "scale", "claims", "backlog enqueue.*"),
    ProofGoal(
        "a capped, rate-limited or paused tenant, a paused task, a full gate, with 10⁶ jobs each",
        "others' claims cost at most 10 % more",
        "scale",
        "claims",
        "held p50|p95",
    ),
    ProofGoal("the same, overshoot", "none", "scale", "claims", "held claimed.*"),
    ProofGoal(
        "10⁵ tenants with one job each, against the same jobs under one",
        "at least half the throughput",
        "tenants",
        "async",
        f".*: {re.escape(REACHES)}",
    ),
    ProofGoal("10⁶ jobs in history", "every page at most 1 s, search at most 500 ms", why=_PAGES),
)

FAIRNESS: Final = (
    ProofGoal(
        "a flood of 10 ms jobs, 16 slots, 50 quiet tenants",
        "p95 at most max(1.5 × alone, alone + 20 ms), p99 at most max(2 × alone, alone + 50 ms)",
        "fairness",
        "flood",
        ".*",
    ),
    ProofGoal("the same flood over 1,000 task names", "as above", "fairness", "names", ".*"),
    ProofGoal(
        "weights 1:2:5, all backlogged",
        "share error at most 2 % per 1,000 turns, Jain's index at least 0.99",
        "fairness",
        "weights",
        ".*",
    ),
    ProofGoal(
        "340 ms jobs against 10 ms jobs, counted in seconds",
        "shares of worker seconds within 5 %",
        "fairness",
        "seconds",
        ".*",
    ),
    ProofGoal(
        "one backlogged tenant and five that drain and return",
        "at least 90 % of its share",
        "fairness",
        "returning",
        ".*",
    ),
    ProofGoal(
        "all slots on long jobs of one tenant",
        "headroom 1: p99 at most 2 × alone",
        "fairness",
        "headroom",
        ".*",
    ),
    ProofGoal("weight × 10 beside a backlog", "new share within 1 s", "fairness", "reweighed", ".*"),
    ProofGoal(
        "high-priority flood inside a tenant", "low waits at most its boost", "fairness", "priority", ".*"
    ),
    ProofGoal("strict queue flood", "bulk has at least its minimum share", "fairness", "strict", ".*"),
    ProofGoal("jobs behind a full gate or a paused task", "other work unaffected", "fairness", "held", ".*"),
    ProofGoal(
        "10⁶ jobs behind an open breaker",
        "others' claims cost at most 10 % more",
        "guards",
        "behind",
        ".*",
    ),
    ProofGoal("32 claimers, one tenant", "no empty claim beside a backlog", "fairness", "claimers", ".*"),
)


GUARDS: Final = (
    ProofGoal(
        "16 workers before a breaker that opens",
        "no call by a job that was claimed after it",
        "guards",
        "opening",
        ".*",
    ),
    ProofGoal(
        "16 claimants before a breaker",
        "none passes while it is open, then exactly one",
        "guards",
        "probe",
        ".*",
    ),
    ProofGoal(
        "16 claimants under a budget, 10,000 jobs",
        "at most the ceiling and the excess of running jobs",
        "guards",
        "budget",
        ".*",
    ),
    ProofGoal(
        "processor time of a job with a closed breaker and a budget",
        "at most 5 % more than without",
        "guards",
        "cost",
        ".*",
    ),
)

_BESIDE_A_SNAPSHOT: Final = (
    ProofGoal(
        "ten minutes of churn beside an old snapshot", "at least 80 % of before", "snapshot", ".*", ".*"
    ),
)


def sections_of(store: Store) -> dict[str, tuple[ProofGoal, ...]]:
    """Return all goals of one store, by section."""
    growth = GROWTH + _BESIDE_A_SNAPSHOT if store == "postgres" else GROWTH
    return {"Speed": _speed(store), "Cost as work grows": growth, "Fairness": FAIRNESS, "Guards": GUARDS}
