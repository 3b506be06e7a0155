"""`app.budgets`: what is spent of each budget, by whom, and run-time overrides of its ceiling (S59, S114).

All tenants share the budgets, so from inside a tenant they can be neither read nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from fairlane.app.admin.controls import list_all
from fairlane.app.admin.shared_limits import LimitControls, SharedLimits
from fairlane.app.admin.views import Overridden, declared_values, override_view
from fairlane.app.client import Client
from fairlane.model.instants import Instant, to_datetime, to_instant
from fairlane.model.policy.amounts import Amount, to_decimal, to_millionths
from fairlane.model.policy.budget import Account, BudgetRules, OnSpent, is_spent, runs_out_at
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind
from fairlane.model.policy.periods import Per
from fairlane.model.scope import Scope
from fairlane.store.contract.budgets import AccountsRequest, SpendRequest
from fairlane.store.contract.policies import PolicyView

N = TypeVar("N", str, str | None)

MAX_ACCOUNTS: Final = 100
"""How many accounts of a budget are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAccount:
    """What is spent and reserved of a budget in the present period; of all tenants if `tenant` is None.

    `runs_out_at`: when the ceiling is reached if it goes on as since the period began; None if that is after
    its end. `is_spent`: no further job starts, whatever running ones give back.
    """

    tenant: str | None
    spent: Decimal
    reserved: Decimal
    period_start: datetime | None
    period_end: datetime | None
    runs_out_at: datetime | None
    is_spent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """A budget at one instant. `ceiling` is the effective value, None if nobody has declared the budget.

    `accounts` has one for all tenants, or one for each of up to 100 that have spent (`per_tenant`).
    `declared` holds the values given by code or file. `override` holds the ceiling set at run time.
    """

    name: str
    ceiling: Decimal | None
    currency: str
    per: Per
    timezone: str
    estimate: Decimal
    on_spent: OnSpent
    per_tenant: bool
    alert_at: Sequence[Decimal]
    accounts: Sequence[BudgetAccount]
    declared: Mapping[str, Any] | None
    override: Overridden | None

    @property
    def spent(self) -> Decimal:
        """What all tenants have spent in the present period."""
        return sum((one.spent for one in self.accounts), Decimal("0.00"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendView:
    """Who has spent what of a budget in one period, by task, tenant and originator; most first.

    Beyond a thousand combinations all others are one, with `*` as their name. `periods` are those of which
    it is known.
    """

    budget: str
    currency: str
    period_start: datetime | None
    total: Decimal
    by_task: Mapping[str, Decimal]
    by_tenant: Mapping[str, Decimal]
    by_creator: Mapping[str | None, Decimal]
    periods: Sequence[datetime]


class Budgets(SharedLimits[BudgetView]):
    """The budgets of an application. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._controls = _BudgetControls(client)
        super().__init__(client, self._controls)

    def set(
        self,
        name: str,
        *,
        ceiling: Amount,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> BudgetView:
        """Override a budget's ceiling, at the next claim; 0 lets no job start.

        The override survives deploys, and ends with `reset` or at `until`. What was spent stays counted, and
        running jobs go on.
        """
        return self._client.portal.run(self.aset(name, ceiling=ceiling, note=note, until=until, who=who))

    async def aset(
        self,
        name: str,
        *,
        ceiling: Amount,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> BudgetView:
        """Override a budget's ceiling; see `set`."""
        change = PolicyChange(ceiling=_ceiling(ceiling))
        return await self._limits.change(name, change, note, until, who)

    def spend(self, name: str, *, period: datetime | None = None) -> SpendView:
        """Return who has spent what, in the period that began at `period` or, without it, in the last one."""
        return self._client.portal.run(self.aspend(name, period=period))

    async def aspend(self, name: str, *, period: datetime | None = None) -> SpendView:
        """Return who has spent what; see `spend`."""
        return await self._controls.spend(name, period)


def _ceiling(amount: Amount) -> int:
    try:
        return to_millionths(amount)
    except ValueError as error:
        message = f"ceiling: {error}"
        raise ValueError(message) from None


class _BudgetControls(LimitControls[BudgetView]):
    """The overrides of budgets, and what is spent of them."""

    kind = SubjectKind.BUDGET

    async def show(self, name: str) -> BudgetView:
        view = await self._read(name)
        return await self._with_accounts(view, self._scope(view.subject))

    async def show_all(self) -> Sequence[BudgetView]:
        scope = self._scope(Subject(SubjectKind.BUDGET, "*"))
        names = [budget.name for budget in self._client.settings.budgets]
        views = await list_all(self._client.store, scope, SubjectKind.BUDGET, names)
        return tuple([await self._with_accounts(view, scope) for view in views])

    async def spend(self, name: str, period: datetime | None) -> SpendView:
        view = await self._read(name)
        scope = self._scope(view.subject)
        starts_at = None if period is None else to_instant(period)
        reply = await self._client.store.budgets.spend(
            SpendRequest(scope=scope, budget=name, starts_at=starts_at)
        )
        return SpendView(
            budget=name,
            currency=budget_rules_of(view).currency,
            period_start=_moment(reply.starts_at),
            total=to_decimal(sum(more for _, more in reply.spent)),
            by_task=_summed((who.task, more) for who, more in reply.spent),
            by_tenant=_summed((who.tenant, more) for who, more in reply.spent),
            by_creator=_summed((who.created_by or None, more) for who, more in reply.spent),
            periods=tuple(to_datetime(one) for one in reply.periods),
        )

    async def _with_accounts(self, view: PolicyView, scope: Scope) -> BudgetView:
        name = view.subject.name
        request = AccountsRequest(scope=scope, budget=name, limit=MAX_ACCOUNTS)
        reply = await self._client.store.budgets.accounts(request)
        rules = budget_rules_of(view)
        return BudgetView(
            name=name,
            ceiling=None if rules.ceiling is None else to_decimal(rules.ceiling),
            currency=rules.currency,
            per=rules.per,
            timezone=rules.timezone,
            estimate=to_decimal(rules.estimate),
            on_spent=rules.on_spent,
            per_tenant=rules.per_tenant,
            alert_at=tuple(Decimal(share) / 100 for share in rules.alert_at),
            accounts=tuple(account_view(one.tenant, one.account, rules, reply.now) for one in reply.accounts),
            declared=declared_values(view.declared),
            override=override_view(view.override),
        )


def budget_rules_of(view: PolicyView) -> BudgetRules:
    """Return the effective rules of a budget; without a ceiling if nobody has declared it."""
    return view.effective if isinstance(view.effective, BudgetRules) else BudgetRules()


def account_view(tenant: str, account: Account, rules: BudgetRules, now: Instant) -> BudgetAccount:
    """Return the view of an account; that of all tenants has no name."""
    return BudgetAccount(
        tenant=tenant or None,
        spent=to_decimal(account.spent),
        reserved=to_decimal(account.reserved),
        period_start=_moment(account.starts_at),
        period_end=_moment(account.ends_at),
        runs_out_at=_moment(runs_out_at(rules, account, now)),
        is_spent=is_spent(rules, account),
    )


def _moment(instant: Instant | None) -> datetime | None:
    return None if not instant else to_datetime(instant)


def _summed(parts: Iterable[tuple[N, int]]) -> dict[N, Decimal]:
    """Add up by name, and return most first."""
    sums: dict[N, int] = {}
    for name, more in parts:
        sums[name] = sums.get(name, 0) + more
    ordered = sorted(sums.items(), key=lambda one: (-one[1], one[0] or ""))
    return {name: to_decimal(amount) for name, amount in ordered}
