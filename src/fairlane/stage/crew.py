"""Start the worker processes of a run, watch over them, and end them. Knows nothing of their jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from fairlane.model.errors import FairlaneError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import MachineClock
from fairlane.stage.plan import Plan

_STOP_WITHIN: Final = 20.0
_LOOK_EVERY: Final[Micros] = SECOND // 50


class StageError(FairlaneError):
    """A run could not be played to its end."""


class Usage(msgspec.Struct, frozen=True):
    """What one worker process has used of the processor."""

    seconds: float


class Crew:
    """Ordinary `fairlane worker` processes; what each says is in a file of the run's folder."""

    def __init__(self, plan: Plan, workers: list[subprocess.Popen[bytes]]) -> None:
        self._folder = Path(plan.folder)
        self._workers = workers

    def check(self, *, may_have_ended: bool = False) -> bool:
        """Whether all still run; `StageError` with a worker's own words if one ended that should not have."""
        codes = [worker.poll() for worker in self._workers]
        for number, code in enumerate(codes):
            if code is not None and (code != 0 or not may_have_ended):
                log = (self._folder / f"worker-{number}.log").read_text(errors="replace")[-2_000:]
                raise StageError(f"worker {number} ended with code {code}:\n{log}")
        return None in codes

    async def ended(self, at_most: Micros) -> None:
        """Wait until every worker has ended by itself; `StageError` if that takes too long."""
        clock = MachineClock()
        began_at = clock.elapsed()
        while self.check(may_have_ended=True):
            if clock.elapsed() - began_at > at_most:
                raise StageError(f"the jobs were not done after {at_most // SECOND} s")
            await clock.wait(_LOOK_EVERY)

    def usage(self) -> float:
        """Add up the seconds of the processor that the workers have used; known when they have ended."""
        files = sorted(self._folder.glob("usage-*.json"))
        return sum(msgspec.json.decode(file.read_bytes(), type=Usage).seconds for file in files)


@contextmanager
def crew(plan: Plan, processes: int, *, burst: bool = False) -> Generator[Crew]:
    """Have so many workers for the length of a block; none is left afterwards, whatever happens in it."""
    command = [sys.executable, "-m", "fairlane", "worker", "fairlane.stage.play:app"]
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
        yield (here := Crew(plan, workers))
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(_STOP_WITHIN)
        here.check(may_have_ended=True)
    except subprocess.TimeoutExpired as error:
        raise StageError(f"a worker did not stop within {_STOP_WITHIN:.0f} s") from error
    finally:
        for worker in workers:
            worker.kill()  # without effect on one that has ended
            worker.wait()
