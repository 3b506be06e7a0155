"""Fill a store as a year does, and ask a real web process for each of its pages and for searches."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final
from urllib.parse import urlencode

from benchmarks.figures import Amounts
from benchmarks.measured_store import MeasuredStore
from benchmarks.web_app import make_app
from benchmarks.web_server import WebClient, web_server, worker
from fairlane import Fairlane
from fairlane.lab.bench.driver import ALL, BATCH, SUCCEEDED
from fairlane.lab.bench.report import Amount
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.journal.entries import JournalName
from fairlane.model.retry.decision import AttemptResult, PermanentFailure
from fairlane.store.contract.journal import PendingRequest
from fairlane.web.page import WebPage
from tests.web.addresses import addresses_of, pages

CAUSES: Final = 12
TAGGED: Final = 100
"""One job of so many has a tag of its own."""

_AT_ONCE: Final = 4

SLOWEST: Final = "slowest page, p95"
BY_INDEX: Final = "search by indexed fields, p95"
BY_ARGUMENT: Final = "search by argument, p95"
COMPLEX: Final = "search with a complex filter, p95"
SEARCHES: Final[Mapping[str, Sequence[str]]] = {
    BY_INDEX: (
        "state:succeeded tenant:{tenant}",
        "state:dead since:1h",
        "correlation:{correlation}",
        "{id}",
        "queue:default state:ready tenant:{tenant}",
    ),
    BY_ARGUMENT: ('arg.text:"nobody says this"', 'tenant:{tenant} arg.text:"nobody says this"'),
    COMPLEX: ("(state:succeeded or state:dead) task:no* -tag:rare prio:>-1 tenant:{tenant},t1,t2 since:1d",),
}
"""What people look for, by what it is called in the report."""

_VIEWS: Final = ("/jobs?tab=dead", "/jobs?tab=waiting", "/jobs?q=arg.text:nothing", "/dead?by=list")
"""What people open beside the declared addresses."""


async def fill(bench: MeasuredStore, jobs: int, letters: int, tenants: int) -> None:
    """Let jobs succeed and fail for all tenants, and leave each of them one that waits."""
    await bench.store.upkeep.migrate()
    await _end(bench, range(jobs), tenants, SUCCEEDED)
    for cause in range(CAUSES):
        failure = Failure(ErrorClass.NON_RETRYABLE, f"Cause{cause}Error", f"no order {cause}")
        await _end(bench, range(cause, letters, CAUSES), tenants, PermanentFailure(failure))
    await bench.fill(tenants, tenants)


async def _end(bench: MeasuredStore, numbers: range, tenants: int, ending: AttemptResult) -> None:
    """Let as many jobs end like this, of the tenants in turn, a few batches at the same time."""
    batches = iter([numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)])

    async def go_on() -> None:
        for batch in batches:
            jobs = (bench.new(f"t{number % tenants}", tags=_tags(number)) for number in batch)
            await bench.enqueue(*jobs)
            while claims := await bench.claim(BATCH):
                await bench.settle(claims, ending)

    await asyncio.gather(*(go_on() for _ in range(_AT_ONCE)))


def measure(place: str, name: str, jobs: int, tenants: int, asks: int) -> Amounts:
    """Fill a store of its own, then ask for everything so many times."""
    bench = MeasuredStore(place, name)
    asyncio.run(_filled(bench, jobs, tenants))
    with (
        closing(make_app(bench.url)) as app,
        worker(bench.url),
        web_server(bench.url) as server,
        closing(server.client()) as client,
    ):
        _wait_until_told(app)
        found = {f"{name}, p95": _p95(client, paths, asks) for name, paths in _addresses(app).items()}
        searches = {name: _p95(client, _searches(app, queries), asks) for name, queries in SEARCHES.items()}
    return {SLOWEST: max(found.values()), **found, **searches}


async def _filled(bench: MeasuredStore, jobs: int, tenants: int) -> None:
    await fill(bench, jobs, jobs // 10, tenants)
    await bench.store.upkeep.aclose()


def _wait_until_told(app: Fairlane) -> None:
    """Wait until the worker's duties have told what happened during the filling: that goes on for a while."""
    while asyncio.run(_untold(app)):
        time.sleep(1)


async def _untold(app: Fairlane) -> bool:
    journals: tuple[JournalName, ...] = ("audit", "events")
    asked = [PendingRequest(scope=ALL, journal=journal, limit=1) for journal in journals]
    return any([(await app.client.store.journal.pending(one)).entries for one in asked])


def _tags(number: int) -> tuple[str, ...]:
    return ("rare",) if number % TAGGED == 0 else ()


def _addresses(app: Fairlane) -> Mapping[str, Sequence[str]]:
    """Return the addresses of each page: of one with a name, those of up to a hundred things."""
    declared = {page.path: asyncio.run(_up_to_a_hundred(app, page)) for page in pages()}
    return {**declared, **{path: [path] for path in _VIEWS}}


async def _up_to_a_hundred(app: Fairlane, page: WebPage) -> Sequence[str]:
    return (await addresses_of(app, page))[:100]


def _searches(app: Fairlane, queries: Sequence[str]) -> Sequence[str]:
    """Return the addresses of searches with the names of real jobs in them."""
    jobs = app.jobs.find(limit=100).items
    filled = [
        query.format(tenant=job.tenant, correlation=job.correlation_id, id=job.id)
        for job in jobs
        for query in queries
    ]
    return [f"/api/v1/jobs?{urlencode({'query': query, 'limit': 50})}" for query in filled]


def _p95(client: WebClient, paths: Sequence[str], asks: int) -> Amount:
    client.timed(paths[0])  # what is read once for all pages
    times = [client.timed(paths[number % len(paths)]) for number in range(asks)]
    return Amount(statistics.quantiles(times, n=20)[-1], "ms")
