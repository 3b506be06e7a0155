"""Hints go by LISTEN and NOTIFY: gathered, between processes, and again after a broken connection (S56)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import psycopg
import pytest

from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import WaitRequest, WakeRequest
from fairlane.store.postgres import wake
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.location import Location
from fairlane.store.postgres.store import PostgresStore
from fairlane.store.postgres.wake import Hint, channel_of, encode_hint
from tests.contract.registry.test_wake import HAPPENINGS, falls_quiet
from tests.contract.world import ALL, World
from tests.servers.postgres import shared_url
from tests.servers.schemas import lent_schema, url_of

HINTS_IN_A_BURST = 2_000


@pytest.fixture(autouse=True)
def _without_a_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody look for itself: what is heard here was told."""
    monkeypatch.setattr(wake, "POLL_SECONDS", 3_600.0)


@pytest.fixture
async def other(schema: str) -> AsyncIterator[PostgresStore]:
    """The same store as another process has it."""
    store = PostgresStore(url_of(schema))
    yield store
    await store.upkeep.aclose()


async def wait(store: PostgresStore, worker: str = "w1", seconds: float = 10) -> bool:
    """Wait for a hint about the default queue."""
    at_most = round(seconds * SECOND)
    request = WaitRequest(scope=ALL, worker=worker, queues=("default",), at_most=at_most)
    return await store.registry.wait(request)


async def tell(store: PostgresStore, queues: tuple[str, ...], workers: tuple[str, ...] = ()) -> None:
    """Leave a hint."""
    await store.registry.wake(WakeRequest(scope=ALL, queues=queues, workers=workers))


async def is_quiet(store: PostgresStore) -> bool:
    """Listen, and hear what is on its way, until nothing comes any more."""
    while await wait(store, seconds=0.05):
        pass
    return True


def listeners(admin: psycopg.Connection) -> list[int]:
    """Return the backends whose last statement was a LISTEN."""
    rows = admin.execute("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").fetchall()
    return [pid for (pid,) in rows]


@pytest.mark.parametrize("name", HAPPENINGS)
async def test_each_happening_tells_another_process(world: World, schema: str, name: str) -> None:
    """S56: whatever wakes a worker in its own process is told to the others, too."""
    prepare, happen = HAPPENINGS[name]
    await prepare(world)
    assert await falls_quiet(world)
    other = PostgresStore(url_of(schema))
    try:
        assert await is_quiet(other)
        heard, _ = await asyncio.gather(wait(other), happen(world))
        assert heard
    finally:
        await other.upkeep.aclose()


async def test_a_hint_reaches_another_process_while_it_waits(
    store: PostgresStore, other: PostgresStore
) -> None:
    """S56: of its queue or for its worker; of another queue it hears nothing."""
    assert await is_quiet(other)
    for queues, workers in ((("default",), ()), ((), ("w1",))):
        waiting = asyncio.ensure_future(wait(other))
        await tell(store, queues, workers)
        assert await waiting
    await tell(store, ("elsewhere",), ("w2",))
    assert not await wait(other, seconds=0.2)


async def test_a_burst_of_hints_is_a_few_notifications(store: PostgresStore, schema: str) -> None:
    """S56: NOTIFY takes a lock that all databases share; one for every enqueue would block everybody."""
    payloads: list[str] = []
    listener = await asyncpg.connect(shared_url())
    await listener.add_listener(channel_of(schema), lambda *arguments: payloads.append(arguments[3]))
    for number in range(HINTS_IN_A_BURST):
        await tell(store, (f"queue{number % 7}",))
        await asyncio.sleep(0)
    await store.upkeep.aclose()
    await listener.execute("SELECT 1")
    await listener.close()
    told = {queue for payload in payloads for queue in wake._decode(payload).queues}
    assert told == {f"queue{number}" for number in range(7)}
    assert len(payloads) < HINTS_IN_A_BURST / 50


