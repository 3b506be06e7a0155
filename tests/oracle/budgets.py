"""The budgets facet of the oracle."""

from __future__ import annotations

from fairlane.model.scope import Scope
from fairlane.store.contract.budgets import (
    AccountsReply,
    AccountsRequest,
    BudgetRepairReply,
    BudgetRepairRequest,
    SpendReply,
    SpendRequest,
    TenantAccount,
)
from tests.oracle.core import Core


class OracleBudgets:
    """What was spent."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core

    async def accounts(self, request: AccountsRequest) -> AccountsReply:
        book, now = self._core.books.budgets, self._core.now()
        tenants = sorted(tenant for name, tenant in book.accounts if name == request.budget)
        after = request.after
        found = [
            TenantAccount(tenant, book.account(request.budget, tenant, now))
            for tenant in tenants
            if (after is None or tenant > after) and _sees(request.scope, tenant)
        ]
        return AccountsReply(now, tuple(found[: request.limit]))

    async def spend(self, request: SpendRequest) -> SpendReply:
        spent = self._core.books.budgets.spent
        periods = sorted((at for name, at in spent if name == request.budget), reverse=True)
        starts_at = request.starts_at
        if starts_at is None:
            starts_at = periods[0] if periods else 0
        rows = spent.get((request.budget, starts_at), {})
        found = [(who, more) for who, more in rows.items() if _sees(request.scope, who.tenant)]
        found.sort(key=lambda one: (-one[1], one[0]))
        return SpendReply(starts_at, tuple(found), tuple(periods))

    async def repair(self, request: BudgetRepairRequest) -> BudgetRepairReply:
        """Nothing is ever wrong here: a job ends, and so does what its claim holds."""
        held = self._core.books.budgets.held.values()
        under = (one for one in held if one.budget == request.budget and one.claim.ended_at is None)
        return BudgetRepairReply(sum(_sees(request.scope, one.tenant) for one in under))


def _sees(scope: Scope, tenant: str) -> bool:
    return scope.tenant in {None, tenant}
