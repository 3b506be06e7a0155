"""Damage the accounts of a budget, past the contract. Each damage leaves the jobs as they are."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tests.repair.damage import Damage, postgres, redis, sqlite

_LEFT: Final = b"\1" * 16 + (7).to_bytes(8, "big")
"""A job and a fence that never were."""

_RESERVED, _IS_WAITED_FOR = 3, 5


def _redis_account(place: int, value: int) -> Damage:
    """Write one value of the account of budget `ai`."""

    async def damage(store: Any) -> None:
        client = store.upkeep._client
        key = client.keys("budget_accounts", "ai")
        account = msgspec.msgpack.decode(await client.ask("HGET", key, ""))
        account[place] = value
        await client.ask("HSET", key, "", msgspec.msgpack.encode(account))

    return damage


async def _redis_left_claim(store: Any) -> None:
    client = store.upkeep._client
    claim = ("ai", "", "tag", "acme", "", 20, 0, 0, 0)
    await client.ask("HSET", client.keys("budget_claims"), _LEFT, msgspec.msgpack.encode(claim))
    await _redis_account(_RESERVED, 80)(store)


RESERVES_TOO_MUCH: Final = {
    "sqlite": sqlite("UPDATE budget_account SET reserved = 100"),
    "postgres": postgres("UPDATE {schema}.budget_account SET reserved = 100"),
    "redis": _redis_account(_RESERVED, 100),
}
RESERVES_TOO_LITTLE: Final = {
    "sqlite": sqlite("UPDATE budget_account SET reserved = 0"),
    "postgres": postgres("UPDATE {schema}.budget_account SET reserved = 0"),
    "redis": _redis_account(_RESERVED, 0),
}
ACCOUNT: Final = {
    "sqlite": sqlite("DELETE FROM budget_account"),
    "postgres": postgres("DELETE FROM {schema}.budget_account"),
    "redis": redis("budget_accounts:ai"),
}
CLAIMS: Final = {
    "sqlite": sqlite("DELETE FROM budget_claim"),
    "postgres": postgres("DELETE FROM {schema}.budget_claim"),
    "redis": redis("budget_claims"),
}
_INSERT: Final = (
    "INSERT INTO {schema}budget_claim"
    " (job, fence, budget, account, task, tenant, created_by, estimate, spent, period)"
    " VALUES ({job}, 7, 'ai', '', 'tag', 'acme', '', 20, 0, 0)"
)
LEFT_CLAIM: Final = {
    "sqlite": sqlite(
        _INSERT.replace("{schema}", "").replace("{job}", f"x'{_LEFT[:16].hex()}'"),
        "UPDATE budget_account SET reserved = 80",
    ),
    "postgres": postgres(
        _INSERT.replace("{schema}", "{schema}.").replace("{job}", f"'{_LEFT[:16].hex()}'"),
        "UPDATE {schema}.budget_account SET reserved = 80",
    ),
    "redis": _redis_left_claim,
}
NOT_WAITED_FOR: Final = {
    "sqlite": sqlite("UPDATE budget_account SET is_waited_for = 0"),
    "postgres": postgres("UPDATE {schema}.budget_account SET is_waited_for = false"),
    "redis": _redis_account(_IS_WAITED_FOR, 0),
}
