"""Damage what a store derives from its jobs, past the contract. Each damage leaves the jobs as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import apsw

from fairlane.store.contract import Store
from fairlane.store.postgres.statements import quoted

ACME: Final = "queue = 'default' AND tenant = 'acme'"

Damage: TypeAlias = Callable[[Any], Awaitable[None]]


def sqlite(*statements: str) -> Damage:
    """Run these on the file, from another connection."""

    async def damage(store: Any) -> None:
        with apsw.Connection(str(store._location.path)) as other:
            other.set_busy_timeout(5_000)
            for statement in statements:
                other.execute(statement.replace("{acme}", ACME))

    return damage


def postgres(*statements: str) -> Damage:
    """Run these on the server."""

    async def damage(store: Any) -> None:
        for statement in statements:
            named = statement.replace("{schema}", quoted(store._server.schema))
            await store._server.fetch(named.replace("{acme}", ACME))

    return damage


def redis(*keys: str) -> Damage:
    """Lose whole keys, as a server that evicts does. NUL stands between names."""

    async def damage(store: Any) -> None:
        client = store.upkeep._client
        for key in keys:
            name, _, rest = key.partition(":")
            assert await client.ask(
                "DEL", client.keys(name, rest.replace("/", "\0")) if rest else client.keys(name)
            )

    return damage


DAMAGES: Final[Mapping[str, Mapping[str, Damage]]] = {
    "sqlite": {
        "places in line": sqlite("DELETE FROM ready"),
        "a place too many": sqlite(
            "INSERT INTO ready SELECT strand, sort_key - 1, zeroblob(16), seq FROM ready LIMIT 1"
        ),
        "counters": sqlite(
            "UPDATE tenant_queue SET delayed = 0, ready = ready + 3, running = 9 WHERE {acme}"
        ),
        "counters of tasks": sqlite(
            "UPDATE strand SET jobs = jobs + 1, ready = 0, head_key = NULL, head_id = NULL"
        ),
        "the place in the order": sqlite("UPDATE tenant_queue SET is_ready = 0 WHERE {acme}"),
        "the tenant": sqlite(
            "DELETE FROM ready", "DELETE FROM strand", "DELETE FROM tenant_queue WHERE {acme}"
        ),
    },
    "postgres": {
        "places in line": postgres(
            "UPDATE {schema}.strand SET head_key = head_key + 1000000000 WHERE {acme}"
        ),
        "the lines": postgres(
            "UPDATE {schema}.strand SET state = 0, head_key = NULL, head_id = NULL WHERE {acme}"
        ),
        "counters": postgres("UPDATE {schema}.tenant_queue SET delayed = 0, ready = ready + 3 WHERE {acme}"),
        "the place in the order": postgres("UPDATE {schema}.tenant_queue SET state = 0 WHERE {acme}"),
        "the tenant": postgres(
            "DELETE FROM {schema}.strand WHERE {acme}",
            "DELETE FROM {schema}.tenant_queue WHERE {acme}",
        ),
    },
    "redis": {
        "places in line": redis("strand:default/acme/send"),
        "the list of due jobs": redis("delayed:default"),
        "the list of leases": redis("leases"),
        "the list of expiries": redis("expiries"),
        "the order": redis("not_running_index:default", "running_index:default"),
        "the tenants": redis("tenant_queues:default"),
        "all of it": redis(
            "strand:default/acme/send", "delayed:default", "leases", "expiries", "tenant_queues:default"
        ),
    },
}
"""By store: each damage under the name of what is lost or wrong afterwards."""


async def damage(store: Store, name: str, which: str) -> None:
    """Damage a store."""
    await DAMAGES[name][which](store)
