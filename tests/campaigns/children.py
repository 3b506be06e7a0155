"""Harm child processes: kill them in the middle of jobs, and run handlers in them that harm themselves."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from fairlane.lab import ledger
from fairlane.model.instants import SECOND
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import MAX_CRASHES
from fairlane.store.contract.jobs import GetRequest
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, staged
from tests.contract.world import ALL
from tests.faults.campaign import moment

_LONG: Final = (0.2, 0.5, 1.0)
_HEALTHY: Final = (0.05, 0.1, 0.2)
_WORKERS: Final = 2
_CHILDREN: Final = 2
_LONGEST: Final = 10 * SECOND
"""When a handler that does not end by itself is stopped."""
_QUIET: Final = 5.0
"""Seconds over which healthy jobs are counted before any harm is done."""

POISONS: Final = {
    "poison_exit_in_worker": None,
    "poison_exit": None,
    "poison_segfault": None,
    "poison_signal": None,
    "poison_children": None,
    "poison_memory": 1,
    "poison_spin": 1,
    "poison_descriptors": 1,
    "poison_output": 1,
    "poison_recursion": 3,
    "poison_error": 1,
}
"""Each kind, and after how many failed attempts its jobs end; None: after crashes."""


async def kill_children(errand: Errand) -> None:
    """SIGKILL children that have jobs; each job starts again, and no other is started twice."""
    async with staged(errand) as field:
        await field.hire_ready(_WORKERS, children=_CHILDREN)
        harmed: set[str] = set()
        async with field.fed(_LONG, backlog=32, tasks=("isolated", "short")):
            while errand.goes_on:
                victim = await _running_in_a_child(field, harmed)
                killed_at = moment()
                os.kill(victim.pid, signal.SIGKILL)
                await field.until(
                    lambda: _is_over(field, victim, killed_at),  # noqa: B023 (awaited)
                    "the job of a killed child does not start again",
                    60,
                )
                harmed |= {
                    one.job for starts in field.starts.values() for one in starts if one.pid == victim.pid
                }
                again = field.started_since(victim.job, killed_at)
                errand.done(*([] if again is None else [(again - killed_at) / SECOND]))
        for job, starts in field.starts.items():
            assert job in harmed or len(starts) == 1, f"job {job} was started {len(starts)} times"


async def _running_in_a_child(field: Field, harmed: set[str]) -> ledger.Started:
    """Return the start of a job that runs in a child, and that was not harmed before."""
    found: list[ledger.Started] = []

    def is_there() -> bool:
        found[:] = [
            one
            for worker in field.workers
            for one in worker.running.values()
            if one.pid != worker.popen.pid and one.job not in harmed and _is_child(one.pid)
        ]
        return bool(found)

    await field.until(is_there, "no child runs a job")
    return field.errand.draw.choice(found)


def _is_child(pid: int) -> bool:
    """Whether a process is a child that runs handlers, and neither a worker nor gone."""
    return b"fairlane.worker.children" in _of_process(pid, "cmdline")


def _is_over(field: Field, victim: ledger.Started, since: ledger.Moment) -> bool:
    """Whether a job has started again, or had ended just before its child was killed."""
    is_running = any((victim.job, victim.fence) in worker.running for worker in field.workers)
    return field.started_since(victim.job, since) is not None or not is_running


async def run_poison(errand: Errand) -> None:
    """Run every kind of poison beside healthy jobs; each dies in time, and no healthy job pays for it."""
    async with staged(errand) as field:
        await field.hire_ready(_WORKERS, processes=1, children=_CHILDREN, slots=6)
        poisons: dict[UUID, str] = {}
        async with field.fed(_HEALTHY, backlog=48):
            quiet = await _pace(field, _QUIET)
            began_at, starts = time.monotonic(), len(field.starts)
            while errand.goes_on:
                kind = list(POISONS)[errand.n % len(POISONS)]
                job = field.job(kind, None, max_attempts=POISONS[kind] or 100, timeout=_LONGEST)
                sent_at = moment()
                await field.actor.insist(job)
                poisons[job.id] = kind
                record = await _until_dead(field, job.id)
                _judge(record, kind)
                errand.figures[f"starts of {kind}"] += len(field.starts.get(str(job.id), ()))
                errand.done((moment() - sent_at) / SECOND)
            pace = (len(field.starts) - starts - len(poisons)) / (time.monotonic() - began_at)
            errand.figures["healthy jobs a second in %"] = round(100 * pace / quiet)
        await field.until_idle()
        await _judge_healthy(field, poisons)
        assert not _left_behind(field), "processes that a handler started outlive it"


async def _pace(field: Field, seconds: float) -> float:
    """Return how many jobs start in a second while nothing is harmed."""
    await field.until_more_start(20)
    begin, began_at = len(field.starts), time.monotonic()
    await field.until(lambda: time.monotonic() - began_at >= seconds, "time stands still")
    return (len(field.starts) - begin) / (time.monotonic() - began_at)


async def _until_dead(field: Field, id: UUID) -> JobRecord:
    """Return a job once it has ended."""
    ends_at = time.monotonic() + 90
    while True:
        await field.until_more_start(1)  # healthy jobs go on meanwhile, or this fails
        record = (await field.actor.store.jobs.get(GetRequest(scope=ALL, ids=(id,))))[id]
        if record.state in {State.DEAD, State.SUCCEEDED, State.CANCELLED}:
            return record
        assert time.monotonic() < ends_at, f"a job of {record.task} is {record.state} after 90 s"


def _judge(record: JobRecord, kind: str) -> None:
    """Hold one poisoned job to what is promised of it."""
    assert record.state is State.DEAD, f"{kind} is {record.state}"
    assert record.crashes <= MAX_CRASHES, f"{kind} crashed {record.crashes} times"
    if POISONS[kind] is None:
        assert record.crashes == MAX_CRASHES, f"{kind} crashed {record.crashes} times"


async def _judge_healthy(field: Field, poisons: dict[UUID, str]) -> None:
    """Hold the healthy jobs to having lost nothing: none is dead, none has failed."""
    ids = [UUID(job) for job in field.starts if UUID(job) not in poisons]
    for start in range(0, len(ids), 500):
        found = await field.actor.store.jobs.get(GetRequest(scope=ALL, ids=tuple(ids[start : start + 500])))
        for record in found.values():
            assert record.state is State.SUCCEEDED, f"a healthy job is {record.state}: {record.because}"
            assert record.failures == 0, f"a healthy job failed {record.failures} times"
            field.errand.figures["healthy jobs lost with a worker"] += record.crashes > 0


def _left_behind(field: Field) -> list[int]:
    """Return the processes that poisoned handlers of this field started and that still run."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    record = str(field.workers[0].record.parent).encode()
    return [
        pid
        for pid in pids
        if b"time.sleep(600)" in _of_process(pid, "cmdline") and record in _of_process(pid, "environ")
    ]


def _of_process(pid: int, what: str) -> bytes:
    """Return what the kernel tells of a process; nothing if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes()
    return b""
