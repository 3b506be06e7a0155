"""The budgets facet: what is spent and reserved, and who has spent it."""

from __future__ import annotations

from fairlane.model.policy.budget import Account
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
from fairlane.store.postgres.claims.budget_reports import count_reports
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load


class PostgresBudgets:
    """Read and repair budgets; claims and settlements write them."""

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

    async def repair(self, request: BudgetRepairRequest) -> BudgetRepairReply:
        await count_reports(self._server)
        values = (request.budget, request.scope.tenant)
        queues: list[str] = []
        async with self._server.transaction() as connection:
            await connection.execute(self._sql.lock_gates)
            ((now,),) = await connection.fetch(self._sql.now, self._server.now())
            (_, _, claims, _), *rows = await connection.fetch(self._sql.compare, now, *values, MAX_COMPARED)
            if claims is None:
                return BudgetRepairReply(None)
            reply = budget_repair_reply(request, claims, (BudgetFlaw(*row) for row in rows))
            if reply.is_restored:
                accounts = sorted({one.tenant for one in reply.flaws})
                ((queues,),) = await connection.fetch(self._sql.restore, now, *values, accounts)
                entries = budget_repair_entries(request)
                await append_entries(connection, self._server.schema, now, "audit", entries)
        self._server.hint(queues)
        return reply


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
