"""Two worker processes, kills and pauses: nothing is lost, nothing runs twice without a lost lease."""

from __future__ import annotations

import asyncio
import random
import signal
from itertools import chain

from fairlane.lab import ledger
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from tests.faults.campaign import moment, recorded, seeded, times, verify
from tests.processes.conftest import Process, Site, wait_for

JOBS = 300


def test_kills_and_pauses_lose_nothing_and_run_nothing_twice_without_a_lost_lease(site: Site) -> None:
    """Judged from outside, by what handlers, settlements and reclaims wrote down."""
    draw, enqueued = seeded(), list[ledger.Record]()
    workers = [site.start(lease=1.5, renew_every=0.3, slots=8) for _ in range(2)]
    for worker in workers:
        worker.until("worker_started")
    jobs = [_give(site, draw, enqueued) for _ in range(times(JOBS))]
    for number in range(times(4)):
        _harm(site, workers, draw, number)
    wait_for(lambda: _are_finished(site, len(jobs)), lambda: str(site.app.jobs.count()))
    for worker in workers:
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0
    site.app.close()
    seen = recorded(process.record for process in site.processes)
    records = asyncio.run(verify(site.file, chain(enqueued, seen), drained=True))
    assert {job.state for job in records} == {State.SUCCEEDED}
    assert len(records) == len(jobs)
    assert any(isinstance(one, ledger.Reclaimed) for one in seen)


def _give(site: Site, draw: random.Random, enqueued: list[ledger.Record]) -> object:
    task, tenant = draw.choice(["short", "plain"]), draw.choice(["acme", "bolt", "core"])
    job = site.enqueue(task, draw.choice([0.0, 0.01, 0.05, 0.2]), tenant=tenant)
    enqueued.append(
        ledger.Acknowledged(job=str(job.id), tenant=tenant, queue="default", task=task, at=moment())
    )
    return job


def _harm(site: Site, workers: list[Process], draw: random.Random, number: int) -> None:
    """Kill a worker and start another, or stop one for longer than its lease."""
    victim = draw.randrange(len(workers))
    before = len(workers[victim].starts())
    wait_for(lambda: len(workers[victim].starts()) > before or not _is_work_left(site))
    if number % 2:
        workers[victim].signal(signal.SIGSTOP)
        stopped_at = moment()
        other = workers[1 - victim]
        # Until the other has taken something back, or there was nothing to take.
        wait_for(lambda: _has_reclaimed(other) or moment() - stopped_at > 5 * SECOND)
        workers[victim].signal(signal.SIGCONT)
    else:
        workers[victim].signal(signal.SIGKILL)
        workers[victim].end()
        workers[victim] = site.start(lease=1.5, renew_every=0.3, slots=8)
        workers[victim].until("worker_started")


def _has_reclaimed(process: Process) -> bool:
    return any(isinstance(one, ledger.Reclaimed) for one in process.seen())


def _is_work_left(site: Site) -> bool:
    counts = site.app.jobs.count()
    return bool(counts[State.READY] + counts[State.DELAYED])


def _are_finished(site: Site, jobs: int) -> bool:
    return site.app.jobs.count()[State.SUCCEEDED] == jobs
