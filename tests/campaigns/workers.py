"""Harm workers: kill them in the middle of a job, stop them past their leases and let them go on."""

from __future__ import annotations

import asyncio
import signal
from typing import Final

from fairlane.model import ledger
from fairlane.model.instants import SECOND
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, Worker, staged
from tests.faults.campaign import moment

CREW: Final = 4
_LONG: Final = (0.2, 0.5, 1.0)
"""Seconds that jobs take: whoever is killed has some of them."""
_ASKED: Final = 20.0
"""Seconds in which the jobs of a killed worker are to run elsewhere. Told, not judged: others may slow us."""
_STUCK: Final = 30.0
"""Seconds after which a stopped worker goes on although nobody took its jobs; a lead is over by then."""


async def kill_workers(errand: Errand) -> None:
    """SIGKILL a worker that has jobs; each of them starts elsewhere, and nothing is lost or done twice."""
    async with staged(errand) as field:
        await field.hire_ready(CREW)
        async with field.fed(_LONG):
            while errand.goes_on:
                victims = await field.busy_workers(errand.draw, errand.draw.choice((1, 2)))
                killed_at = moment()
                for victim in victims:
                    victim.signal(signal.SIGKILL)
                for victim in victims:
                    field.dismiss(victim)
                    field.hire()
                for victim in victims:
                    recovery = await _running_elsewhere(field, victim, killed_at)
                    errand.figures["jobs_later_than_asked"] += sum(one > _ASKED for one in recovery)
                    errand.done(*recovery)


async def pause_workers(errand: Errand) -> None:
    """Stop a worker until its jobs run elsewhere, and let it go on; nothing that it says is accepted."""
    async with staged(errand) as field:
        await field.hire_ready(CREW)
        async with field.fed(_LONG):
            while errand.goes_on:
                (victim,) = await field.busy_workers(errand.draw, 1)
                stopped_at = moment()
                victim.signal(signal.SIGSTOP)
                try:
                    recovery = await _running_elsewhere(field, victim, stopped_at, _STUCK)
                except TimeoutError:
                    # It was stopped with the store's lock in its hands, or with all that there is to do.
                    errand.figures["stuck"] += 1
                    recovery = []
                finally:
                    victim.signal(signal.SIGCONT)
                await field.until_it_starts(victim, moment())
                errand.done(*recovery)


async def _running_elsewhere(
    field: Field, victim: Worker, since: ledger.Moment, seconds: float = 60
) -> list[float]:
    """Wait until every job of a victim has started again; give the seconds that each took."""
    await asyncio.sleep(0.05)  # what it wrote last is in the file
    field.look()
    jobs = field.jobs_of(victim)
    took: dict[str, float] = {}

    def all_started() -> bool:
        for job in jobs - took.keys():
            if (at := field.started_since(job, since)) is not None:
                took[job] = (at - since) / SECOND
        return len(took) == len(jobs)

    await field.until(all_started, f"{len(jobs)} jobs of a lost worker do not start elsewhere", seconds)
    return list(took.values())
