"""A real worker on a server that forgets scripts, cuts connections and dies: it carries on (S66)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from redis import Redis

from fairlane import Fairlane, Job
from fairlane.model.errors import EnqueueUnknown, StoreUnavailable
from tests.acceptance.working import at_work, until
from tests.servers.valkey import ValkeyServer

MANY = 40


@pytest.fixture
async def app(server: ValkeyServer) -> AsyncIterator[Fairlane]:
    """An application whose jobs note that they ran."""
    app = Fairlane(server.url)
    yield app
    await app.aclose()


async def test_a_worker_carries_on_through_all_that_a_server_does(
    app: Fairlane, server: ValkeyServer, client: Redis
) -> None:
    """What runs while the server is away is settled when it is back; every acknowledged job runs."""
    ran: set[int] = set()
    is_open = asyncio.Event()

    async def note(number: int) -> int:
        ran.add(number)
        if number == 0:
            await is_open.wait()
        return number

    task = app.task(name="note")(note)
    jobs: list[Job[int]] = []

    async def add(number: int) -> None:
        while len(jobs) < number:
            with suppress(StoreUnavailable, EnqueueUnknown):
                jobs.append(await task.aenqueue(len(jobs)))

    async with at_work(app):
        await add(MANY)
        await until(lambda: 0 in ran)
        client.script_flush()
        await add(2 * MANY)
        client.client_kill_filter(_type="normal", skipme=True)
        await add(3 * MANY)
        server.kill()
        is_open.set()  # ends now, and cannot be settled
        server.start()
        await add(4 * MANY)
        for number, job in enumerate(jobs):
            assert await job.aresult(60) == number
        first = await jobs[0].arefresh()
        assert [attempt.outcome for attempt in first.attempts] == ["succeeded"]
    assert ran == set(range(4 * MANY))
