"""Budgets at the end of claims (S113): what was spent, and who waits for the room that comes back."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.job import JobRecord, Settlement
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import Renewal
from fairlane.store.sqlite.claims.parking import mark_blocked
from fairlane.store.sqlite.transaction import Transaction


def report_spend(
    tx: Transaction, scope: Scope, reports: Iterable[Settlement | Renewal], *, is_over: bool
) -> None:
    """Count what a worker reports for its claims; at their end also for those that it has lost."""
    if not tx.policies.has_budgets:
        return
    totals = {(one.id, one.fence): one.spent for one in reports}
    if not totals:
        return
    for key, held in tx.budgets.held_by(id for id, _ in totals).items():
        is_asked = key in totals and scope.covers(held.who.tenant)
        if is_asked and (is_over or held.claim.ended_at is None):
            rules = tx.policies.budget(held.budget, tx.now)
            tx.budgets.report(held, rules, totals[key], tx.now, is_over=is_over)
    wake_for_room(tx)


def abandon_budget(tx: Transaction, job: JobRecord) -> None:
    """Count a claim that somebody else than its worker ends."""
    if not tx.policies.has_budgets:
        return
    held = tx.budgets.held_by((job.id,)).get((job.id, job.fence))
    if held is not None:
        tx.budgets.abandon(held, tx.policies.budget(held.budget, tx.now), tx.now)
        wake_for_room(tx)


def wake_for_room(tx: Transaction) -> None:
    """Let claims unpark who waits for room in budgets that have some again."""
    for name in sorted(tx.budgets.woken):
        mark_blocked(tx, Subject(SubjectKind.BUDGET, name))
    tx.budgets.woken.clear()
