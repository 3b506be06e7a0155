"""The whole product on a PostgreSQL URL: the application, the command line, tests of applications, forks."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from click.testing import CliRunner

from fairlane import Fairlane, State, Task
from fairlane.cli.main import cli
from fairlane.testing import NotForTests, Trial, dedicate
from fairlane.worker.worker import WorkerRuntime
from tests.servers.schemas import url_of


class Shop:
    """An application on a store, used by plain callers, and the command line."""

    def __init__(self, url: str) -> None:
        """Have one task, which fails for nobody."""
        self.url = url
        self.app = Fairlane(url, config={})

        @self.app.task(name="greet", max_attempts=1)
        def greet(name: str) -> str:
            if name == "nobody":
                raise ValueError(name)
            return f"hello {name}"

        self.greet: Task[..., str] = greet

    def enqueue(self, name: str) -> Any:
        """Enqueue a greeting."""
        return self.greet.using(tenant="acme").enqueue(name)

    def work(self) -> None:
        """Run everything that waits, by a real worker."""

        async def burst() -> None:
            await WorkerRuntime(self.app, burst=True).run()
            await self.app.client.aclose_here()

        asyncio.run(burst())

    def run(self, *words: str) -> list[dict[str, Any]]:
        """Run a command that must succeed, and read its answer; `doctor` finds what it finds."""
        ran = CliRunner().invoke(cli, ["--url", self.url, *words, "--json"])
        assert ran.exit_code == 0 or words == ("doctor",), (words, ran.stdout, ran.stderr, ran.exception)
        return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture
def shop(schema: str) -> Iterator[Shop]:
    """A shop on a migrated, empty store, which has the days of history of today, too."""
    shop = Shop(url_of(schema))
    shop.run("migrate")
    yield shop
    shop.app.close()


def test_an_application_sends_and_a_worker_runs(shop: Shop) -> None:
    """From a plain call to its result, and to a dead letter."""
    good, bad = shop.enqueue("ann"), shop.enqueue("nobody")
    shop.work()
    assert good.result(timeout=10) == "hello ann"
    assert bad.refresh().state is State.DEAD
    assert shop.app.jobs.count()[State.SUCCEEDED] == 1


def test_the_command_line_looks_and_steers(shop: Shop) -> None:
    """Every command that asks a store, on one that has jobs in every home."""
    shop.enqueue("ann")
    shop.enqueue("nobody")
    shop.work()
    waiting = shop.enqueue("bob")
    assert len(shop.run("jobs", "list")) == 3
    assert shop.run("jobs", "show", str(waiting.id))[0]["state"] == "ready"
    assert shop.run("jobs", "peek", "default")[0]["id"] == str(waiting.id)
    assert shop.run("explain", str(waiting.id))
    assert [one["name"] for one in shop.run("queues", "list")] == ["default"]
    assert shop.run("tenants", "list")
    shop.run("pause", "queue", "default", "--note", "stock-taking")
    shop.run("resume", "queue", "default")
    shop.run("cancel", str(waiting.id), "--note", "not wanted")
    assert shop.run("jobs", "show", str(waiting.id))[0]["state"] == "cancelled"
    assert shop.run("workers") == []
    found = {one["check"]: one["level"] for one in shop.run("doctor")}
    assert found["schema"] == found["counters"] == found["history"] == "ok"


def test_threads_share_an_application(shop: Shop) -> None:
    """Plain callers of many threads come in by one loop and its pool."""
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(shop.enqueue, [f"name {number}" for number in range(40)]))
    assert len({job.id for job in jobs}) == 40
    assert shop.app.jobs.count()[State.READY] == 40


def test_a_forked_child_has_connections_of_its_own(shop: Shop) -> None:
    """The parent's stay the parent's: closing them in the child would end its sessions."""
    shop.enqueue("before")
    child = os.fork()
    if not child:
        code = 1
        try:
            shop.enqueue("in the child")
            shop.app.close()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    shop.enqueue("after")
    assert shop.app.jobs.count()[State.READY] == 3


def test_an_application_is_tested_on_a_store_of_its_kind(shop: Shop, schema: str) -> None:
    """Once the store is dedicated to tests; one that has jobs cannot be."""
    asyncio.run(dedicate(shop.url))
    with Trial(shop.app, url_of(schema)) as trial:
        job = shop.greet.using(tenant="acme", delay=60).enqueue("ann")
        assert trial.run() == 0
        assert trial.run(ahead=60) == 1
        assert job.refresh().result() == "hello ann"


def test_a_store_with_jobs_is_not_for_tests(shop: Shop) -> None:
    """Nothing is done to it."""
    shop.enqueue("ann")
    with pytest.raises(NotForTests, match="holds jobs"):
        asyncio.run(dedicate(shop.url))
    with pytest.raises(NotForTests), Trial(shop.app, shop.url):
        pass
