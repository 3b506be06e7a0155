"""The budgets facet: what is spent and reserved, and who has spent it."""

from __future__ import annotations

from fairlane.model.policy.budget import Account
from fairlane.store.contract.budgets import (
    AccountsReply,
    AccountsRequest,
    Spender,
    SpendReply,
    SpendRequest,
    TenantAccount,
)
from fairlane.store.contract.request import check_page
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.statements import load


class PostgresBudgets:
    """Read budgets; claims and settlements write them."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("budgets", server.schema)

    async def accounts(self, request: AccountsRequest) -> AccountsReply:
        check_page(request.limit)
        await count_reports(self._server)
        now = await self._server.fetch(self._sql.now, self._server.now())
        values = (request.budget, request.after, request.scope.tenant, request.limit)
        rows = await self._server.fetch(self._sql.accounts, now[0][0], *values)
        found = tuple(TenantAccount(tenant, Account(*values)) for tenant, *values in rows)
        return AccountsReply(now[0][0], found)

    async def spend(self, request: SpendRequest) -> SpendReply:
        await count_reports(self._server)
        periods = tuple(at for (at,) in await self._server.fetch(self._sql.periods, request.budget))
        starts_at = request.starts_at
        if starts_at is None:
            starts_at = periods[0] if periods else 0
        rows = await self._server.fetch(self._sql.spend, request.budget, starts_at, request.scope.tenant)
        return SpendReply(starts_at, tuple((Spender(*who), more) for *who, more in rows), periods)


async def count_reports(server: Server) -> None:
    """Count what workers have reported since the last claim."""
    await server.fetch(load("budgets", server.schema).count_reports)


async def forget_spender(server: Server, tenant: str, *, is_running: bool) -> None:
    """Forget a tenant's names; its accounts stay while something of it runs. What was spent stays counted."""
    sql = load("budgets", server.schema)
    ((newest,),) = await server.fetch(sql.newest_report)
    while newest is not None and (await server.fetch(sql.has_reports, newest))[0][0]:
        await count_reports(server)
    async with server.transaction() as connection:
        await connection.execute(sql.lock_gates)
        await connection.execute(sql.forget_claims, tenant)
        if not is_running:
            await connection.execute(sql.forget_accounts, tenant)
    for budget, starts_at in await server.fetch(sql.periods_of, tenant):
        async with server.transaction() as connection:
            await connection.execute(sql.lock_gates)
            await connection.execute(sql.forget_spend, tenant, budget, starts_at)
