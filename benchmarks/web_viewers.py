"""Measure what open dashboards cost: the jobs of a worker beside them, and the memory of the web process."""

from __future__ import annotations

import asyncio
import statistics
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Final
from urllib.parse import quote

from benchmarks.figures import Amounts
from benchmarks.measured_store import MeasuredStore
from benchmarks.web_app import make_app
from benchmarks.web_server import HOST, WebServer, start, web_server
from benchmarks.worker import pss, task_named
from fairlane import chunks
from fairlane.lab.bench.report import Amount, ratio

KEPT: Final = "jobs/s of a worker with the dashboards open, against none"
MEMORY: Final = "memory of the web process, with the dashboards open"
TENANTS: Final = 100

_OPENED: Final = (
    "/",
    "/tenants",
    "/queues",
    "/queues/work",
    "/jobs",
    "/jobs?tab=running",
    "/dead",
    "/workers",
)
_PAIRS: Final = 3


class Viewer(threading.Thread):
    """An open page: a stream that is read until it is closed, and how many messages came."""

    def __init__(self, server: WebServer, page: str) -> None:
        super().__init__(daemon=True)
        self.messages = 0
        self._connection = HTTPConnection(HOST, server.port, timeout=60)
        path, headers = f"/live?page={quote(page, safe='')}", {"Authorization": f"Bearer {server.token}"}
        self._connection.request("GET", path, headers=headers)
        self._answer = self._connection.getresponse()
        if self._answer.status != 200:  # noqa: PLR2004 (as HTTP says)
            message = f"the stream of {page} answered {self._answer.status}"
            raise RuntimeError(message)

    def run(self) -> None:
        """Read until the end."""
        while line := self._answer.readline():
            self.messages += line.startswith(b"event: patch")

    def close(self) -> None:
        """End the stream, and wait until nothing is read any more."""
        if self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self.join()
        self._connection.close()


def measure(place: str, name: str, jobs: int, viewers: int) -> Amounts:
    """Let a worker run as many jobs without viewers and beside them, in turns, on a store of its own."""
    bench = MeasuredStore(place, name)
    asyncio.run(_made(bench))
    alone, beside, memory, messages = [], [], 0.0, 0
    with web_server(bench.url) as server:
        for _ in range(_PAIRS):
            alone.append(_jobs_per_second(bench.url, jobs))
            with _open(server, viewers) as opened:
                beside.append(_jobs_per_second(bench.url, jobs))
                memory = max(memory, pss(server.pid))
            messages += sum(one.messages for one in opened)
    calm, watched = (Amount(statistics.median(paces), "jobs/s") for paces in (alone, beside))
    return {
        "jobs/s of a worker, no dashboard open": calm,
        f"jobs/s of a worker, {viewers} dashboards open": watched,
        KEPT: ratio(watched, calm),
        MEMORY: Amount(memory, "MB"),
        "changes that they were sent": Amount(messages, ""),
    }


async def _made(bench: MeasuredStore) -> None:
    await bench.store.upkeep.migrate()
    await bench.store.upkeep.aclose()


@contextmanager
def _open(server: WebServer, viewers: int) -> Iterator[list[Viewer]]:
    with ExitStack() as stack:
        opened = [Viewer(server, _OPENED[number % len(_OPENED)]) for number in range(viewers)]
        for one in opened:
            stack.callback(one.close)
            one.start()
        yield opened


def _jobs_per_second(url: str, jobs: int) -> float:
    """Enqueue jobs, run a worker until they are done, and return its pace by the clock of the store."""
    with closing(make_app(url)) as app:
        since = datetime.now(UTC) - timedelta(seconds=1)
        empty = task_named(app, "empty")
        for numbers in chunks(range(jobs)):
            app.enqueue_many(empty.using(tenant=f"t{number % TENANTS}").bind() for number in numbers)
        process = start("worker", "--burst", url=url)
        told = process.communicate()[1]
        if process.returncode:
            message = f"the worker ended with {process.returncode}: {told}"
            raise RuntimeError(message)
        ended = [job.attempts[-1] for job in app.jobs.each(queue="work", since=since)]
    began_at = min(attempt.started_at for attempt in ended)
    ended_at = max(attempt.ended_at for attempt in ended if attempt.ended_at is not None)
    return len(ended) / (ended_at - began_at).total_seconds()
