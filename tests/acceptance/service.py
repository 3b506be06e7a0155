"""An application for worker processes: its handlers write down what they do, and wait to be let go.

    fairlane worker tests.acceptance.service:app

Everything stands in the current folder: `place`, the URL of the store; the ledger; `go`, the file whose
existence lets `hold` end; and `brief`, whose existence makes leases short.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from fairlane import Backoff, Context, Fairlane, Lane, Queue

PLACE: Final = "place"
LEDGER: Final = "ledger"
GO: Final = "go"
BRIEF: Final = "brief"


def _place(folder: Path) -> str:
    """Return the store's URL; where a test merely imports this, none that is used."""
    place = folder / PLACE
    return place.read_text("utf-8") if place.exists() else "sqlite:///unused.db"


def application(folder: Path) -> Fairlane:
    """Make the application on a folder's store.

    Where a test is to see a lease end, it is short; elsewhere a machine may be held up for a while.
    """
    lease = 2 if (folder / BRIEF).exists() else 60
    retry = Backoff.delays(0.01)
    app = Fairlane(
        _place(folder),
        queues=[Queue("default", retry=retry, max_attempts=5), Queue("urgent", retry=retry)],
        lanes=[Lane("main", 4, {"urgent": 9, "default": 1}, headroom=0)],
        config={"worker": {"lease": lease, "renew_every": 0.5, "shutdown_deadline": 20}},
    )

    def write(*words: object) -> None:
        line = " ".join(map(str, [*words, os.getpid()])) + "\n"
        with (folder / LEDGER).open("a", encoding="utf-8") as ledger:
            ledger.write(line)

    async def hold(ctx: Context, number: int) -> int:
        write("began", number)
        while not (folder / GO).exists():  # noqa: ASYNC110 (another process says when)
            await asyncio.sleep(0.01)
        write("ended", number)
        return ctx.attempt

    async def note(number: int) -> int:
        write("began", number)
        await asyncio.sleep((number % 5) / 1_000)
        write("ended", number)
        return number

    app.task(name="hold")(hold)
    app.task(name="note")(note)
    return app


app = application(Path.cwd())
