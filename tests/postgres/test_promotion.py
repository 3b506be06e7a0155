"""A replica that takes over: the URL names both servers, and the store finds the one that writes (S66)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from fairlane.model.errors import StoreUnavailable
from fairlane.store.contract.registry import LeadRequest
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL
from tests.servers.postgres import HASTY, MEMORY, PostgresServer


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and its replica, both running."""
    primary = PostgresServer(*HASTY, "wal_level=replica", "max_wal_senders=4", folder=MEMORY)
    primary.start()
    replica = PostgresServer(*HASTY, folder=MEMORY, following=primary)
    replica.start()
    yield primary, replica
    primary.close()
    replica.close()


@pytest.fixture
async def store(pair: tuple[PostgresServer, PostgresServer]) -> AsyncIterator[PostgresStore]:
    """A store whose URL names the replica first, and asks for the server that writes."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in reversed(pair))
    url = f"postgresql://fairlane@{hosts}/postgres?target_session_attrs=read-write"
    store = PostgresStore(url)
    await store.upkeep.migrate()
    await catch_up(*pair)
    yield store
    await store.upkeep.aclose()


async def catch_up(primary: PostgresServer, replica: PostgresServer) -> None:
    """Let the replica have all that the primary has."""
    with psycopg.connect(primary.url) as here, psycopg.connect(replica.url, autocommit=True) as there:
        reached = here.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        assert reached is not None
        while there.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", reached).fetchone() != (True,):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def writes(store: PostgresStore) -> bool:
    """Write something, until it is taken."""
    while True:
        try:
            reply = await store.registry.lead(LeadRequest(scope=ALL, name="all", worker="w1", lease=1))
        except StoreUnavailable:
            await asyncio.sleep(0.05)
        else:
            return reply.worker == "w1"


async def test_a_store_follows_to_the_replica_that_was_promoted(
    pair: tuple[PostgresServer, PostgresServer], store: PostgresStore
) -> None:
    """S66: by itself, however the old one went."""
    primary, replica = pair
    assert await writes(store)
    primary.kill()
    with psycopg.connect(replica.url, autocommit=True) as admin:
        admin.execute("SELECT pg_promote()")
    assert await writes(store)


async def test_a_server_that_no_longer_writes_is_left(
    pair: tuple[PostgresServer, PostgresServer], store: PostgresStore
) -> None:
    """S66: a connection that still works but leads to the wrong server is not used again."""
    primary, replica = pair
    assert await writes(store)
    with psycopg.connect(primary.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        admin.execute("SELECT pg_reload_conf()")
    with psycopg.connect(replica.url, autocommit=True) as admin:
        admin.execute("SELECT pg_promote()")
        assert await writes(store)
        assert admin.execute("SELECT worker FROM fairlane.lead").fetchall() == [("w1",)]
        place = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlane'"
        assert admin.execute(place).fetchone() == (1,)
