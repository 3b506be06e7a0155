"""The budgets facet: what is spent and reserved, and who has spent it."""

from __future__ import annotations

from fairlane.model.policy.budget import account_of, rolled
from fairlane.store.contract.budgets import (
    AccountsReply,
    AccountsRequest,
    BudgetRepairReply,
    BudgetRepairRequest,
    Spender,
    SpendReply,
    SpendRequest,
    TenantAccount,
)
from fairlane.store.contract.request import check_page
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.budgets import read_period
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction
from fairlane.store.sqlite.upkeep.repair_budget import repair_budget

_SQL = load("budgets")


class SqliteBudgets:
    """Read and repair budgets; claims and settlements write them."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def accounts(self, request: AccountsRequest) -> AccountsReply:
        check_page(request.limit)
        return await self._reader.run(lambda tx: _accounts(tx, request))

    async def spend(self, request: SpendRequest) -> SpendReply:
        return await self._reader.run(lambda tx: _spend(tx, request))

    async def repair(self, request: BudgetRepairRequest) -> BudgetRepairReply:
        return await self._writer.run(lambda tx: repair_budget(tx, request))


def _accounts(tx: Transaction, request: AccountsRequest) -> AccountsReply:
    period = read_period(tx.db, request.budget, tx.now)
    values = (request.budget, request.after, request.scope.tenant, request.limit)
    found = []
    for tenant, *columns in tx.db.execute(_SQL.page, values):
        found.append(TenantAccount(tenant, rolled(account_of(*columns), period, tx.now)))
    return AccountsReply(tx.now, tuple(found))


def _spend(tx: Transaction, request: SpendRequest) -> SpendReply:
    periods = tuple(at for (at,) in all_rows(tx.db, _SQL.periods, (request.budget,)))
    starts_at = request.starts_at
    if starts_at is None:
        starts_at = periods[0] if periods else 0
    rows = all_rows(tx.db, _SQL.spend, (request.budget, starts_at, request.scope.tenant))
    spent = tuple((Spender(*who), more) for *who, more in rows)
    return SpendReply(starts_at, spent, periods)
