"""The demonstration's application: one task that takes its time and writes down that it ran.

Its workers are the ordinary `fairlane worker`; the store's URL comes from the environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from fairlane import Context, Fairlane, Lane
from fairlane.demo.arrivals import SLOTS, WORK
from fairlane.demo.recorder import Recorder
from fairlane.model.ledger import Ended, Started
from fairlane.runtime.clock import MachineClock

LEDGER: Final = "DEMO_LEDGER"
"""The variable that names the folder of the ledger."""

app = Fairlane(name="demo", config={}, lanes=[Lane("main", SLOTS, ["default"])])

_clock: Final = MachineClock()
_recorders: dict[int, Recorder] = {}


@app.task
async def work(ctx: Context) -> None:
    """Take a while, as a call to somebody else's service does."""
    record = _recorder()
    about = (str(ctx.job.id), ctx.attempt, ctx.fence)
    pid = os.getpid()
    record.write(
        Started(
            job=about[0],
            attempt=about[1],
            fence=about[2],
            worker=str(pid),
            pid=pid,
            at=_clock.elapsed(),
            tenant=ctx.tenant,
        )
    )
    await _clock.wait(WORK)
    record.write(
        Ended(job=about[0], attempt=about[1], fence=about[2], outcome="returned", at=_clock.elapsed())
    )


def _recorder() -> Recorder:
    pid = os.getpid()
    if pid not in _recorders:
        _recorders[pid] = Recorder(Path(os.environ[LEDGER]) / f"worker-{pid}.jsonl")
    return _recorders[pid]
