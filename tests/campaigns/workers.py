"""Harm workers: kill them in the middle of a job, stop them past their leases and let them go on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from fairlane.lab import ledger
from fairlane.model.instants import SECOND
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, Worker, staged
from tests.faults.campaign import moment

CREW: Final = 8
AT_ONCE: Final = (3, 5)
"""How many of the crew are harmed at the same time, at least and at most; a round waits for the last one."""
_LONG: Final = (0.3, 1.0, 2.0)
"""Seconds that jobs take: whoever is killed has some of them, and some are longer than a lease."""
_ASKED: Final = 20.0
"""Seconds in which the jobs of a killed worker are to run elsewhere. Told, not judged: others may slow us."""
_STUCK: Final = 30 * SECOND
"""After so long stopped workers go on although nobody took their jobs; a lead is over by then."""
_SILENCE: Final = 6 * SECOND
"""If nobody starts anything for so long, one that is stopped has the store's lock in its hands."""


async def kill_workers(errand: Errand) -> None:
    """SIGKILL workers that have jobs; each of them starts elsewhere, and nothing is lost or done twice."""
    async with staged(errand) as field:
        await field.hire_ready(min(CREW, errand.wanted + 2))
        async with field.fed(_LONG, backlog=48):
            while errand.goes_on:
                victims = await field.busy_workers(errand.draw, _number(errand))
                killed_at = moment()
                for victim in victims:
                    victim.signal(signal.SIGKILL)
                for victim in victims:
                    field.dismiss(victim)
                    field.hire()
                for recovery in await _running_elsewhere(field, victims, killed_at):
                    assert recovery is not None
                    errand.figures["jobs_later_than_asked"] += sum(one > _ASKED for one in recovery)
                    errand.done(*recovery)


def _number(errand: Errand) -> int:
    """Draw how many are harmed at once, but no more than are wanted."""
    return min(errand.draw.randint(*AT_ONCE), errand.wanted - errand.n)


async def pause_workers(errand: Errand) -> None:
    """Stop workers until their jobs run elsewhere, and let them go on; nothing that they say is accepted.

    Only those are counted whose jobs others took. One that is stopped with the store's lock in its hands
    keeps everybody from that, as SQLite's does.
    """
    async with staged(errand) as field:
        await field.hire_ready(min(CREW, errand.wanted + 2))
        async with field.fed(_LONG, backlog=48):
            while errand.goes_on:
                victims = await field.busy_workers(errand.draw, _number(errand))
                stopped_at = moment()
                for victim in victims:
                    victim.signal(signal.SIGSTOP)
                try:
                    await asyncio.sleep(0.05)  # it does not stop before we go on
                    field.look()
                    is_stuck = partial(_is_stuck, field, stopped_at)
                    recoveries = await _running_elsewhere(field, victims, stopped_at, is_stuck)
                finally:
                    for victim in victims:
                        victim.signal(signal.SIGCONT)
                back_at = moment()
                for victim, recovery in zip(victims, recoveries, strict=True):
                    await field.until_it_starts(victim, back_at)
                    if recovery is None:
                        errand.figures["stuck"] += 1
                    else:
                        errand.done(*recovery)


def _is_stuck(field: Field, since: ledger.Moment) -> bool:
    now = moment()
    return now - since > _STUCK or now - max(since, *field.last_start.values()) > _SILENCE


async def _running_elsewhere(
    field: Field, victims: Sequence[Worker], since: ledger.Moment, is_over: Callable[[], bool] = lambda: False
) -> list[list[float] | None]:
    """Wait until every job of the victims has started again; return the seconds that each took.

    None for a victim of which a job had not when it was over.
    """
    jobs = [field.jobs_of(victim) for victim in victims]
    took: dict[str, float] = {}

    def all_started() -> bool:
        for job in set().union(*jobs) - took.keys():
            if (at := field.started_since(job, since)) is not None:
                took[job] = (at - since) / SECOND
        return all(took.keys() >= one for one in jobs) or is_over()

    await field.until(all_started, "jobs of lost workers do not start elsewhere", 60)
    return [[took[job] for job in one] if took.keys() >= one else None for one in jobs]
