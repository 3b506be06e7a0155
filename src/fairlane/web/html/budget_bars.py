"""Budgets as bars: how much of a ceiling is spent, by whom, and when it runs out. Asks no store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec

from fairlane.app.admin.budgets import BudgetAccount, BudgetView
from fairlane.app.admin.tenant_budgets import TenantBudget
from fairlane.model.policy.periods import Per

NOTHING: Final = Decimal("0.00")
_MOST: Final = Decimal("0.8")
"""From which share on a budget without marks of its own counts as nearly spent."""


class BudgetBar(msgspec.Struct, frozen=True, kw_only=True):
    """One account of a budget. `others` is the part of what is spent that the page is not about."""

    budget: str
    tenant: str | None
    currency: str
    per: Per
    ceiling: Decimal | None
    spent: Decimal
    reserved: Decimal
    others: Decimal
    marks: Sequence[Decimal]
    runs_out_at: datetime | None
    period_end: datetime | None
    is_spent: bool

    @property
    def total(self) -> Decimal:
        """What everybody has spent."""
        return self.spent + self.others

    @property
    def share(self) -> Decimal:
        """Which part of the ceiling is spent; all of it where nothing may be spent."""
        if self.ceiling is None:
            return NOTHING
        return self.total / self.ceiling if self.ceiling else Decimal(1)

    @property
    def is_near(self) -> bool:
        """Whether the first mark is reached, or no job has room."""
        return self.is_spent or (self.ceiling is not None and self.share >= min(self.marks, default=_MOST))

    @property
    def kind(self) -> str:
        """The colour of the bar; what it says stands beside it, in words."""
        return "bad" if self.is_spent else "warn" if self.is_near else "acc"


def bars_of(view: BudgetView, *, own: Decimal | None = None) -> list[BudgetBar]:
    """Return the bars of a budget, one for each account; with `own`, what is beyond that is grey."""
    return [_bar(view, account, own=account.spent if own is None else own) for account in view.accounts]


def pressing(views: Sequence[BudgetView]) -> list[BudgetBar]:
    """Return the bars of all budgets, the one that is nearest to its ceiling first."""
    return _nearest_first(bar for view in views for bar in bars_of(view))


def bars_of_tenant(budgets: Sequence[TenantBudget]) -> list[BudgetBar]:
    """Return the bars of a tenant, nearest to a ceiling first: its own, or its part of all."""
    return _nearest_first(_bar(one, one.account or _unknown(one.spent), own=one.spent) for one in budgets)


def _unknown(spent: Decimal) -> BudgetAccount:
    """Return what is shown of an account to whom it is not shown."""
    return BudgetAccount(
        tenant=None,
        spent=spent,
        reserved=NOTHING,
        period_start=None,
        period_end=None,
        runs_out_at=None,
        is_spent=False,
    )


def _nearest_first(bars: Iterable[BudgetBar]) -> list[BudgetBar]:
    return sorted(bars, key=lambda one: (not one.is_spent, -one.share, one.budget, one.tenant or ""))


def _bar(view: BudgetView | TenantBudget, account: BudgetAccount, *, own: Decimal) -> BudgetBar:
    return BudgetBar(
        budget=view.name,
        tenant=account.tenant,
        currency=view.currency,
        per=view.per,
        ceiling=view.ceiling,
        spent=own,
        reserved=account.reserved,
        others=max(account.spent - own, NOTHING),
        marks=view.alert_at,
        runs_out_at=account.runs_out_at,
        period_end=account.period_end,
        is_spent=account.is_spent,
    )
