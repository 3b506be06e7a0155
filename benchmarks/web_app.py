"""The application whose dashboard `benchmarks.web` measures, and whose worker works beside it."""

from __future__ import annotations

import os
from typing import Final

from fairlane import Fairlane, Gate, Lane, Queue

URL: Final = "BENCH_URL"
SCHEDULES: Final = 100
"""How many there are; they fire once a year."""


def make_app(url: str) -> Fairlane:
    """Make the application of all processes; a benchmark asks more often than the web lets people ask."""
    made = Fairlane(
        url,
        config={"web": {"rate": "none"}},
        queues=[Queue("default"), Queue("work")],
        lanes=[Lane("main", 100, ["work"])],
        gates=[Gate("line", 2)],
    )

    @made.task(name="noop", queue="default")
    async def noop(text: str) -> None:
        """Do nothing."""

    @made.task(name="empty", queue="work", gate=None)
    async def empty() -> None:
        """Do nothing, as fast as it goes."""

    @made.task(name="fax", queue="default", gate="line")
    async def fax() -> None:
        """Nothing, behind a gate."""

    for number in range(SCHEDULES):
        made.schedule("0 3 1 1 *", name=f"yearly-{number}", timezone="Europe/Berlin")(fax)
    return made


app = make_app(os.environ.get(URL, "sqlite:///nowhere.db"))
