"""`fairlane doctor` names each setting of a server that harms its jobs, with what to do (S61)."""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from fairlane.store.contract.inspection import InspectRequest, Remark
from fairlane.store.postgres import diagnosis
from fairlane.store.postgres.diagnosis import ServerFacts, remarks
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, SUCCEEDED, World
from tests.servers.postgres import shared_url

WELL = ServerFacts(
    server="18.4",
    version=180_004,
    is_synced=True,
    is_whole=True,
    synchronous_commit="on",
    is_vacuumed=True,
    is_replica=False,
    idle_session_ms=0,
    connections=10,
    own_connections=4,
    max_connections=100,
    is_owner=True,
    days=2,
    in_rest=0,
    deltas=50,
    holder=("session 7 (shop, psql, idle in transaction)", 4),
    dead=("job", 5_000, 100),
)

ILLS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"version": 140_010, "server": "14.10"}, "server", "warn", "PostgreSQL 14.10 is older than 15"),
    ({"is_replica": True}, "server", "bad", "takes no writes"),
    ({"is_synced": False}, "durability", "bad", "may destroy the whole database"),
    ({"is_whole": False}, "durability", "bad", "may destroy the whole database"),
    ({"synchronous_commit": "off"}, "durability", "warn", "may lose the last moments"),
    ({"is_vacuumed": False}, "vacuum", "bad", "grows forever"),
    ({"holder": ("session 7", 420)}, "snapshots", "warn", "session 7 has kept all dead rows"),
    ({"holder": ("session 7", 7_200)}, "snapshots", "bad", "for 120 minutes"),
    (
        {"dead": ("tenant_queue", 250_000, 1_000)},
        "vacuum",
        "warn",
        "table tenant_queue has 250,000 dead rows",
    ),
    ({"connections": 95}, "connections", "warn", "95 of 100 connections are in use, 4 of them by Fairlane"),
    ({"idle_session_ms": 60_000}, "connections", "warn", "workers that only listen are cut off"),
    ({"days": 1}, "history", "warn", "days of history are missing"),
    ({"in_rest": 12}, "history", "warn", "12 finished jobs are in none"),
    ({"deltas": 30_000}, "deltas", "warn", "30,000 deltas wait"),
    ({"is_owner": False}, "role", "warn", "does not own the tables"),
]


async def inspected(store: PostgresStore, check: str) -> list[Remark]:
    """Return what the store says of one thing."""
    found = await store.upkeep.inspect(InspectRequest(scope=ALL))
    return [one for one in found.remarks if one.check == check]


def test_a_healthy_server_is_said_to_be() -> None:
    """Every check has a line, and none asks for anything to be done."""
    assert {one.check for one in remarks(WELL)} >= {"server", "durability", "snapshots", "vacuum", "history"}
    assert {(one.level, one.advice) for one in remarks(WELL)} == {("ok", "")}


@pytest.mark.parametrize(("facts", "check", "level", "words"), ILLS)
def test_each_ill_is_named_with_what_to_do(facts: dict[str, Any], check: str, level: str, words: str) -> None:
    """One finding more than on a healthy server, and no other is worse for it."""
    (found,) = [one for one in remarks(msgspec.structs.replace(WELL, **facts)) if one.level != "ok"]
    assert (found.check, found.level) == (check, level)
    assert words in found.what
    assert found.advice


async def test_a_real_server_is_read(store: PostgresStore, admin: psycopg.Connection) -> None:
    """The version is the server's, and a finding says that the tests' server is not durable."""
    (server,) = await inspected(store, "server")
    assert server.what == f"PostgreSQL {admin.info.parameter_status('server_version')}"
    (durability,) = await inspected(store, "durability")
    assert (durability.level == "bad") is (admin.execute("SHOW fsync").fetchone() == ("off",))


async def test_who_holds_an_old_snapshot_is_named(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By process id, user, application and state, as an operator needs it to end it."""
    monkeypatch.setattr(diagnosis, "LONG_SNAPSHOT", 0)
    with psycopg.connect(shared_url(), application_name="report") as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        (found,) = await inspected(store, "snapshots")
        assert found.level == "warn"
        pid = holder.info.backend_pid
        assert found.what.startswith(f"session {pid} (fairlane, report, idle in transaction) has kept")


async def test_a_day_that_was_not_made_is_noticed(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """What was settled on it is counted, and making the days mends it."""
    for (day,) in admin.execute(
        SQL("SELECT day::text FROM {}.history_days()").format(Identifier(schema))
    ).fetchall():
        admin.execute(SQL("DROP TABLE {}").format(SQL(day)))
    await world.enqueue()
    await world.run(SUCCEEDED)
    assert isinstance(world.store, PostgresStore)
    (found,) = await inspected(world.store, "history")
    assert found.what == "days of history are missing; 1 finished jobs are in none."
    await world.store.upkeep.migrate()
    (mended,) = await inspected(world.store, "history")
    assert mended.level == "ok"


async def test_days_of_another_time_are_not_taken_for_this_one(world: World) -> None:
    """As after a clock that was months wrong: there are days ahead, and none of them is today."""
    world.clock.advance(-60 * 86_400)
    assert isinstance(world.store, PostgresStore)
    (found,) = await inspected(world.store, "history")
    assert found.level == "warn"
