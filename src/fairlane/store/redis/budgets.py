"""The budgets facet: what is spent and reserved, and who has spent it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlane.model.policy.budget import account_of
from fairlane.store.contract.budgets import (
    AccountsReply,
    AccountsRequest,
    BudgetFlaw,
    BudgetRepairReply,
    BudgetRepairRequest,
    Spender,
    SpendReply,
    SpendRequest,
    TenantAccount,
    budget_repair_entries,
    budget_repair_reply,
)
from fairlane.store.contract.repair import MAX_COMPARED
from fairlane.store.contract.request import check_page
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.entries import encode_entries
from fairlane.store.redis.records.stored_jobs import PAGE

_read_account: Final = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, int]).decode
_read_spender: Final = msgspec.msgpack.Decoder(tuple[str, str, str]).decode
_read_claim: Final = msgspec.msgpack.Decoder(tuple[str, str, str, str, str, int, int, int, int]).decode
_CLAIM_TENANT: Final = 3


class RedisBudgets:
    """Read and repair budgets; claims and settlements write them."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def accounts(self, request: AccountsRequest) -> AccountsReply:
        check_page(request.limit)
        start = "-" if request.after is None else f"({request.after}"
        only = "" if request.scope.tenant is None else f"={request.scope.tenant}"
        now, *found = await self._client.run("budgets/accounts", request.budget, start, only, request.limit)
        return AccountsReply(now, tuple(map(_account, found[::2], found[1::2])))

    async def spend(self, request: SpendRequest) -> SpendReply:
        ask, keys = self._client.ask, self._client.keys
        periods = [
            int(at) for at in await ask("ZRANGE", keys("budget_spend_periods", request.budget), 0, -1, "REV")
        ]
        starts_at = request.starts_at
        if starts_at is None:
            starts_at = periods[0] if periods else 0
        stored = await ask("HGETALL", keys("budget_spend", request.budget, str(starts_at)))
        spent = [(Spender(*_read_spender(who)), int(more)) for who, more in stored.items()]
        mine = [one for one in spent if request.scope.covers(one[0].tenant)]
        mine.sort(key=lambda one: (-one[1], one[0]))
        return SpendReply(starts_at, tuple(mine), tuple(periods))

    async def repair(self, request: BudgetRepairRequest) -> BudgetRepairReply:
        only = "" if request.scope.tenant is None else f"={request.scope.tenant}"
        entries = encode_entries("audit", budget_repair_entries(request))
        values = (request.budget, only, int(request.restores), MAX_COMPARED, entries)
        claims, *flaws = await self._client.run("budgets/repair", *values)
        if claims < 0:
            return BudgetRepairReply(None)
        found = (_flaw(flaws[at : at + 4]) for at in range(0, len(flaws), 4))
        return budget_repair_reply(request, claims, found)


async def forget_spender(client: RedisClient, tenant: str, *, is_running: bool) -> None:
    """Forget a tenant's names; its accounts stay while something of it runs. What was spent stays counted."""
    ask, keys = client.ask, client.keys
    await _forget_claims(client, tenant)
    for budget in [name.decode() for name in await ask("HKEYS", keys("budget_periods"))]:
        if not is_running:
            await client.run("budgets/forget_account", budget, tenant)
        for period in await ask("ZRANGE", keys("budget_spend_periods", budget), 0, -1):
            spenders = await ask("HKEYS", keys("budget_spend", budget, period.decode()))
            mine = [one for one in spenders if _read_spender(one)[1] == tenant]
            if mine:
                await client.run("budgets/forget_spend", budget, period, *mine)


async def _forget_claims(client: RedisClient, tenant: str) -> None:
    """Remove a tenant's claims that somebody else than their workers has ended: those are never changed."""
    ask, claims, ended = client.ask, client.keys("budget_claims"), client.keys("budget_claims_ended")
    start, names = 0, [b""]
    while names:
        names = await ask("ZRANGE", ended, start, start + PAGE - 1)
        stored = await ask("HMGET", claims, *names) if names else []
        mine = [name for name, claim in zip(names, stored, strict=True) if _is_of(claim, tenant)]
        if mine:
            await ask("HDEL", claims, *mine)
            await ask("ZREM", ended, *mine)
        start += len(names) - len(mine)


def _is_of(claim: bytes | None, tenant: str) -> bool:
    return claim is not None and _read_claim(claim)[_CLAIM_TENANT] == tenant


def _flaw(values: list[Any]) -> BudgetFlaw:
    tenant, where, stored, right = values
    return BudgetFlaw(tenant.decode(), where.decode(), stored, right)


def _account(tenant: bytes, stored: bytes) -> TenantAccount:
    return TenantAccount(tenant.decode(), account_of(*_read_account(stored)))
