"""Very many claimers at one tenant's backlog: whoever asks while something waits must get something (S35).

Through the contract, each with a connection of its own. Nothing comes in meanwhile and no job returns, so a
claim that came back empty before another was even sent that got a job was empty beside a backlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fairlane.app.counting import count_by_queue
from fairlane.bench.driver import ALL, Driver
from fairlane.bench.report import Amount, Goal, Medians, Round
from fairlane.bench.scenario import Scenario, Setting, Stage, in_ms
from fairlane.model.ledger import Moment
from fairlane.model.lifecycle import State
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.loops import all_of

CLAIMERS: Final = 32
_JOBS_A_SECOND: Final = 200
_clock: Final = MachineClock()


class Asked(NamedTuple):
    """One claim: when it was sent, when it was answered, how many jobs it got."""

    sent_at: Moment
    answered_at: Moment
    jobs: int


def empty_beside_backlog(asked: Sequence[Asked]) -> int:
    """Count the claims that got nothing although another, sent after their answer, still got something.

    >>> empty_beside_backlog([Asked(1, 2, 0), Asked(3, 4, 1), Asked(2, 9, 0), Asked(5, 6, 0)])
    1
    """
    last_sent_at = max((one.sent_at for one in asked if one.jobs), default=0)
    return sum(not one.jobs and one.answered_at < last_sent_at for one in asked)


async def _claimers(setting: Setting, number: int) -> Round:
    stage = Stage(setting, "claimers", number)
    jobs = max(4 * CLAIMERS, round(_JOBS_A_SECOND * setting.seconds))
    async with setting.place.run() as plan:
        drivers = [Driver(plan.url, plan.queue) for _ in range(CLAIMERS)]
        try:
            await drivers[0].store.upkeep.migrate()
            await drivers[0].fill(jobs, 1)
            asked: list[Asked] = []
            began_at = _clock.elapsed()
            await all_of(*(_drain(driver, asked) for driver in drivers))
            took = _clock.elapsed() - began_at
            counts = await count_by_queue(drivers[0].store, ALL, plan.queue)
        finally:
            for driver in drivers:
                await driver.store.upkeep.aclose()
    stage.note("one tenant", jobs, jobs, counts[plan.queue][State.SUCCEEDED], None)
    return Round(
        {
            "empty claims beside a backlog": Amount(empty_beside_backlog(asked), "claims"),
            "claims": Amount(len(asked), "claims"),
            "drained": Amount(jobs * 1e6 / took, "jobs/s"),
            **in_ms([one.answered_at - one.sent_at for one in asked if one.jobs], before="claim "),
        },
        stage.checks,
    )


async def _drain(driver: Driver, asked: list[Asked]) -> None:
    """Claim one job after the other until none is left."""
    while True:
        sent_at = _clock.elapsed()
        claims = await driver.claim(1)
        asked.append(Asked(sent_at, _clock.elapsed(), len(claims)))
        if not claims:
            return
        await driver.settle(claims)


def _goals(_: Medians) -> dict[str, Goal]:
    return {"empty claims beside a backlog": Goal("none", 0)}


CLAIMED_BY_MANY: Final = (Scenario("claimers", _claimers, _goals),)
