"""Measure the dashboard: how soon each page of a full store comes, what looking costs workers, how it starts.

    python -m benchmarks.web --rounds 3
    python -m benchmarks.web --only pages --url postgresql://… --jobs 100000

The pages are those of a store with --jobs finished jobs, a tenth as many dead letters, and --tenants tenants,
each with a job that waits; every page is asked for --asks times, one at a time,
of a real `fairlane web`. The store is a file, or with --url a schema or key prefix on that server, removed
afterwards.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Final

from benchmarks import web_pages, web_viewers
from benchmarks.command import Scenarios, options, run
from benchmarks.figures import Amounts
from benchmarks.measured_store import MeasuredStore
from benchmarks.web_pages import BY_ARGUMENT, BY_INDEX, COMPLEX, SLOWEST
from benchmarks.web_server import WebClient, port_of, start, web_server
from benchmarks.web_viewers import KEPT, MEMORY
from fairlane.lab.bench.report import Amount, Goal
from fairlane.web.html.assets import assets

SCENARIOS: Final = ("start", "viewers", "pages")

FIRST: Final = "first page of a cold start"
ASSETS: Final = "all assets, compressed"

GOALS: Final = {
    FIRST: Goal("at most 2 s", 2),
    ASSETS: Goal("at most 250 KB", 250),
    KEPT: Goal("at least 0.95 ×", 0.95, is_least=True),
    MEMORY: Goal("at most 100 MB", 100),
    SLOWEST: Goal("at most 1,000 ms", 1_000),
    **{name: Goal("at most 500 ms", 500) for name in (BY_INDEX, BY_ARGUMENT, COMPLEX)},
}


def first_page(place: str, name: str) -> Amounts:
    """Return how long it is from the start of a web process to the first page, signed in, with its assets."""
    url = MeasuredStore(place, name).url
    with web_server(url) as server:
        token = server.token
    before = time.perf_counter()
    process = start("web", "--port", "0", url=url)
    with closing(WebClient(port_of(process), token)) as client:
        client.timed("/")
        for asset in assets():
            client.timed(f"/static/{asset}")
    took = time.perf_counter() - before
    process.terminate()
    process.communicate()
    size = sum(len(asset.compressed) for asset in assets().values())
    return {FIRST: Amount(took, "s"), ASSETS: Amount(size / 1024, "KB")}


_NUMBERS: Final = {
    "jobs": (1_000_000, "finished jobs in the store of the pages"),
    "tenants": (10_000, "tenants in it"),
    "asks": (100, "how often each page is asked for"),
    "viewers": (50, "dashboards that are open"),
    "work": (30_000, "jobs that a worker runs beside them"),
    "rounds": (3, "how often each is measured"),
}


def main() -> int:
    """Read the arguments, measure, print."""
    given = options("web", __doc__, SCENARIOS, _NUMBERS).parse_args()

    def make(folder: str) -> Scenarios:
        place = given.url or folder
        return {
            "start": lambda n: first_page(place, f"start{n}"),
            "viewers": lambda n: web_viewers.measure(place, f"viewers{n}", given.work, given.viewers),
            "pages": lambda n: web_pages.measure(place, f"pages{n}", given.jobs, given.tenants, given.asks),
        }

    return run(given, make, GOALS, given.rounds)


if __name__ == "__main__":
    sys.exit(main())
