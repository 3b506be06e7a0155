"""The outbox gives users of Redis what a Redis server cannot: a job that is there if their transaction is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from fairlane import Fairlane, Outbox, Relay, Task
from fairlane.model.errors import StoreUnavailable
from fairlane.outbox.table import Dialect
from tests.app.world import note
from tests.contract.world import World
from tests.redis.relay_child import connect, style
from tests.servers import postgres
from tests.servers.valkey import ValkeyServer

SCHEMA = f"shop_{os.getpid()}"


class Shop(NamedTuple):
    """An application and its task."""

    app: Fairlane
    task: Task[..., None]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return an application's database with an outbox in it, and nothing else of ours."""
    dialect: Dialect = request.param
    place = str(tmp_path / "shop.db")
    if dialect == "postgresql":
        place = f"{postgres.shared_url()} {SCHEMA}"
        with psycopg.connect(postgres.shared_url(), autocommit=True) as admin:
            admin.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
            admin.execute(f"CREATE SCHEMA {SCHEMA}".encode())
    do(place, Outbox.ddl(dialect))
    yield place
    if dialect == "postgresql":
        do(place, f"DROP SCHEMA {SCHEMA} CASCADE")


def do(place: str, sql: str) -> None:
    """Change the database."""
    db = connect(place)
    db.execute(sql)
    db.commit()
    db.close()


def rows(place: str) -> int:
    """Count what waits in the outbox."""
    db = connect(place)
    (found,) = db.execute("SELECT count(*) FROM fairlane_outbox").fetchone()
    db.close()
    return int(found)


@pytest.fixture
def shop(server: ValkeyServer) -> Iterator[Shop]:
    """An application whose jobs are in Redis."""
    app = Fairlane(server.url)
    yield Shop(app, app.task(name="note")(note))
    app.close()


def add(shop: Shop, place: str, number: int, *, commit: bool = True) -> set[Any]:
    """Add jobs to the outbox in a transaction of the application."""
    db = connect(place)
    call = shop.task.using(tenant="acme").bind(1)
    ids = Outbox(shop.app, paramstyle=style(place)).add_many(db.execute, [call] * number)
    if commit:
        db.commit()
    else:
        db.rollback()
    db.close()
    return set(ids)


def kill_between(store: str, place: str) -> None:
    """Kill a relay when the store has the jobs, and before it can remove their rows."""
    command = [sys.executable, "-m", "tests.redis.relay_child", store, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as relay:  # noqa: S603 (our own)
        assert relay.stdout is not None
        assert relay.stdout.readline() == b"stored\n"
        relay.kill()


async def test_a_relay_that_was_killed_between_its_steps_makes_no_job_twice(
    world: World, server: ValkeyServer, shop: Shop, database: str
) -> None:
    """S15: the store had the jobs, the rows were still there; more than one script takes."""
    ids = add(shop, database, 130)
    add(shop, database, 2, commit=False)
    kill_between(server.url, database)
    assert {job.id for job in await world.find_all()} == ids
    assert rows(database) == 130
    await world.settle(await world.claim_one())  # one of them has even run since
    relay = Relay(shop.app, lambda: connect(database), paramstyle=style(database))
    assert await asyncio.to_thread(relay.drain) == 130
    found = await world.find_all()
    assert (len(found), {job.id for job in found}) == (130, ids)
    assert rows(database) == 0


async def test_an_outage_of_the_store_costs_no_row(
    world: World, server: ValkeyServer, shop: Shop, database: str
) -> None:
    """S66: nothing is removed that the store does not have; when it is back, all of it comes."""
    ids = add(shop, database, 3)
    server.kill()
    relay = Relay(shop.app, lambda: connect(database), paramstyle=style(database))
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(relay.drain)
    assert rows(database) == 3
    server.start()
    assert await asyncio.to_thread(relay.drain) == 3
    assert {job.id for job in await world.find_all()} == ids
