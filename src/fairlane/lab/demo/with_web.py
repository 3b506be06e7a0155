"""Play the noisy neighbour again and again with the dashboard open, until it is stopped.

The dashboard is `fairlane web`, in a process of its own, on the store that the workers work on. Its first
lines have the link that signs in. Jobs take longer than in the two runs, so that people can watch them.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from fairlane import Fairlane
from fairlane.lab.demo.arrivals import NOISY, PROCESSES, QUIET, SLOTS
from fairlane.lab.workload.arrivals import WORK, Arrival, about_every_second
from fairlane.lab.workload.plan import RunPlan, make_app, task_of
from fairlane.lab.workload.worker_processes import RunError, run_workers
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.signals import run_until_stopped

LASTS: Final[Micros] = SECOND // 4
"""The duration of each job."""

_BUSY: Final = 0.6
"""The part of a round in which jobs come; in the rest the workers catch up."""

_LOOK_EVERY: Final[Micros] = SECOND // 2
_STOP_WITHIN: Final = 10.0

PrintLine = Callable[[str], None]


def make_round(seed: int, seconds: float) -> list[Arrival]:
    """Return the arrivals of one round: a flood of one tenant, and jobs of the quiet ones meanwhile.

    >>> arrivals = make_round(7, 40)
    >>> arrivals[0].tenant, arrivals[0].jobs, max(one.at for one in arrivals) < 24 * SECOND
    ('noisy', 1536, True)
    """
    draw = Random(seed)  # noqa: S311 (a repeatable list, no secret)
    busy = seconds * _BUSY
    arrivals = [Arrival(0, NOISY, round(busy * PROCESSES * SLOTS * SECOND / LASTS), LASTS)]
    for tenant in QUIET:
        arrivals += about_every_second(draw, tenant, LASTS, busy, since=0.5)
    return sorted(arrivals)


def run_with_web(
    say: PrintLine, *, seconds: float, seed: int | None = None, keep: bool = False, port: int | None = None
) -> int:
    """Play rounds of about `seconds` until SIGINT or SIGTERM; return exit code 0.

    1 if a process could not go on: its words are printed.
    """
    seed = secrets.randbelow(10_000) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="fairlane-demo-"))
    try:
        run_until_stopped(_play(say, folder, seconds, seed, port))
    except KeyboardInterrupt:
        say("\nstopped")
    except RunError as error:
        say(str(error))
        return 1
    finally:
        if keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _play(say: PrintLine, folder: Path, seconds: float, seed: int, port: int | None) -> None:
    plan = RunPlan(url=f"sqlite:///{folder}/fairlane.db", folder=str(folder), slots=SLOTS)
    clock = MachineClock()
    async with make_app(plan) as app:
        await app.client.store.upkeep.migrate()
        flood = make_round(seed, seconds)[0].jobs
        say(
            f"every {seconds:g} s one noisy tenant enqueues {flood:,} jobs at once, and {len(QUIET)} quiet "
            f"tenants one about every second; {PROCESSES} worker processes with {SLOTS} slots each. "
            "Ctrl-C ends it."
        )
        with _serve_web(plan, port) as web, run_workers(plan, PROCESSES) as workers:
            while True:
                began_at = clock.elapsed()
                due = make_round(seed, seconds)[::-1]
                while clock.elapsed() - began_at < seconds * SECOND:
                    while due and began_at + due[-1].at <= clock.elapsed():
                        await _enqueue(app, due.pop())
                    workers.check()
                    _check(web, folder)
                    await clock.wait(_LOOK_EVERY)
                seed += 1


async def _enqueue(app: Fairlane, arrival: Arrival) -> None:
    task = task_of(app, WORK).using(tenant=arrival.tenant)
    await app.aenqueue_many([task.bind(duration=arrival.duration)] * arrival.jobs)


@contextmanager
def _serve_web(plan: RunPlan, port: int | None) -> Generator[subprocess.Popen[bytes]]:
    """Serve the dashboard for the length of a block. What it says to people goes to the terminal."""
    command = [sys.executable, "-m", "fairlane", "web", "fairlane.lab.workload.worker_app:app"]
    command += [] if port is None else ["--port", str(port)]
    with (Path(plan.folder) / "web.log").open("wb") as log:
        web = subprocess.Popen(command, env=plan.environment(), stderr=log)  # noqa: S603 (our own program)
    try:
        yield web
    finally:
        web.terminate()
        try:
            web.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            web.kill()
            web.wait()


def _check(web: subprocess.Popen[bytes], folder: Path) -> None:
    code = web.poll()
    if code is not None:
        log = (folder / "web.log").read_text(errors="replace")[-2_000:]
        raise RunError(f"the web ended with code {code}:\n{log}")
