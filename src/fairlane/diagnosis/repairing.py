"""Compare a whole store, tenant by tenant in each queue, then its budgets, and restore (S90, S125)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec

from fairlane.app.admin.paging import count_all
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.states import HOT
from fairlane.model.policy.amounts import to_decimal
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.budgets import BudgetFlaw, BudgetRepairReply, BudgetRepairRequest
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.policies import ListRequest
from fairlane.store.contract.repair import Flaw, RepairReply, RepairRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE

MAX_CALLS: Final = 1_000
"""How many pages of unfinished jobs are read to find tenants whose counters are lost."""


class Compared(msgspec.Struct, frozen=True):
    """A tenant in a queue, and what its derived data are like."""

    queue: str
    tenant: str
    reply: RepairReply


class ComparedBudget(msgspec.Struct, frozen=True):
    """A budget, and what its accounts are like."""

    budget: str
    reply: BudgetRepairReply


async def compare_budgets(store: Store, scope: Scope) -> list[ComparedBudget]:
    """Compare every budget with the claims that run under it. Changes nothing."""
    views = await store.policies.list(ListRequest(scope=scope, kind=SubjectKind.BUDGET))
    return [await _compared_budget(store, scope, view.subject.name) for view in views]


async def restore_budget(
    store: Store, scope: Scope, one: ComparedBudget, operation: Operation | None
) -> ComparedBudget:
    """Restore what the accounts of a budget reserve, and wake who waits for its room."""
    return await _compared_budget(store, scope, one.budget, restores=True, operation=operation)


async def compare_all(store: Store, scope: Scope) -> list[Compared]:
    """Compare every tenant in every queue with its jobs. Changes nothing."""
    return [await _compared(store, scope, *names) for names in await _tenant_queues(store, scope)]


async def restore(store: Store, scope: Scope, one: Compared, operation: Operation | None) -> Compared:
    """Restore what is derived of one tenant in one queue; what nobody finds wrong by now is left."""
    return await _compared(store, scope, one.queue, one.tenant, restores=True, operation=operation)


def flaw_text(flaw: Flaw) -> str:
    """Say what is wrong.

    >>> flaw_text(Flaw("ready", 3, 2)), flaw_text(Flaw("order", 0, 1))
    ('3 jobs are counted as ready, there are 2', 'the tenant has no place in the fair order')
    >>> flaw_text(Flaw("running", 0, 1, UUID(int=1)))
    'running job 00000000-0000-0000-0000-000000000001 is in no list: nothing finds it'
    """
    if flaw.job is not None and flaw.right:
        return f"{flaw.where} job {flaw.job} is in no list: nothing finds it"
    if flaw.job is not None:
        return f"a place in line leads to {flaw.job}, which is not ready there"
    if flaw.where != "order":
        return f"{flaw.stored} jobs are counted as {flaw.where}, there are {flaw.right}"
    if flaw.stored == flaw.right:
        return "the tasks of the tenant are counted wrongly"
    return f"the tenant has {'a' if flaw.stored else 'no'} place in the fair order"


def budget_flaw_text(budget: str, flaw: BudgetFlaw) -> str:
    """Say what is wrong with an account of a budget.

    >>> budget_flaw_text("ai", BudgetFlaw("", "reserved", 1_500_000, 0))
    'budget ai reserves 1.50, its running jobs have reserved 0.00'
    >>> budget_flaw_text("ai", BudgetFlaw("acme", "claims", 2, 0))
    'budget ai holds something for 2 claims whose jobs do not run'
    """
    if flaw.where == "reserved":
        stored, right = (f"{to_decimal(amount):f}" for amount in (flaw.stored, flaw.right))
        return f"budget {budget} reserves {stored}, its running jobs have reserved {right}"
    if flaw.where == "claims":
        return f"budget {budget} holds something for {flaw.stored} claims whose jobs do not run"
    return f"jobs wait for room in budget {budget}, and nobody would wake them"


def is_about(flaw: Flaw, job: UUID) -> bool:
    """Whether a flaw concerns a job: its own place, or all jobs of its tenant in the queue.

    >>> is_about(Flaw("order", 0, 1), UUID(int=1)), is_about(Flaw("ready", 0, 1, UUID(int=2)), UUID(int=1))
    (True, False)
    """
    return flaw.job in {None, job}


async def _compared_budget(
    store: Store, scope: Scope, budget: str, *, restores: bool = False, operation: Operation | None = None
) -> ComparedBudget:
    request = BudgetRepairRequest(scope=scope, budget=budget, restores=restores, operation=operation)
    return ComparedBudget(budget, await store.budgets.repair(request))


async def _compared(
    store: Store,
    scope: Scope,
    queue: str,
    tenant: str,
    *,
    restores: bool = False,
    operation: Operation | None = None,
) -> Compared:
    request = RepairRequest(scope=scope, queue=queue, tenant=tenant, restores=restores, operation=operation)
    return Compared(queue, tenant, await store.upkeep.repair(request))


async def _tenant_queues(store: Store, scope: Scope) -> list[tuple[str, str]]:
    """Return queue and tenant of all unfinished jobs: those that counters know, and those that jobs name."""
    found = {(one.queue, one.tenant) async for one in count_all(store, scope) if one.state in HOT}
    cursor: str | None = None
    for _ in range(MAX_CALLS):
        page = await store.jobs.find(FindRequest(scope=scope, states=HOT, limit=MAX_PAGE_SIZE, cursor=cursor))
        found |= {(job.queue, job.tenant) for job in page.jobs}
        cursor = page.cursor
        if cursor is None:
            break
    return sorted(found)
