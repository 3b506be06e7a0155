"""How many jobs a second go in and out, and what each costs: handlers that do nothing, real workers.

The handlers of the pure runs keep no ledger, since that would be measured, too: there, the rows in history
must be the jobs. A third run beside them keeps one, for the checker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from fairlane.bench.charts import Chart
from fairlane.bench.report import Amount, Goal, Medians, Round, ratio
from fairlane.bench.scenario import Outcome, Scenario, Setting, Stage, measure
from fairlane.bench.shares import steady_rate
from fairlane.model.instants import Instant
from fairlane.model.ledger import Moment
from fairlane.model.lifecycle import State
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.stage.arrivals import Arrival
from fairlane.stage.crew import crew
from fairlane.stage.plan import ASYNC, PLAIN, Plan, make_app, task_of
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.request import PAGE_MOST, Request
from fairlane.store.opening import open_store

BATCH: Final = 1_000

_FLOOR: Final = 1_000
"""Jobs a second of each worker process, whatever the machine."""

COSTS_MORE: Final = "processor time of a job, against 1 process"
REACHES: Final = "drained, against 1 tenant"

_clock: Final = MachineClock()

Spans = dict[str, list[tuple[Moment, Moment]]]


async def throughput(setting: Setting, only: Sequence[str] = ()) -> Outcome:
    """Fill a queue in bulk and let workers empty it, for each kind of handler that is asked for, or all."""
    outcome = await measure(setting, [one for one in KINDS if not only or one.name in only])
    outcome.charts.append(_chart(setting, outcome))
    return outcome


def case_of(processes: int, tenants: int) -> str:
    """Name a case.

    >>> case_of(1, 1_000), case_of(2, 1)
    ('1 process, 1,000 tenants', '2 processes, 1 tenant')
    """
    return (
        f"{processes} process{'es' if processes > 1 else ''}, {tenants:,} tenant{'s' if tenants > 1 else ''}"
    )


async def _pure(setting: Setting, number: int, scenario: str, task: str) -> Round:
    stage = Stage(setting, scenario, number)
    amounts: dict[str, Amount] = {}
    for tenants in _tenants(setting):
        for processes in setting.processes:
            case = case_of(processes, tenants)
            async with setting.place.run(slots=setting.slots) as plan:
                since, took = await _fill(plan, task, setting.jobs, tenants)
                with crew(plan, processes, burst=True) as workers:
                    await workers.ended(setting.most)
                    used = workers.usage()
                spans, history = await _history(plan, since)
            stage.note(case, setting.jobs, setting.jobs, history, None)
            amounts[f"{case}: drained"] = Amount(steady_rate(spans), "jobs/s")
            amounts[f"{case}: processor"] = Amount(1e6 * used / setting.jobs, "µs/job")
            amounts[f"{case}: enqueued in bulk"] = Amount(setting.jobs * 1e6 / took, "jobs/s")
    return Round({**amounts, **compared(setting, amounts)}, stage.checks)


def compared(setting: Setting, amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    """Compare within a round: what more processes cost a job, and what many tenants reach, against one."""
    found: dict[str, Amount] = {}
    for processes, tenants in product(setting.processes, _tenants(setting)):
        case = case_of(processes, tenants)
        for what, other, text in (
            ("processor", case_of(1, tenants), COSTS_MORE),
            ("drained", case_of(processes, 1), REACHES),
        ):
            if other != case and f"{other}: {what}" in amounts:
                found[f"{case}: {text}"] = ratio(amounts[f"{case}: {what}"], amounts[f"{other}: {what}"])
    return found


def _tenants(setting: Setting) -> list[int]:
    """Give the numbers of tenants; more than there are jobs would be no more."""
    return sorted({min(tenants, setting.jobs) for tenants in setting.tenants})


async def _fill(plan: Plan, name: str, jobs: int, tenants: int) -> tuple[Instant, int]:
    """Enqueue in bulk, for each tenant in turn; give when that began, and the microseconds it took."""
    async with make_app(plan) as app:
        await app.client.store.upkeep.migrate()
        began = (await app.client.store.registry.pulse(Request(scope=Scope.all()))).now
        task = task_of(app, name)
        spent = 0
        for start in range(0, jobs, BATCH):
            batch = range(start, min(jobs, start + BATCH))
            before = _clock.elapsed()
            await app.aenqueue_many(task.using(tenant=f"t{job % tenants}").bind() for job in batch)
            spent += _clock.elapsed() - before
    return began, spent


async def _history(plan: Plan, since: Instant) -> tuple[Spans, int]:
    """Give each worker's starts and ends from the store's own history, and how many jobs succeeded.

    Only from an instant on: a store has the jobs of all the runs before.
    """
    store = open_store(plan.url)
    spans: Spans = defaultdict(list)
    cursor: str | None = None
    try:
        while True:
            request = FindRequest(
                scope=Scope.all(), queue=plan.queue, since=since, limit=PAGE_MOST, cursor=cursor
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


async def _with_ledger(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "with ledger", number)
    run = await stage.play("one tenant", [], ahead=[Arrival(0, "t0", setting.jobs, 0)])
    spans = [(span.start, span.end) for span in run.figures.claimed()]
    processes = case_of(setting.processes[0], 1)
    return Round(
        {
            f"{processes}: drained": Amount(steady_rate({"all": spans}), "jobs/s"),
            f"{processes}: processor": Amount(1e6 * run.used / setting.jobs, "µs/job"),
        },
        stage.checks,
    )


def goals(medians: Medians) -> dict[str, Goal]:
    """Set the floor of a process, what a second one may cost, and what many tenants must reach."""
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
    Scenario("async", lambda setting, number: _pure(setting, number, "async", ASYNC), goals),
    Scenario("plain", lambda setting, number: _pure(setting, number, "plain", PLAIN)),
    Scenario("with ledger", _with_ledger),
)


def _chart(setting: Setting, outcome: Outcome) -> Chart:
    drained = {(one.scenario, one.name): one.median or 0.0 for one in outcome.measures}
    series = {
        f"{kind}, {case_of(processes, 1).partition(',')[0]}": [
            (float(tenants), drained[kind, f"{case_of(processes, tenants)}: drained"])
            for tenants in _tenants(setting)
        ]
        for kind in ("async", "plain")
        if any(one.scenario == kind for one in outcome.measures)
        for processes in setting.processes
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
