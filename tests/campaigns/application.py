"""The application of the workers that campaigns harm: ``fairlane worker tests.campaigns.application:app``.

Where its store is, where it writes down what it sees, and by which clock it goes, is in its environment.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from fairlane import Backoff, Context
from fairlane.lab import ledger
from tests.campaigns.clock import SharedClock
from tests.faults.campaign import moment
from tests.processes.program import keep_book, make_app, write

_MOST_MEMORY: Final = 1_000
"""Megabytes that a handler without end takes at most, should nobody stop it."""

if _record := os.environ.get("CAMPAIGN_RECORD"):
    keep_book(Path(_record), is_shared=True)  # by the processes of a supervisor, and by children
_clock = os.environ.get("CAMPAIGN_CLOCK")

app = make_app(os.environ.get("CAMPAIGN_STORE", "nowhere"), SharedClock(Path(_clock)) if _clock else None)


# ── handlers in children, and handlers that harm whoever runs them ───────────


def _begin(ctx: Context) -> None:
    write(
        ledger.Started(
            job=str(ctx.job.id),
            attempt=ctx.attempt,
            fence=ctx.fence,
            worker=str(os.getpid()),
            pid=os.getpid(),
            at=moment(),
            tenant=ctx.tenant,
        )
    )


@app.task(name="isolated", isolation="process", retry=Backoff.delays(0.01), max_attempts=100)
def isolated(ctx: Context, seconds: float) -> None:
    """Take a while, in a child process."""
    _begin(ctx)
    time.sleep(seconds)
    write(
        ledger.Ended(
            job=str(ctx.job.id), attempt=ctx.attempt, fence=ctx.fence, outcome="returned", at=moment()
        )
    )


@app.task(name="poison_exit_in_worker", retry=Backoff.delays(0.01))
def poison_exit_in_worker(ctx: Context) -> None:
    """End the process of the worker itself, in a task that asks for no child."""
    _begin(ctx)
    os._exit(7)


@app.task(name="poison_exit", isolation="process", retry=Backoff.delays(0.01))
def poison_exit(ctx: Context) -> None:
    """End the process at once."""
    _begin(ctx)
    os._exit(7)


@app.task(name="poison_segfault", isolation="process", retry=Backoff.delays(0.01))
def poison_segfault(ctx: Context) -> None:
    """Read memory that does not exist."""
    _begin(ctx)
    ctypes.string_at(0)


@app.task(name="poison_signal", isolation="process", retry=Backoff.delays(0.01))
def poison_signal(ctx: Context) -> None:
    """Kill the own process."""
    _begin(ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="poison_children", isolation="process", retry=Backoff.delays(0.01))
def poison_children(ctx: Context) -> None:
    """Start twenty processes that stay, and leave without them."""
    _begin(ctx)
    for _ in range(20):
        subprocess.Popen((sys.executable, "-c", "import time; time.sleep(600)"))
    os._exit(7)


@app.task(name="poison_memory", isolation="process", max_memory="150MB", max_attempts=1)
def poison_memory(ctx: Context) -> None:
    """Take memory without end, up to what this machine can spare."""
    _begin(ctx)
    taken: list[bytes] = []
    while len(taken) < _MOST_MEMORY:
        taken.append(b"x" * 2**20)
        time.sleep(0.002)


@app.task(name="poison_spin", isolation="process", max_attempts=1)
def poison_spin(ctx: Context) -> None:
    """Compute without end, and hear no signal that ends politely."""
    _begin(ctx)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass


@app.task(name="poison_descriptors", isolation="process", max_attempts=1)
def poison_descriptors(ctx: Context) -> None:
    """Open files until no more can be opened."""
    _begin(ctx)
    kept: list[int] = []
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))


@app.task(name="poison_output", isolation="process", max_attempts=1)
def poison_output(ctx: Context) -> None:
    """Write far more than anybody wants to read."""
    _begin(ctx)
    for _ in range(64):
        sys.stdout.write("x" * 2**20)
    message = "all of it was written"
    raise RuntimeError(message)


@app.task(name="poison_recursion", isolation="process", max_attempts=3, retry=Backoff.delays(0.01))
def poison_recursion(ctx: Context) -> None:
    """Recurse through the end of the stack."""
    _begin(ctx)
    sys.setrecursionlimit(10**7)

    def deeper(depth: int) -> int:
        return max([depth], key=lambda one: deeper(one + 1))  # by way of C, which has no other bound

    deeper(0)


class _UnspeakableError(Exception):
    """An error that cannot be shown, nor sent anywhere by copying it."""

    def __init__(self) -> None:
        super().__init__(threading.Lock())

    def __str__(self) -> str:
        raise self


@app.task(name="poison_error", isolation="process", max_attempts=1)
def poison_error(ctx: Context) -> None:
    """Raise what cannot be shown."""
    _begin(ctx)
    raise _UnspeakableError