async def test_closing_sends_what_is_still_to_be_said(store: PostgresStore, other: PostgresStore) -> None:
    """S56: a process that enqueues and ends at once has told the workers."""
    assert await is_quiet(other)
    await tell(store, ("elsewhere",))
    await tell(store, ("default",))
    await store.upkeep.aclose()
    assert await wait(other)


async def test_a_listener_that_is_cut_off_listens_again(
    store: PostgresStore, other: PostgresStore, admin: psycopg.Connection
) -> None:
    """S56: it looks at once, since a hint may have been lost meanwhile, and hears later hints."""
    assert await is_quiet(other)
    waiting = asyncio.ensure_future(wait(other))
    (listener,) = listeners(admin)
    admin.execute("SELECT pg_terminate_backend(%s)", (listener,))
    assert await waiting
    assert await is_quiet(other)
    assert listeners(admin) not in ([], [listener])
    waiting = asyncio.ensure_future(wait(other))
    await tell(store, ("default",))
    assert await waiting


async def test_a_listener_that_ends_late_takes_no_other_with_it(other: PostgresStore) -> None:
    """S56: one that was given up on a dead network ends minutes after another has taken its place."""
    assert await is_quiet(other)
    hearing = other._server.wake
    listener = hearing._listener
    hearing._on_lost(object())
    assert hearing._listener is listener is not None


async def test_behind_a_pooler_nobody_listens(schema: str, admin: psycopg.Connection) -> None:
    """S56: hints of the own process count all the same, and others are told."""
    behind = PostgresStore(url_of(schema) + "&pgbouncer=transaction")
    beside = PostgresStore(url_of(schema))
    try:
        assert await is_quiet(behind)
        assert listeners(admin) == []
        assert await is_quiet(beside)
        waiting = asyncio.ensure_future(wait(beside))
        await tell(behind, ("default",))
        assert await wait(behind)
        assert await waiting
    finally:
        await behind.upkeep.aclose()
        await beside.upkeep.aclose()


async def test_a_worker_looks_for_itself_after_a_while(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S56: a hint may be lost, so a long wait ends early with the advice to look."""
    assert await is_quiet(store)
    monkeypatch.setattr(wake, "POLL_SECONDS", 0.01)
    assert await wait(store)
    assert not await wait(store, seconds=0.005)


async def test_installations_do_not_hear_each_other(store: PostgresStore) -> None:
    """S9: each schema has a channel of its own."""
    async with lent_schema() as schema:
        foreign = PostgresStore(url_of(schema))
        assert await is_quiet(foreign)
        await tell(store, ("default",))
        assert not await wait(foreign, seconds=0.2)
        await foreign.upkeep.aclose()


async def test_a_process_ignores_its_own_notifications(store: PostgresStore) -> None:
    """S56: it has heard the hint when it was given; an echo would wake its worker for nothing."""
    assert await is_quiet(store)
    await tell(store, ("default",))
    assert await wait(store)
    assert not await wait(store, seconds=0.2)


@pytest.mark.parametrize("schema", ["fairlane", "x" * 63, "ä" * 31])
def test_a_channel_has_a_name_that_the_server_takes(schema: str) -> None:
    """S56: longer ones are cut off without a word, and two installations might then share one."""
    assert len(channel_of(schema).encode()) <= 63
    assert channel_of(schema) != channel_of(schema[:-1] + "y")


def test_a_hint_that_is_too_long_means_everything() -> None:
    """S56: the server takes fewer than 8,000 bytes."""
    short, long = (
        encode_hint(["default"]),
        encode_hint([f"queue{number}" for number in range(2_000)], (), "me"),
    )
    assert wake._decode(short) == Hint(["default"])
    assert wake._decode(long) == Hint(sender="me")


def test_a_hint_without_a_loop_is_only_heard(schema: str) -> None:
    """S56: a thread that works on a connection of its own has no way to tell, and does not fail."""
    server = Server(Location(url_of(schema) + "&pool=1"))
    server.hint(["default"])
    assert asyncio.run(server.wake.wait("w1", ["default"], 1))
