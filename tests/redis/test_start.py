"""What a client or a worker does before its first call: look at the server, refuse it, or warn once."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest
from redis import Redis

from fairlane.model.errors import StoreError
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.opening import open_store
from fairlane.store.redis import diagnosis
from tests.contract.world import ALL, World
from tests.servers.valkey import ValkeyServer

EVICTING = {"maxmemory": "500mb", "maxmemory-policy": "allkeys-lru"}


def configure(client: Redis, **settings: str) -> None:
    """Change a running server."""
    for name, value in settings.items():
        client.config_set(name.replace("_", "-"), value)


async def test_a_server_that_may_throw_all_jobs_away_gets_none(world: World, client: Redis) -> None:
    """Neither a client nor a worker begins; both say what could be lost and what to do."""
    configure(client, **EVICTING)
    words = "allkeys-lru: a full server may throw away all jobs.*Set maxmemory-policy noeviction"
    for begin in (world.enqueue, lambda: world.enqueue_many(100), world.register):
        with pytest.raises(StoreError, match=words) as caught:
            await begin()
        assert not caught.value.retry_safe
    assert client.dbsize() == 0
    configure(client, maxmemory_policy="noeviction")
    await world.enqueue()


async def test_who_is_at_work_is_not_stopped_by_a_setting(
    world: World, server: ValkeyServer, client: Redis
) -> None:
    """Looked at is where clients and workers begin; a job that runs is settled, and `doctor` sees it all."""
    await world.enqueue()
    claim = await world.claim_one()
    configure(client, **EVICTING)
    second = World(open_store(server.url, clock=world.clock), world.clock)
    await second.settle(claim)
    found = await second.store.upkeep.inspect(InspectRequest(scope=ALL))
    assert [one.check for one in found.remarks if one.level == "bad"] == ["eviction"]
    await second.store.upkeep.aclose()


async def test_a_server_that_is_too_old_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own word for its version."""
    monkeypatch.setattr(diagnosis, "OLDEST", (99, 0))
    with pytest.raises(StoreError, match=r"is too old\. Use Redis 7\.0 or Valkey 8"):
        await world.enqueue()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"appendonly": "no"}, "a crash or restart loses everything there is: it writes nothing to a disk"),
        ({"appendonly": "no", "save": "3600 1"}, "loses everything since the last snapshot"),
        ({"appendfsync": "no"}, "a crash of the machine may lose what the system had not written yet"),
        ({"maxmemory-policy": "volatile-lru"}, "a full server may throw away what has a time to live"),
        ({"maxmemory": "900kb"}, "soon new jobs are refused"),
    ],
    ids=str,
)
async def test_what_could_be_lost_is_said_once(
    world: World,
    server: ValkeyServer,
    client: Redis,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, str],
    words: str,
) -> None:
    """By a warning at the start, however many loops and stores the process has."""
    caplog.set_level(logging.WARNING, "fairlane.store")
    configure(client, **settings)
    for _ in range(2):
        other = World(open_store(server.url, clock=world.clock), world.clock)
        await other.register()
        await other.store.upkeep.aclose()
    (message,) = [record.getMessage() for record in caplog.records]
    assert words in message
    assert str(server.socket) in message
    configure(client, maxmemory="0")


async def test_of_a_server_that_is_as_it_should_be_nothing_is_said(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody reads warnings that are always there."""
    await world.register()
    await world.enqueue()
    assert caplog.records == []


async def test_replicas_that_an_enqueue_would_await_in_vain_are_missed_at_the_start(
    world: World, server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    """`?replicas=2` with none: a worker says so, and `doctor` does."""
    other = World(open_store(f"{server.url}?replicas=2", clock=world.clock), world.clock)
    await other.register()
    assert "wait for 2 replicas, and there are 0" in caplog.text
    await other.store.upkeep.aclose()


def test_doctor_says_what_is_bad_and_what_to_do(server: ValkeyServer, client: Redis) -> None:
    """By the command itself."""
    configure(client, **EVICTING)
    command = (sys.executable, "-m", "fairlane", "doctor", "--problems")
    environment = {**os.environ, "FAIRLANE_URL": server.url}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 1
    assert "bad: maxmemory-policy is allkeys-lru: a full server may throw away all jobs" in ran.stdout
    assert "Set maxmemory-policy noeviction" in ran.stdout
