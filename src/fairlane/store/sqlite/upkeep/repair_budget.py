"""Compare what the accounts of a budget reserve with its running claims, and restore it (S125)."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from fairlane.model.policy.budget import BudgetClaim
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.store.contract.budgets import (
    BudgetRepairReply,
    BudgetRepairRequest,
    account_flaws,
    budget_repair_entries,
    budget_repair_reply,
)
from fairlane.store.contract.repair import MAX_COMPARED
from fairlane.store.sqlite.claims.parking import mark_blocked
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("budgets")


def repair_budget(tx: Transaction, request: BudgetRepairRequest) -> BudgetRepairReply:
    """Compare a budget. Writes only if the request restores and something is wrong."""
    values = (request.budget, request.scope.tenant)
    claims = all_rows(tx.db, _SQL.claims_under, (*values, MAX_COMPARED + 1))
    if len(claims) > MAX_COMPARED:
        return BudgetRepairReply(None)
    right: Counter[str] = Counter()
    left: dict[str, list[tuple[UUID, int]]] = {}
    for job, fence, account, estimate, spent, runs in claims:
        if runs:
            right[account] += BudgetClaim(estimate, spent).reserved
        else:
            left.setdefault(account, []).append((UUID(bytes=job), fence))
    accounts = all_rows(tx.db, _SQL.accounts_under, values)
    reserved = {tenant: amount for tenant, amount, _ in accounts}
    waited_for = {tenant for tenant, _, is_waited_for in accounts if is_waited_for}
    counts = {account: len(keys) for account, keys in left.items()}
    unwoken = _waiting(tx, request) - waited_for
    runs_under = len(claims) - sum(counts.values())
    reply = budget_repair_reply(request, runs_under, account_flaws(reserved, right, counts, unwoken))
    if reply.is_restored:
        _restore(tx, request, {one.tenant for one in reply.flaws}, right, left)
    return reply


def _waiting(tx: Transaction, request: BudgetRepairRequest) -> set[str]:
    """Return the accounts for whose room strands wait that nobody has woken yet."""
    tenants = {tenant for (tenant,) in tx.db.execute(_SQL.waiting_for, (request.budget, tx.now))}
    rules = tx.policies.budget(request.budget, tx.now)
    accounts = tenants if rules.per_tenant else {""} if tenants else set[str]()
    return {one for one in accounts if request.scope.tenant in {None, one}}


def _restore(
    tx: Transaction,
    request: BudgetRepairRequest,
    accounts: set[str],
    right: Counter[str],
    left: dict[str, list[tuple[UUID, int]]],
) -> None:
    """Count what is left behind as ended, then make the reservations anew, and wake who waits."""
    rules = tx.policies.budget(request.budget, tx.now)
    for key in (key for keys in left.values() for key in keys):
        tx.budgets.abandon(tx.budgets.held_by((key[0],))[key], rules, tx.now)
    for account in sorted(accounts):
        tx.budgets.restore(request.budget, account, right[account], tx.now)
    tx.budgets.woken.clear()
    tx.append("audit", budget_repair_entries(request))
    mark_blocked(tx, Subject(SubjectKind.BUDGET, request.budget))
