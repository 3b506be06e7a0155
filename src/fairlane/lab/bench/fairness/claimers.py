"""Scenario: many claimers on one tenant's backlog. While a job waits, no claim may come back empty (S35).

Each claimer uses the contract with its own connection. No job is enqueued or returned meanwhile. So a claim
that came back empty, before another claim was sent that got a job, was wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fairlane.app.admin.paging import count_by_queue
from fairlane.lab.bench.driver import ALL, Driver
from fairlane.lab.bench.report import Amount, Goal, Medians, RoundResult
from fairlane.lab.bench.scenario import BenchSettings, RoundRunner, Scenario, in_ms
from fairlane.lab.ledger import Moment
from fairlane.model.lifecycle.states import State
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.loops import run_all

CLAIMERS: Final = 32
_JOBS_A_SECOND: Final = 200
_clock: Final = MachineClock()


class TimedClaim(NamedTuple):
    """One claim: when it was sent and answered, and how many jobs it got."""

    sent_at: Moment
    answered_at: Moment
    jobs: int


def empty_beside_backlog(asked: Sequence[TimedClaim]) -> int:
    """Count the empty claims after whose answer another claim was sent that got a job.

    >>> claims = [TimedClaim(1, 2, 0), TimedClaim(3, 4, 1), TimedClaim(2, 9, 0), TimedClaim(5, 6, 0)]
    >>> empty_beside_backlog(claims)
    1
    """
    last_sent_at = max((one.sent_at for one in asked if one.jobs), default=0)
    return sum(not one.jobs and one.answered_at < last_sent_at for one in asked)


async def _claimers(settings: BenchSettings, number: int) -> RoundResult:
    runner = RoundRunner(settings, "claimers", number)
    jobs = max(4 * CLAIMERS, round(_JOBS_A_SECOND * settings.seconds))
    async with settings.environment.run() as plan:
        drivers = [Driver(plan.url, plan.queue) for _ in range(CLAIMERS)]
        try:
            await drivers[0].store.upkeep.migrate()
            await drivers[0].fill(jobs, 1)
            asked: list[TimedClaim] = []
            began_at = _clock.elapsed()
            await run_all(*(_drain(driver, asked) for driver in drivers))
            took = _clock.elapsed() - began_at
            counts = await count_by_queue(drivers[0].store, ALL, plan.queue)
        finally:
            for driver in drivers:
                await driver.store.upkeep.aclose()
    runner.note("one tenant", jobs, jobs, counts[plan.queue][State.SUCCEEDED], None)
    return RoundResult(
        {
            "empty claims beside a backlog": Amount(empty_beside_backlog(asked), "claims"),
            "claims": Amount(len(asked), "claims"),
            "drained": Amount(jobs * 1e6 / took, "jobs/s"),
            **in_ms([one.answered_at - one.sent_at for one in asked if one.jobs], before="claim "),
        },
        runner.checks,
    )


async def _drain(driver: Driver, asked: list[TimedClaim]) -> None:
    """Claim one job at a time until none is left."""
    while True:
        sent_at = _clock.elapsed()
        claims = await driver.claim(1)
        asked.append(TimedClaim(sent_at, _clock.elapsed(), len(claims)))
        if not claims:
            return
        await driver.settle(claims)


def _goals(_: Medians) -> dict[str, Goal]:
    return {"empty claims beside a backlog": Goal("none", 0)}


CLAIMED_BY_MANY: Final = (Scenario("claimers", _claimers, _goals),)
