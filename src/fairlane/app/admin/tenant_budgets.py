"""What one tenant has spent of each budget: for pages, which show a tenant nothing of others (S9, S59)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from fairlane.app.admin.budgets import BudgetAccount, account_view, budget_rules_of
from fairlane.app.admin.controls import list_all
from fairlane.model.policy.amounts import to_decimal
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.policy.periods import Per
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.budgets import AccountsRequest, SpendRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantBudget:
    """A budget of which a tenant has spent in the present period, or reserves now.

    `spent` is its own. `account` is the one that its jobs are counted in: its own (`per_tenant`), or that of
    all tenants, which only those get who may see all of them.
    """

    name: str
    ceiling: Decimal | None
    currency: str
    per: Per
    alert_at: Sequence[Decimal]
    per_tenant: bool
    spent: Decimal
    account: BudgetAccount | None


async def tenant_budgets(store: Store, tenant: str, *, sees_others: bool) -> Sequence[TenantBudget]:
    """Return the budgets of which a tenant has spent something, by name."""
    found: list[TenantBudget] = []
    # All tenants may read these rules: a budget is part of what bounds this tenant.
    for view in await list_all(store, Scope.all(), SubjectKind.BUDGET):
        rules = budget_rules_of(view)
        one = await _budget(store, view.subject.name, rules, tenant, sees_others=sees_others)
        if one is not None:
            found.append(one)
    return found


async def _budget(
    store: Store, name: str, rules: BudgetRules, tenant: str, *, sees_others: bool
) -> TenantBudget | None:
    scope = Scope(tenant) if rules.per_tenant else Scope.all()
    reply = await store.budgets.accounts(AccountsRequest(scope=scope, budget=name))
    wanted = tenant if rules.per_tenant else ""
    account = next((one.account for one in reply.accounts if one.tenant == wanted), None)
    if account is None:
        return None
    if rules.per_tenant:
        spent = account.spent
    else:
        request = SpendRequest(scope=Scope(tenant), budget=name, starts_at=account.starts_at)
        spent = sum(more for _, more in (await store.budgets.spend(request)).spent)
    if not spent and not (rules.per_tenant and account.reserved):
        return None
    is_shown = rules.per_tenant or sees_others
    return TenantBudget(
        name=name,
        ceiling=None if rules.ceiling is None or not is_shown else to_decimal(rules.ceiling),
        currency=rules.currency,
        per=rules.per,
        alert_at=tuple(Decimal(share) / 100 for share in rules.alert_at),
        per_tenant=rules.per_tenant,
        spent=to_decimal(spent),
        account=account_view(wanted, account, rules, reply.now) if is_shown else None,
    )
