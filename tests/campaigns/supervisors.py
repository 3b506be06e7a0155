"""Harm supervisors: kill them with and without their processes, and let them replace these under load."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from fairlane.lab import ledger
from fairlane.model.instants import SECOND
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, Worker, staged
from tests.faults.campaign import moment

_LONG: Final = (0.3, 1.0, 2.0)
_PROCESSES: Final = 2
_SUPERVISORS: Final = 3
_ASKED: Final = 20.0
"""Seconds in which jobs of killed processes are to run elsewhere. Told, not judged: others may slow us."""


async def kill_supervisors(errand: Errand) -> None:
    """SIGKILL supervisors that have jobs.

    Processes that are killed too lose their jobs, which start elsewhere. Those that live end theirs, claim
    nothing more and are gone.
    """
    async with staged(errand) as field:
        await field.hire_ready(_SUPERVISORS, processes=_PROCESSES)
        async with field.fed(_LONG, backlog=48):
            while errand.goes_on:
                (victim,) = await field.busy_workers(errand.draw, 1)
                is_whole = errand.n % 2 == 0
                killed_at = moment()
                victim.signal(signal.SIGKILL)
                pids = victim.pids()
                for pid in pids if is_whole else ():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                field.orphan(victim)
                await field.until(lambda: not victim.pids(), "processes outlive their supervisor")  # noqa: B023 (awaited)
                field.hire(processes=_PROCESSES)
                field.look()
                recovery = await _running_elsewhere(field, victim, killed_at)
                assert is_whole or not recovery, "a process that was not killed has lost jobs"
                field.forget(victim)
                errand.figures["whole" if is_whole else "alone"] += 1
                errand.figures["jobs_later_than_asked"] += sum(one > _ASKED for one in recovery)
                errand.done(*recovery)


async def _running_elsewhere(field: Field, victim: Worker, since: ledger.Moment) -> list[float]:
    """Wait until every job that the victim has not ended has started again; return the seconds of each."""
    jobs = field.jobs_of(victim)
    took: dict[str, float] = {}

    def all_started() -> bool:
        for job in jobs - took.keys():
            if (at := field.started_since(job, since)) is not None:
                took[job] = (at - since) / SECOND
        return took.keys() >= jobs

    await field.until(all_started, "jobs of killed processes do not start elsewhere", 60)
    return list(took.values())


async def restart_one_by_one(errand: Errand) -> None:
    """SIGHUP: each process is replaced while jobs run; no job is lost, none starts twice."""
    async with staged(errand) as field:
        # The leases of production: nothing is killed, so none is to expire, also on a machine that is busy.
        await field.hire_ready(_SUPERVISORS - 1, processes=_PROCESSES, lease=12, renew_every=4)
        async with field.fed(_LONG, backlog=48):
            while errand.goes_on:
                (chosen,) = await field.busy_workers(errand.draw, 1)
                before, began_at = chosen.pids(), moment()
                is_done = _one_more(chosen, "rolling_restart_done")
                chosen.signal(signal.SIGHUP)
                await field.until(is_done, "a rolling restart does not end")
                assert not before & chosen.pids(), "a process was not replaced"
                errand.done((moment() - began_at) / SECOND)
    # Nothing was killed, and every handler is shorter than the shutdown deadline.
    twice = {job: len(starts) for job, starts in field.starts.items() if len(starts) > 1}
    said = [line for job in twice for one in field.workers for line in one.lines if job in line]
    assert not twice, f"jobs that started more than once: {twice}, {said}"


def _one_more(worker: Worker, event: str) -> Callable[[], bool]:
    def said() -> int:
        return sum(one.get("event") == event for one in worker.events())

    return partial(lambda before: said() > before, said())
