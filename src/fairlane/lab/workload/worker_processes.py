"""Start, check and stop the worker processes of a run. Knows nothing of their jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from fairlane.lab.workload.plan import RunPlan
from fairlane.model.errors import FairlaneError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import MachineClock

_STOP_WITHIN: Final = 20.0
_LOOK_EVERY: Final[Micros] = SECOND // 50


class RunError(FairlaneError):
    """A run could not be completed."""


class CpuUsage(msgspec.Struct, frozen=True):
    """The CPU time of one worker process."""

    seconds: float


class WorkerProcesses:
    """Ordinary `fairlane worker` processes; each logs to a file in the run's folder."""

    def __init__(self, plan: RunPlan, workers: list[subprocess.Popen[bytes]]) -> None:
        self._folder = Path(plan.folder)
        self._workers = workers

    def check(self, *, may_have_ended: bool = False) -> bool:
        """Whether any still runs; `RunError` with the worker's log if one ended unexpectedly."""
        codes = [worker.poll() for worker in self._workers]
        for number, code in enumerate(codes):
            if code is not None and (code != 0 or not may_have_ended):
                log = (self._folder / f"worker-{number}.log").read_text(errors="replace")[-2_000:]
                raise RunError(f"worker {number} ended with code {code}:\n{log}")
        return None in codes

    async def ended(self, within: Micros) -> None:
        """Wait until every worker has exited; `RunError` if that takes too long."""
        clock = MachineClock()
        began_at = clock.elapsed()
        while self.check(may_have_ended=True):
            if clock.elapsed() - began_at > within:
                raise RunError(f"the jobs were not finished after {within // SECOND} s")
            await clock.wait(_LOOK_EVERY)

    def usage(self) -> float:
        """Return the CPU seconds of all workers; known when they have exited."""
        files = sorted(self._folder.glob("usage-*.json"))
        return sum(msgspec.json.decode(file.read_bytes(), type=CpuUsage).seconds for file in files)


@contextmanager
def run_workers(plan: RunPlan, processes: int, *, burst: bool = False) -> Generator[WorkerProcesses]:
    """Run this many workers for the length of a block; none is left afterwards, whatever happens in it."""
    application = "fairlane.lab.workload.worker_app:app"
    # Without a supervisor: each is measured by itself, and killed if the run fails.
    command = [sys.executable, "-m", "fairlane", "worker", application, "--processes", "0"]
    workers: list[subprocess.Popen[bytes]] = []
    folder = Path(plan.folder)
    try:
        for number in range(processes):
            with (folder / f"worker-{number}.log").open("wb") as log:
                workers.append(
                    subprocess.Popen(  # noqa: S603 (our own program)
                        [*command, *(["--burst"] if burst else [])],
                        env=plan.environment(),
                        stdout=log,
                        stderr=log,
                    )
                )
        yield (here := WorkerProcesses(plan, workers))
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(_STOP_WITHIN)
        here.check(may_have_ended=True)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"a worker did not stop within {_STOP_WITHIN:.0f} s") from error
    finally:
        for worker in workers:
            worker.kill()  # no effect on one that has exited
            worker.wait()
