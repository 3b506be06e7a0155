"""Budgets in claims (S59): whether a job may start, and what its claim reserves."""

from __future__ import annotations

from fairlane.model.job import JobRecord
from fairlane.model.policy.budget import BudgetClaim, BudgetRules, decide_start, room_at
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.store.contract.budgets import Spender
from fairlane.store.sqlite.tables.budgets import HeldBudget
from fairlane.store.sqlite.tables.tenant_queue_rows import Block
from fairlane.store.sqlite.transaction import Transaction


def budget_block(tx: Transaction, task: str, tenant: str) -> Block | None:
    """Return what blocks a tenant's jobs of a task: a budget without room. Changes nothing."""
    budget = _budget_of(tx, task, tenant)
    if budget is None:
        return None
    name, account_of, rules = budget
    account = tx.budgets.account(name, account_of, tx.now)
    if decide_start(rules, account) != "park":
        return None
    subject = Subject(SubjectKind.BUDGET, name)
    ends = (room_at(account, tx.now), tx.policies.ends((subject,), tx.now))
    return Block("budget", subject, min((end for end in ends if end is not None), default=None))


def note_no_room(tx: Transaction, task: str, tenant: str) -> None:
    """Note that a strand was parked for room in its budget."""
    name, account_of, rules = _budget_of(tx, task, tenant) or ("", "", BudgetRules())
    tx.budgets.find_no_room(name, account_of, rules, tx.now, is_waiting=True)


def reserve_budget(tx: Transaction, job: JobRecord) -> bool | None:
    """Reserve the estimate for a claim; return whether the budget is spent, None without a budget."""
    budget = _budget_of(tx, job.task, job.tenant)
    if budget is None:
        return None
    name, account_of, rules = budget
    if decide_start(rules, tx.budgets.account(name, account_of, tx.now)) != "start":
        tx.budgets.find_no_room(name, account_of, rules, tx.now, is_waiting=False)
        return True
    who = Spender(job.task, job.tenant, job.created_by or "")
    claim = BudgetClaim(rules.estimate)
    tx.budgets.reserve(HeldBudget(job.id.bytes, job.fence, name, account_of, who, claim), tx.now)
    return False


def _budget_of(tx: Transaction, task: str, tenant: str) -> tuple[str, str, BudgetRules] | None:
    """Return the budget that bounds a task, whose account it is, and its rules."""
    name = tx.policies.task(task, tx.now).budget
    if name is None:
        return None
    rules = tx.policies.budget(name, tx.now)
    return None if rules.ceiling is None else (name, tenant if rules.per_tenant else "", rules)
