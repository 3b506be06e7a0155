"""Measure a claim of ten jobs beside many tenants, a deep backlog, or many held jobs.

Uses the contract, without client and worker. All cases are measured in turn, so that noise affects them alike
and ratios are valid. Ten jobs are enqueued for each ten that are claimed, so that every case keeps its size.
Besides the wall time, the CPU time of the process is measured: on a busy machine only that is comparable.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

import msgspec

from fairlane.app.admin.paging import count_by_queue
from fairlane.lab.bench.charts import Chart, Point
from fairlane.lab.bench.driver import ALL, Driver
from fairlane.lab.bench.held_jobs import HELD, HOLDS, fill_held, use_up
from fairlane.lab.bench.report import Amount, Goal, Medians, RoundResult, conclude
from fairlane.lab.bench.scenario import BenchResult, BenchSettings, RoundRunner, in_ms
from fairlane.model.errors import FairlaneError
from fairlane.model.lifecycle.states import State

CLAIMED: Final = 10
_FLOOR_MS: Final = 50
"""The goal for the p99 of a claim, whatever the machine."""

_BYTES: Final = 1_500
"""The disk space of a waiting job, log included, rounded up."""


class NotEnoughSpace(FairlaneError):  # noqa: N818 (says more than "error")
    """The folder does not have enough free space for the benchmark."""


class ScaleCase(msgspec.Struct, frozen=True):
    """A number of jobs and tenants, and perhaps a number of held jobs beside them."""

    tenants: int
    jobs: int
    held: int = 0
    by: str = ""

    @property
    def name(self) -> str:
        """The name of the case: what is in the store.

        >>> ScaleCase(100, 10_000).name, ScaleCase(100, 10_000, 5_000, "pause").name
        ('100 tenants, 10,000 jobs', '100 tenants, 10,000 jobs and 5,000 held by a pause')
        """
        held = f" and {self.held:,} held by a {self.by}" if self.by else ""
        return f"{self.tenants:,} tenants, {self.jobs:,} jobs{held}"


def cases_of(tenants: tuple[int, ...], backlog: tuple[int, ...]) -> list[ScaleCase]:
    """Return the cases: the smallest first, then more tenants, deeper backlogs, and held jobs.

    >>> [(one.tenants, one.jobs, one.by) for one in cases_of((100, 1_000), (500, 9_000))[:4]]
    [(100, 500, ''), (1000, 1000, ''), (100, 9000, ''), (100, 500, 'pause')]
    """
    few, *more = sorted(tenants)
    shallow, *deeper = sorted(backlog)
    return [
        ScaleCase(few, max(few, shallow)),
        *(ScaleCase(many, max(many, shallow)) for many in more),
        *(ScaleCase(few, deep) for deep in deeper),
        *(ScaleCase(few, max(few, shallow), max(backlog), by) for by in HOLDS),
    ]


async def scale(settings: BenchSettings) -> BenchResult:
    """Fill a queue for each case, then claim, settle and enqueue in all of them in turn."""
    cases = cases_of(settings.tenants, settings.backlog)
    _check_space(settings, cases)
    rounds: list[RoundResult] = []
    async with AsyncExitStack() as open_places:
        drivers: dict[ScaleCase, Driver] = {}
        for case in cases:
            settings.say(f"filling: {case.name}")
            plan = await open_places.enter_async_context(settings.environment.run())
            drivers[case] = Driver(plan.url, plan.queue)
            open_places.push_async_callback(drivers[case].store.upkeep.aclose)
            await _fill(drivers[case], case)
        for number in range(settings.rounds):
            settings.say(f"round {number + 1} of {settings.rounds}: {settings.jobs} claims of each")
            rounds.append(await _round(settings, number, drivers))
    measures = conclude("claims", rounds, lambda medians: _goals(cases, medians))
    checks = [check for one in rounds for check in one.checks]
    medians = {one.name: one.median or 0.0 for one in measures}
    return BenchResult(list(measures), checks, [_chart(cases, medians)])


def _check_space(settings: BenchSettings, cases: list[ScaleCase]) -> None:
    needed = _BYTES * sum(case.jobs + case.held for case in cases)
    free = shutil.disk_usage(settings.environment.folder).free
    if settings.environment.url is None and free < needed:
        raise NotEnoughSpace(
            f"{settings.environment.folder} has {free:,} bytes free, but the benchmark may need {needed:,}; "
            "choose another --folder or a smaller --backlog"
        )


async def _fill(driver: Driver, case: ScaleCase) -> None:
    await driver.store.upkeep.migrate()
    if case.held:
        await fill_held(driver, case.by, case.held)
    await driver.fill(case.jobs, case.tenants)
    await use_up(driver, case.by)


async def _round(settings: BenchSettings, number: int, drivers: Mapping[ScaleCase, Driver]) -> RoundResult:
    runner = RoundRunner(settings, "claims", number)
    before = {case: await _in_history(driver) for case, driver in drivers.items()}
    times: dict[ScaleCase, list[float]] = {case: [] for case in drivers}
    spent: dict[ScaleCase, list[float]] = {case: [] for case in drivers}
    into: dict[ScaleCase, list[float]] = {case: [] for case in drivers}
    settled = dict.fromkeys(drivers, 0)
    over = dict.fromkeys(drivers, 0)
    for _ in range(settings.jobs):
        for case, driver in drivers.items():
            start, worked = time.perf_counter(), time.process_time()
            taken = await driver.claim(CLAIMED)
            times[case].append(1e6 * (time.perf_counter() - start))
            spent[case].append(1e6 * (time.process_time() - worked))
            settled[case] += len(taken)
            over[case] += sum(claim.job.tenant.startswith(HELD) for claim in taken)
            await driver.settle(taken)
            new = [driver.new(claim.job.tenant) for claim in taken]
            worked = time.process_time()
            await driver.enqueue(*new)
            into[case].append(1e6 * (time.process_time() - worked))
    amounts: dict[str, Amount] = {}
    for case, driver in drivers.items():
        history = await _in_history(driver) - before[case]
        runner.note(case.name, settled[case], settled[case], history, None)
        amounts |= in_ms(times[case], before=f"{case.name}: ")
        amounts |= in_ms(spent[case], "p50", "p95", before=f"{case.name}: processor ")
        amounts |= in_ms(into[case], "p50", before=f"{case.name}: enqueue of ten, processor ")
        if case.by:
            amounts[f"{case.name}: claimed of what is held"] = Amount(over[case], "jobs")
    return RoundResult(amounts, runner.checks)


async def _in_history(driver: Driver) -> int:
    counts = await count_by_queue(driver.store, ALL, driver.queue)
    return counts[driver.queue][State.SUCCEEDED]


def _goals(cases: Sequence[ScaleCase], medians: Medians) -> dict[str, Goal]:
    """A claim may cost at most twice as much in larger cases, and a tenth more beside held jobs.

    An enqueue may cost at most a quarter more CPU time; the disk's time is not counted.
    """
    first, *others = cases
    floor = {f"{case.name}: p99": Goal(f"at most {_FLOOR_MS} ms", _FLOOR_MS) for case in cases}
    enqueue = "enqueue of ten, processor p50"
    flat = {
        f"{case.name}: {enqueue}": Goal(
            "at most 25 % more than the first", 1.25 * medians[f"{first.name}: {enqueue}"]
        )
        for case in others
        if case.tenants == first.tenants
    }
    none = {f"{case.name}: claimed of what is held": Goal("none", 0) for case in others if case.by}
    return (floor | flat | none) | {
        f"{case.name}: {cut}": Goal(
            "at most 10 % more than the first" if case.by else "at most 2 × the first",
            (1.1 if case.by else 2) * medians[f"{first.name}: {cut}"],
        )
        for case in others
        for cut in ("p50", "p95", "processor p50", "processor p95")
    }


def _chart(cases: Sequence[ScaleCase], medians: Mapping[str, float]) -> Chart:
    few, shallow = cases[0].tenants, cases[0].jobs
    plain = [case for case in cases if not case.by]
    series: dict[str, list[Point]] = {}
    for cut in ("p50", "p95"):
        read = {case: medians[f"{case.name}: {cut}"] for case in plain}
        series[f"{cut}, by tenants"] = [
            (float(case.tenants), read[case]) for case in plain if case.jobs in {shallow, case.tenants}
        ]
        series[f"{cut}, by backlog"] = [
            (float(case.jobs), read[case]) for case in plain if case.tenants == few
        ]
    return Chart(
        name="scale",
        title="What a claim of ten costs",
        x="tenants, or jobs waiting",
        y="ms",
        series=series,
        has_lines=True,
        is_log_x=True,
        is_log_y=False,
    )
