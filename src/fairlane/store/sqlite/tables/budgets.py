"""Accounts, claims and spenders of budgets, as a transaction has read and changed them. Knows no job's state.

Read when first needed, changed in memory, written back in bulk. `model.policy.budget` decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final
from uuid import UUID

import apsw
import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.amounts import Millionths
from fairlane.model.policy.budget import (
    CLAIMS_KEPT,
    MAX_SPENDERS,
    OTHERS,
    SPEND_KEPT,
    Account,
    BudgetClaim,
    BudgetRules,
    abandoned,
    account_of,
    alerts,
    reported,
    rolled,
)
from fairlane.store.contract.budgets import Spender
from fairlane.store.sqlite.query import all_rows, json_array, one_row, one_value
from fairlane.store.sqlite.statements import load

_SQL = load("budgets")

_OTHERS: Final = Spender(OTHERS, OTHERS, OTHERS)


class HeldBudget(msgspec.Struct, frozen=True):
    """A claim under a budget: which account it concerns, who spends, and how much."""

    job: bytes
    fence: int
    budget: str
    tenant: str
    who: Spender
    claim: BudgetClaim


class BudgetRows:
    """The budgets of one transaction. `woken`: those in which room has come back for somebody who waits."""

    def __init__(self, db: apsw.Connection) -> None:
        """Start empty."""
        self._db = db
        self._accounts: dict[tuple[str, str], Account] = {}
        self._changed: set[tuple[str, str]] = set()
        self._held: dict[tuple[bytes, int], HeldBudget] = {}
        self._gone: list[tuple[bytes, int]] = []
        self._begun: dict[str, Instant] = {}
        self._spent: Counter[tuple[str, Instant, Spender]] = Counter()
        self.told: list[NewEntry] = []
        self.woken: set[str] = set()

    def account(self, budget: str, tenant: str, now: Instant) -> Account:
        """Return an account in its present period."""
        found = self._accounts.get((budget, tenant))
        if found is None:
            row = one_row(self._db, _SQL.account, (budget, tenant))
            found = Account() if row is None else account_of(*row)
        if found.ends_at <= now:
            period = read_period(self._db, budget, now)
            if period is not None:
                found = rolled(found, period, now)
                self._begun[budget] = found.starts_at
        self._accounts[budget, tenant] = found
        return found

    def reserve(self, held: HeldBudget, now: Instant) -> None:
        """Reserve the estimate of a claim."""
        account = self.account(held.budget, held.tenant, now)
        claim = msgspec.structs.replace(held.claim, period=account.starts_at)
        self._held[held.job, held.fence] = msgspec.structs.replace(held, claim=claim)
        reserved = account.reserved + claim.estimate
        self._change(held.budget, held.tenant, msgspec.structs.replace(account, reserved=reserved))

    def find_no_room(
        self, budget: str, tenant: str, rules: BudgetRules, now: Instant, *, is_waiting: bool
    ) -> None:
        """Note that a job found no room; it waits, unless it is dead because of it."""
        account, found = alerts(budget, tenant, rules, self.account(budget, tenant, now))
        self.told += found
        is_waited_for = is_waiting or account.is_waited_for
        self._change(budget, tenant, msgspec.structs.replace(account, is_waited_for=is_waited_for))

    def held_by(self, jobs: Iterable[UUID]) -> dict[tuple[UUID, int], HeldBudget]:
        """Return what the claims of these jobs hold, also those that somebody else has ended."""
        self.flush()
        rows = all_rows(self._db, _SQL.claims, (json_array(job.hex for job in jobs),))
        found = (
            HeldBudget(job, fence, budget, account, Spender(task, tenant, by), BudgetClaim(*amounts))
            for job, fence, budget, account, task, tenant, by, *amounts in rows
        )
        return {(UUID(bytes=one.job), one.fence): one for one in found}

    def report(
        self, held: HeldBudget, rules: BudgetRules, total: Millionths, now: Instant, *, is_over: bool
    ) -> None:
        """Count what a worker reports for a claim: the sum so far."""
        account, claim, more = reported(
            self.account(held.budget, held.tenant, now), held.claim, total, is_over=is_over
        )
        self._count(held, rules, account, more)
        if is_over:
            self._gone.append((held.job, held.fence))
            self._give_room(held)
        else:
            self._held[held.job, held.fence] = msgspec.structs.replace(held, claim=claim)

    def abandon(self, held: HeldBudget, rules: BudgetRules, now: Instant) -> None:
        """Count a claim that was not ended by its worker."""
        account, claim, more = abandoned(self.account(held.budget, held.tenant, now), held.claim, now)
        self._count(held, rules, account, more)
        self._held[held.job, held.fence] = msgspec.structs.replace(held, claim=claim)
        self._give_room(held)

    def restore(self, budget: str, tenant: str, reserved: Millionths, now: Instant) -> None:
        """Set what an account reserves; whoever calls wakes those who wait for its room."""
        account = self.account(budget, tenant, now)
        self._change(budget, tenant, msgspec.structs.replace(account, reserved=reserved, is_waited_for=False))

    def _count(self, held: HeldBudget, rules: BudgetRules, account: Account, more: Millionths) -> None:
        account, found = alerts(held.budget, held.tenant, rules, account)
        self.told += found
        self._change(held.budget, held.tenant, account)
        if more:
            self._spent[held.budget, account.starts_at, held.who] += more

    def _give_room(self, held: HeldBudget) -> None:
        account = self._accounts[held.budget, held.tenant]
        if account.is_waited_for:
            self.woken.add(held.budget)
            self._change(held.budget, held.tenant, msgspec.structs.replace(account, is_waited_for=False))

    def _change(self, budget: str, tenant: str, account: Account) -> None:
        self._accounts[budget, tenant] = account
        self._changed.add((budget, tenant))

    def flush(self) -> None:
        """Write what has changed."""
        if self._held:
            rows = [_claim_row(one) for one in self._held.values()]
            self._db.executemany(_SQL.add_claim, rows)
            self._held.clear()
        if self._gone:
            self._db.executemany(_SQL.drop_claim, self._gone)
            self._gone.clear()
        for (budget, starts_at, who), more in self._spent.items():
            self._spend(budget, starts_at, who, more)
        self._spent.clear()
        if self._changed:
            accounts = [(*key, *msgspec.structs.astuple(self._accounts[key])) for key in self._changed]
            self._db.executemany(_SQL.write_account, accounts)
            self._changed.clear()
            self._drop_old()

    def _drop_old(self) -> None:
        """Delete what is too old, whenever a period has begun."""
        for budget, starts_at in self._begun.items():
            self._db.execute(_SQL.drop_old_spend, (budget, starts_at - SPEND_KEPT))
            self._db.execute(_SQL.drop_old_claims, (starts_at - CLAIMS_KEPT,))
        self._begun.clear()

    def _spend(self, budget: str, starts_at: Instant, who: Spender, more: Millionths) -> None:
        values = (budget, starts_at, *msgspec.structs.astuple(who), more)
        if one_row(self._db, _SQL.spent_more, values) is None:
            count = one_value(self._db, _SQL.spenders, (budget, starts_at, MAX_SPENDERS))
            if count == MAX_SPENDERS:
                values = (budget, starts_at, *msgspec.structs.astuple(_OTHERS), more)
            self._db.execute(_SQL.first_spent, values)

    def forget(self, tenant: str, *, is_running: bool) -> None:
        """Forget a tenant's names; its accounts stay while something of it runs. Its spend stays counted."""
        self.flush()
        self._db.execute(_SQL.drop_ended_claims_of, (tenant,))
        self._db.execute(_SQL.add_to_others, (tenant, OTHERS))
        self._db.execute(_SQL.drop_spend_of, (tenant,))
        if not is_running:
            self._db.execute(_SQL.drop_accounts_of, (tenant,))
            self._accounts.clear()

    def clear(self) -> None:
        """Empty the cache."""
        self._accounts.clear()
        self._changed.clear()
        self._held.clear()
        self._gone.clear()
        self._begun.clear()
        self._spent.clear()
        self.told.clear()
        self.woken.clear()


def read_period(db: apsw.Connection, budget: str, now: Instant) -> tuple[Instant, Instant] | None:
    """Return when the period of an instant began and ends; None if the calendar does not know both."""
    starts_at, ends_at = one_row(db, _SQL.period, (budget, now)) or (None, None)
    return None if starts_at is None or ends_at is None else (starts_at, ends_at)


def write_periods(db: apsw.Connection, budget: str, starts: Iterable[Instant]) -> None:
    """Write when the periods of a budget begin, in place of what was known."""
    db.execute(_SQL.drop_periods, (budget,))
    db.executemany(_SQL.add_period, [(budget, start) for start in starts])


def _claim_row(held: HeldBudget) -> tuple[object, ...]:
    who, claim = msgspec.structs.astuple(held.who), msgspec.structs.astuple(held.claim)
    return (held.job, held.fence, held.budget, held.tenant, *who, *claim)
