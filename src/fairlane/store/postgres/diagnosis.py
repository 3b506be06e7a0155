"""Diagnose a server and a schema on it: what is wrong, and what to do about it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from fairlane.store.contract.inspection import Remark
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.statements import load

OLDEST: Final = 15
LONG_SNAPSHOT: Final = 300
"""Seconds for which nobody should keep dead rows from being removed."""
_VERY_LONG_SNAPSHOT: Final = 3_600
_MANY_DEAD: Final = 100_000
_MANY_DELTAS: Final = 20_000
_MANY_CONNECTIONS: Final = 0.9
_DAYS: Final = 2
"""Today and tomorrow: each has a day of history if a worker does the duties."""


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A server and a schema at one moment. `holder`: who keeps dead rows alive, and for how many seconds."""

    server: str
    version: int
    is_synced: bool
    is_whole: bool
    synchronous_commit: str
    is_vacuumed: bool
    is_replica: bool
    idle_session_ms: int
    connections: int
    own_connections: int
    max_connections: int
    is_owner: bool
    days: int
    in_rest: int
    deltas: int
    holder: tuple[str, int] | None = None
    dead: tuple[str, int, int] | None = None


async def read_facts(server: Server, connection: Connection) -> ServerFacts:
    """Read all that `remarks` judges."""
    sql = load("diagnosis", server.schema)
    found = dict(await connection.fetchrow(sql.server))
    found.update(await connection.fetchrow(sql.schema, server.now()))
    holder = await connection.fetchrow(sql.holder)
    dead = await connection.fetchrow(sql.dead, server.schema)
    return ServerFacts(**found, holder=holder and tuple(holder), dead=dead and tuple(dead))


def remarks(facts: ServerFacts) -> tuple[Remark, ...]:
    """Return what is to be said about these facts."""
    return (*_server(facts), *_durability(facts), *_vacuum(facts), *_connections(facts), *_schema(facts))


def _server(facts: ServerFacts) -> Iterator[Remark]:
    if facts.version // 10_000 < OLDEST:
        what = f"PostgreSQL {facts.server} is older than {OLDEST}, the oldest that is tested."
        yield Remark("server", "warn", what, "Upgrade the server.")
    else:
        yield Remark("server", "ok", f"PostgreSQL {facts.server}")
    if facts.is_replica:
        what = "the server is a replica, which takes no writes."
        advice = "Name both servers in the URL, with ?target_session_attrs=read-write."
        yield Remark("server", "bad", what, advice)


def _durability(facts: ServerFacts) -> Iterator[Remark]:
    if not facts.is_synced or not facts.is_whole:
        what = "fsync or full_page_writes is off: a power cut may destroy the whole database."
        yield Remark("durability", "bad", what, "Turn both on, and reload the server.")
    elif facts.synchronous_commit == "off":
        what = "synchronous_commit is off: a crash of the server may lose the last moments."
        advice = "Turn it on for this role (ALTER ROLE … SET synchronous_commit = on) if that matters."
        yield Remark("durability", "warn", what, advice)
    else:
        setting = facts.synchronous_commit
        yield Remark(
            "durability", "ok", f"an acknowledged job survives a crash (synchronous_commit={setting})"
        )


def _vacuum(facts: ServerFacts) -> Iterator[Remark]:
    if not facts.is_vacuumed:
        what = "autovacuum or track_counts is off: every table grows forever."
        yield Remark("vacuum", "bad", what, "Turn both on, and reload the server.")
    if facts.holder is not None and facts.holder[1] >= LONG_SNAPSHOT:
        who, seconds = facts.holder
        what = f"{who} has kept all dead rows from being removed for {seconds // 60} minutes."
        advice = (
            "End it if it is forgotten: commit, pg_terminate_backend(pid), ROLLBACK PREPARED or "
            "pg_drop_replication_slot(name). idle_in_transaction_session_timeout ends forgotten ones."
        )
        yield Remark("snapshots", "bad" if seconds >= _VERY_LONG_SNAPSHOT else "warn", what, advice)
    else:
        yield Remark("snapshots", "ok", "nobody keeps dead rows from being removed for long")
    if facts.dead is not None and facts.dead[1] > max(_MANY_DEAD, facts.dead[2]):
        name, dead, live = facts.dead
        what = f"table {name} has {dead:,} dead rows and {live:,} live ones."
        advice = "Autovacuum does not keep up: end old snapshots, give it more workers, or run VACUUM now."
        yield Remark("vacuum", "warn", what, advice)
    elif facts.is_vacuumed:
        yield Remark("vacuum", "ok", "autovacuum keeps up")


def _connections(facts: ServerFacts) -> Iterator[Remark]:
    used = f"{facts.connections} of {facts.max_connections} connections are in use"
    own = f"{facts.own_connections} of them by Fairlane"
    if facts.connections >= _MANY_CONNECTIONS * facts.max_connections:
        advice = "Raise max_connections, use fewer processes, or a smaller ?pool= in their URLs."
        yield Remark("connections", "warn", f"{used}, {own}.", advice)
    else:
        yield Remark("connections", "ok", "the server can take more connections")
    if facts.idle_session_ms:
        what = f"idle_session_timeout is {facts.idle_session_ms} ms: workers that only listen are cut off."
        advice = "Exempt the role: ALTER ROLE … SET idle_session_timeout = 0."
        yield Remark("connections", "warn", what, advice)


def _schema(facts: ServerFacts) -> Iterator[Remark]:
    if facts.days < _DAYS or facts.in_rest:
        what = f"days of history are missing; {facts.in_rest:,} finished jobs are in none."
        advice = "Let a worker do the duties, or run `fairlane scheduler`, as the owner of the tables."
        yield Remark("history", "warn", what, advice)
    else:
        yield Remark("history", "ok", "the days of history are created ahead")
    if facts.deltas >= _MANY_DELTAS:
        what = f"{facts.deltas:,} deltas wait to be applied to the tenants' queues."
        yield Remark("deltas", "warn", what, "Claims apply them: does a worker serve every queue?")
    else:
        yield Remark("deltas", "ok", "the tenants' queues are up to date")
    if not facts.is_owner:
        what = "this role does not own the tables: with it, history is not dropped and nothing is migrated."
        yield Remark("role", "warn", what, "Run `fairlane migrate` and the duties as their owner.")
