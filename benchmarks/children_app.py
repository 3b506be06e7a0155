"""The application that `benchmarks.children` measures. Small: every child imports it before its first job."""

from __future__ import annotations

import os
import time
from typing import Final

from fairlane import Fairlane, Lane

URL: Final = "BENCH_URL"
CHILDREN: Final = "BENCH_CHILDREN"


def make_app(url: str, children: int) -> Fairlane:
    """Make the application of both processes."""
    config = {"worker": {"children": children}}
    made = Fairlane(url, config=config, lanes=[Lane("main", 16, ["default"])])

    @made.task(name="noop", isolation="process")
    def noop() -> None:
        """Do nothing, in a child."""

    @made.task(name="burn", isolation="process")
    def burn(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    @made.task(name="stamp", isolation="process")
    def stamp(seconds: float) -> tuple[float, float]:
        """Keep the child for a while; return when the handler began, and the processor time until then."""
        began = time.monotonic(), time.process_time()
        time.sleep(seconds)
        return began

    return made


app = make_app(os.environ.get(URL, "sqlite:///nowhere.db"), int(os.environ.get(CHILDREN, "2")))
