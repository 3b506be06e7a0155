"""Description B, a store that is nearly full: it is told, and history goes early (FM-7)."""

from __future__ import annotations

import logging
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final
from uuid import UUID

import msgspec
import pytest
from redis import Redis

from fairlane.app.settings import Settings, settings_of
from fairlane.duties import prune as pruning
from fairlane.duties.diagnose import Diagnose
from fairlane.duties.prune import BETWEEN, EVERY, Prune
from fairlane.model.instants import DAY, SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.duties.test_passes import Beside
from tests.oracle.clock import DrivenClock
from tests.servers.valkey import MEMORY, ValkeyServer
from tests.stores import STORES

DAYS: Final = 6
JOBS_A_DAY: Final = 10
PAYLOAD: Final = 75_000
FILLER: Final = 30_000_000
"""What else is on a server: its memory also holds buffers, which come and go."""

KEEP: Final = Retention(succeeded=99 * DAY, cancelled=99 * DAY, results=99 * DAY, keys=99 * DAY)


@contextmanager
def _own_server() -> Iterator[ValkeyServer]:
    server = ValkeyServer(folder=MEMORY)
    try:
        server.start()
        yield server
    finally:
        server.remove()


class Place:
    """A store with a past, and a way to limit it: by its server, or by our setting."""

    def __init__(self, world: World, server: ValkeyServer | None) -> None:
        """Begin empty."""
        self.world = world
        self._server = server
        self.past: list[list[UUID]] = []
        self.live: list[UUID] = []

    async def fill(self) -> None:
        """Let jobs succeed on each day, with what cannot be made smaller; some live, and one is dead."""
        world = self.world
        for _ in range(DAYS):
            await world.prune()  # as the duty does, each minute
            self.past.append([await self._run() for _ in range(JOBS_A_DAY)])
            world.advance(DAY / SECOND)
        for number, state in enumerate((State.DELAYED, State.READY, State.RUNNING, State.DEAD)):
            claim = await world.bring_to(state, queue=f"live-{number}", payload=_noise())
            self.live.append(claim.job.id)

    async def _run(self) -> UUID:
        await self.world.enqueue(payload=_noise())
        return (await self.world.run()).id

    async def used(self) -> int:
        """Return how large the store is."""
        size = (await self.world.store.upkeep.inspect(InspectRequest(scope=ALL))).size
        assert size is not None
        return size.used

    def limited(self, limit: int) -> Settings:
        """Set the limit; return the settings."""
        retention = KEEP
        if self._server is None:
            retention = msgspec.structs.replace(KEEP, store_limit=limit)
        else:
            with Redis.from_url(self._server.url) as client:
                client.config_set("maxmemory", limit)
        return msgspec.structs.replace(settings_of(), retention=retention)

    async def told(self) -> list[str]:
        """Return the kinds of events about the store's size."""
        entries = await self.world.appended("events")
        return [one.kind for one in entries if one.subject == "size of the store"]


def _noise() -> bytes:
    return b'"' + b64encode(os.urandom(PAYLOAD)) + b'"'


@pytest.fixture(params=["oracle", "postgres", "redis", "sqlite"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """A store of each kind; Redis on a server of its own, with more on it."""
    clock = DrivenClock()
    async with AsyncExitStack() as stack:
        server = None
        if request.param == "redis":
            server = stack.enter_context(_own_server())
            with Redis.from_url(server.url) as client:
                client.set("filler", b"x" * FILLER)
            store = open_store(server.url, clock=clock)
            stack.push_async_callback(store.upkeep.aclose)
        else:
            store = await stack.enter_async_context(STORES[request.param](clock))
        made = Place(World(store, clock), server)
        await made.fill()
        yield made
        await made.world.check_invariants()


async def test_001_fm_7_a_store_that_is_nearly_full_is_told_and_loses_its_oldest_history(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Above 80 % a warning, above 85 % an alert; then the oldest goes until it is below, and nothing live."""
    monkeypatch.setattr(pruning, "AT_ONCE", 4)
    world = place.world
    used = await place.used()
    settings = place.limited(used * 100 // 83)
    await Diagnose(Beside(world), settings)(world.store)
    assert await place.told() == ["finding"]
    assert await Prune(settings.retention)(world.store) == EVERY
    assert all([await world.is_known(id) for day in place.past for id in day])

    limit = await place.used() * 100 // 88
    settings = place.limited(limit)
    await Diagnose(Beside(world), settings)(world.store)
    assert await place.told() == ["finding", "finding_critical"]
    caplog.set_level(logging.WARNING, "fairlane.duties")
    duty, passes = Prune(settings.retention), 1
    while await duty(world.store) == BETWEEN:
        passes += 1
        assert passes < 200
    assert passes > 1
    assert await place.used() <= limit * 0.86  # beside the jobs, a server has buffers
    left = [await world.is_known(id) for day in place.past for id in day]
    assert left == sorted(left), "not the oldest went"
    assert 0 < sum(left) < len(left)
    assert all([await world.is_known(id) for id in place.live])
    logged = [one.__dict__ for one in caplog.records]
    gone = [one["succeeded"] for one in logged if one.get("event") == "pruned_early"]
    assert sum(gone) == len(left) - sum(left)


async def test_001_fm_7_what_is_too_full_of_live_jobs_loses_no_more_than_history(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The passes end, live jobs and dead letters stay, and the alert does, too."""
    monkeypatch.setattr(pruning, "AT_ONCE", 25)
    world = place.world
    settings = place.limited(FILLER * 8)  # a server must not refuse what the duties write
    settings = msgspec.structs.replace(
        settings, retention=msgspec.structs.replace(settings.retention, store_limit=1)
    )
    duty = Prune(settings.retention)
    for _ in range(200):
        if await duty(world.store) == EVERY:
            break
    else:
        pytest.fail("it never ends")
    assert not any([await world.is_known(id) for day in place.past for id in day])
    assert all([await world.is_known(id) for id in place.live])
    await Diagnose(Beside(world), settings)(world.store)
    assert await place.told() == ["finding_critical"]
