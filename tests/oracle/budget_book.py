"""Budgets in the oracle: accounts, what claims have reserved, who has spent what."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.amounts import Millionths
from fairlane.model.policy.budget import (
    MAX_SPENDERS,
    OTHERS,
    SPEND_KEPT,
    Account,
    BudgetClaim,
    BudgetRules,
    abandoned,
    alerts,
    reported,
    rolled,
)
from fairlane.model.policy.periods import period_of
from fairlane.store.contract.budgets import Spender


@dataclass
class HeldBudget:
    """A claim under a budget: what it holds, and for whom."""

    budget: str
    tenant: str
    who: Spender
    claim: BudgetClaim


@dataclass
class BudgetBook:
    """All budgets: the calendars, the accounts by (budget, tenant or nothing), the claims, the spend."""

    calendars: dict[str, tuple[Instant, ...]] = field(default_factory=dict)
    accounts: dict[tuple[str, str], Account] = field(default_factory=dict)
    held: dict[tuple[UUID, int], HeldBudget] = field(default_factory=dict)
    spent: dict[tuple[str, Instant], dict[Spender, Millionths]] = field(default_factory=dict)

    def copy(self) -> BudgetBook:
        """Return a copy for a peek, which reserves and spends nothing that stays."""
        return BudgetBook(self.calendars, dict(self.accounts), dict(self.held), self.spent)

    def account(self, name: str, tenant: str, now: Instant) -> Account:
        """Return an account in its present period."""
        found = self.accounts.get((name, tenant), Account())
        return rolled(found, period_of(self.calendars.get(name, ()), now), now)

    def reserve(self, name: str, rules: BudgetRules, job: JobRecord, now: Instant) -> None:
        """Reserve the estimate for a claim."""
        tenant = job.tenant if rules.per_tenant else ""
        account = self.account(name, tenant, now)
        who = Spender(job.task, job.tenant, job.created_by or "")
        claim = BudgetClaim(rules.estimate, period=account.starts_at)
        self.held[job.id, job.fence] = HeldBudget(name, tenant, who, claim)
        reserved = account.reserved + rules.estimate
        self.accounts[name, tenant] = msgspec.structs.replace(account, reserved=reserved)

    def report(
        self, rules: BudgetRules, key: tuple[UUID, int], total: Millionths, now: Instant, *, is_over: bool
    ) -> tuple[NewEntry, ...]:
        """Count what a worker reports; return the events."""
        held = self.held[key]
        account = self.account(held.budget, held.tenant, now)
        account, held.claim, more = reported(account, held.claim, total, is_over=is_over)
        if is_over:
            del self.held[key]
        return self._counted(held, rules, account, more)

    def abandon(self, rules: BudgetRules, key: tuple[UUID, int], now: Instant) -> tuple[NewEntry, ...]:
        """Count a claim that was not ended by its worker; return the events."""
        held = self.held[key]
        account = self.account(held.budget, held.tenant, now)
        account, held.claim, more = abandoned(account, held.claim, now)
        return self._counted(held, rules, account, more)

    def _counted(
        self, held: HeldBudget, rules: BudgetRules, account: Account, more: Millionths
    ) -> tuple[NewEntry, ...]:
        account, found = alerts(held.budget, held.tenant, rules, account)
        for name, starts_at in list(self.spent):
            if name == held.budget and starts_at < account.starts_at - SPEND_KEPT:
                del self.spent[name, starts_at]
        self.accounts[held.budget, held.tenant] = account
        if more:
            rows = self.spent.setdefault((held.budget, account.starts_at), {})
            who = held.who
            if who not in rows and len(rows) >= MAX_SPENDERS:
                who = Spender(OTHERS, OTHERS, OTHERS)
            rows[who] = rows.get(who, 0) + more
        return found

    def park(self, name: str, tenant: str, account: Account, rules: BudgetRules) -> tuple[NewEntry, ...]:
        """Note that a job found no room; return the events."""
        account, found = alerts(name, tenant, rules, account)
        self.accounts[name, tenant] = msgspec.structs.replace(account, is_waited_for=True)
        return found

    def tell(self, name: str, tenant: str, account: Account, rules: BudgetRules) -> tuple[NewEntry, ...]:
        """Note that a job is dead because the budget is spent; return the events."""
        self.accounts[name, tenant], found = alerts(name, tenant, rules, account)
        return found

    def release(self, name: str, tenant: str) -> bool:
        """Whether somebody waits for room in this account; whoever asks wakes them."""
        account = self.accounts[name, tenant]
        self.accounts[name, tenant] = msgspec.structs.replace(account, is_waited_for=False)
        return account.is_waited_for

    def forget(self, tenant: str, *, is_running: bool) -> None:
        """Forget a tenant's names; its account stays while something of it runs."""
        for key, held in list(self.held.items()):
            if held.who.tenant == tenant and held.claim.ended_at is not None:
                del self.held[key]
        for rows in self.spent.values():
            for who in [who for who in rows if who.tenant == tenant]:
                nobody = Spender(OTHERS, OTHERS, OTHERS)
                rows[nobody] = rows.pop(who) + rows.get(nobody, 0)
        for name in [name for name, owner in self.accounts if owner == tenant]:
            if not is_running:
                del self.accounts[name, tenant]
