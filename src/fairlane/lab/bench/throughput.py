"""Measure jobs per second in and out, and the CPU time of each, with real workers and empty handlers.

The handlers of the pure runs write no ledger, which would be measured too; there, the number of jobs in
history is checked. A third kind of run writes one, for the history checker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from fairlane.lab.bench.charts import Chart
from fairlane.lab.bench.fairness.shares import steady_rate
from fairlane.lab.bench.report import Amount, Goal, Medians, RoundResult, ratio
from fairlane.lab.bench.scenario import BenchResult, BenchSettings, RoundRunner, Scenario, measure
from fairlane.lab.ledger import Moment
from fairlane.lab.workload.arrivals import Arrival
from fairlane.lab.workload.plan import ASYNC, PLAIN, RunPlan, make_app, task_of
from fairlane.lab.workload.worker_processes import run_workers
from fairlane.model.instants import Instant
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request
from fairlane.store.opening import open_store

BATCH: Final = 1_000

_FLOOR: Final = 1_000
"""Jobs per second of each worker process, whatever the machine."""

COSTS_MORE: Final = "processor time of a job, against 1 process"
REACHES: Final = "drained, against 1 tenant"

_clock: Final = MachineClock()

Spans = dict[str, list[tuple[Moment, Moment]]]


async def throughput(settings: BenchSettings, only: Sequence[str] = ()) -> BenchResult:
    """Enqueue in bulk and let workers drain the queue, for each of these kinds of handler, or all."""
    result = await measure(settings, [one for one in KINDS if not only or one.name in only])
    result.charts.append(_chart(settings, result))
    return result


def case_of(processes: int, tenants: int) -> str:
    """Return the name of a case.

    >>> case_of(1, 1_000), case_of(2, 1)
    ('1 process, 1,000 tenants', '2 processes, 1 tenant')
    """
    return (
        f"{processes} process{'es' if processes > 1 else ''}, {tenants:,} tenant{'s' if tenants > 1 else ''}"
    )


async def _pure(settings: BenchSettings, number: int, scenario: str, task: str) -> RoundResult:
    runner = RoundRunner(settings, scenario, number)
    amounts: dict[str, Amount] = {}
    for tenants in _tenants(settings):
        for processes in settings.processes:
            case = case_of(processes, tenants)
            async with settings.environment.run(slots=settings.slots) as plan:
                since, took = await _fill(plan, task, settings.jobs, tenants)
                with run_workers(plan, processes, burst=True) as workers:
                    await workers.ended(settings.run_timeout)
                    cpu_seconds = workers.usage()
                spans, history = await _history(plan, since)
            runner.note(case, settings.jobs, settings.jobs, history, None)
            amounts[f"{case}: drained"] = Amount(steady_rate(spans), "jobs/s")
            amounts[f"{case}: processor"] = Amount(1e6 * cpu_seconds / settings.jobs, "µs/job")
            amounts[f"{case}: enqueued in bulk"] = Amount(settings.jobs * 1e6 / took, "jobs/s")
    return RoundResult({**amounts, **compared(settings, amounts)}, runner.checks)


def compared(settings: BenchSettings, amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    """Compare within a round: CPU time against one process, and throughput against one tenant."""
    found: dict[str, Amount] = {}
    for processes, tenants in product(settings.processes, _tenants(settings)):
        case = case_of(processes, tenants)
        for what, other, text in (
            ("processor", case_of(1, tenants), COSTS_MORE),
            ("drained", case_of(processes, 1), REACHES),
        ):
            if other != case and f"{other}: {what}" in amounts:
                found[f"{case}: {text}"] = ratio(amounts[f"{case}: {what}"], amounts[f"{other}: {what}"])
    return found


def _tenants(settings: BenchSettings) -> list[int]:
    """Return the numbers of tenants, at most one per job."""
    return sorted({min(tenants, settings.jobs) for tenants in settings.tenants})


async def _fill(plan: RunPlan, name: str, jobs: int, tenants: int) -> tuple[Instant, int]:
    """Enqueue in bulk, for each tenant in turn; give when that began, and the microseconds it took."""
    async with make_app(plan) as app:
        await app.client.store.upkeep.migrate()
        began = (await app.client.store.registry.status(Request(scope=Scope.all()))).now
        task = task_of(app, name)
        spent = 0
        for start in range(0, jobs, BATCH):
            batch = range(start, min(jobs, start + BATCH))
            before = _clock.elapsed()
            await app.aenqueue_many(task.using(tenant=f"t{job % tenants}").bind() for job in batch)
            spent += _clock.elapsed() - before
    return began, spent


async def _history(plan: RunPlan, since: Instant) -> tuple[Spans, int]:
    """Return each worker's starts and ends from the store's history, and how many jobs succeeded.

    Only jobs since this instant: the store also has those of earlier runs.
    """
    store = open_store(plan.url)
    spans: Spans = defaultdict(list)
    cursor: str | None = None
    try:
        while True:
            request = FindRequest(
                scope=Scope.all(), queue=plan.queue, since=since, limit=MAX_PAGE_SIZE, cursor=cursor
            )
            page = await store.jobs.find(request)
            for job in page.jobs:
                if job.state is State.SUCCEEDED and len(job.attempts) == 1:
                    (attempt,) = job.attempts
                    spans[attempt.worker].append((attempt.started_at, attempt.ended_at))
            cursor = page.cursor
            if cursor is None:
                return spans, sum(map(len, spans.values()))
    finally:
        await store.upkeep.aclose()


async def _with_ledger(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "with ledger", number)
    run = await runner.execute("one tenant", [], backlog=[Arrival(0, "t0", settings.jobs, 0)])
    spans = [(span.start, span.end) for span in run.stats.claimed()]
    processes = case_of(settings.processes[0], 1)
    return RoundResult(
        {
            f"{processes}: drained": Amount(steady_rate({"all": spans}), "jobs/s"),
            f"{processes}: processor": Amount(1e6 * run.cpu_seconds / settings.jobs, "µs/job"),
        },
        runner.checks,
    )


def goals(medians: Medians) -> dict[str, Goal]:
    """Return the goals: the throughput of a process, the cost of a second one, the effect of many tenants."""
    found: dict[str, Goal] = {}
    for name in medians:
        what = name.partition(": ")[2]
        if what == "drained":
            processes = int(name.split(" ", 1)[0])
            found[name] = Goal(f"at least {_FLOOR:,} a process", float(_FLOOR * processes), is_least=True)
        elif what == COSTS_MORE:
            found[name] = Goal("at most 10 % more", 1.1)
        elif what == REACHES:
            found[name] = Goal("at least half", 0.5, is_least=True)
    return found


KINDS: Final = (
    Scenario("async", lambda settings, number: _pure(settings, number, "async", ASYNC), goals),
    Scenario("plain", lambda settings, number: _pure(settings, number, "plain", PLAIN)),
    Scenario("with ledger", _with_ledger),
)


def _chart(settings: BenchSettings, result: BenchResult) -> Chart:
    drained = {(one.scenario, one.name): one.median or 0.0 for one in result.measures}
    series = {
        f"{kind}, {case_of(processes, 1).partition(',')[0]}": [
            (float(tenants), drained[kind, f"{case_of(processes, tenants)}: drained"])
            for tenants in _tenants(settings)
        ]
        for kind in ("async", "plain")
        if any(one.scenario == kind for one in result.measures)
        for processes in settings.processes
    }
    return Chart(
        name="throughput",
        title="Jobs drained a second",
        x="tenants",
        y="jobs/s",
        series=series,
        has_lines=True,
        is_log_x=True,
        is_log_y=False,
    )
