"""Budgets: what is spent and reserved now, and who has spent it (S59, S113-S115).

Claims reserve and settlements spend (`ClaimsFacet`); rules and ceilings are policies. Here they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Protocol

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.operations import entry_of
from fairlane.model.policy.amounts import Millionths
from fairlane.model.policy.budget import Account
from fairlane.store.contract.request import OperatorRequest, Request


class AccountsRequest(Request, frozen=True, kw_only=True):
    """Ask for the accounts of a budget, sorted by tenant; one account of all tenants has an empty name."""

    budget: str
    limit: int = 100
    after: str | None = None


class TenantAccount(msgspec.Struct, frozen=True):
    """The account of a tenant, or of all with an empty name, as it is in the present period."""

    tenant: str
    account: Account


class AccountsReply(msgspec.Struct, frozen=True):
    """The store's now, and the accounts; those under which no job has ever been claimed are missing."""

    now: Instant
    accounts: tuple[TenantAccount, ...] = ()


class SpendRequest(Request, frozen=True, kw_only=True):
    """Ask who has spent what of a budget, in the period that began at `starts_at`, or in the last one."""

    budget: str
    starts_at: Instant | None = None


class Spender(msgspec.Struct, frozen=True, order=True):
    """Whose spend is counted together: a task, a tenant, and who created the job, or an empty name."""

    task: str
    tenant: str
    created_by: str


class SpendReply(msgspec.Struct, frozen=True):
    """Who has spent what, most first, and the periods of which that is known, last first."""

    starts_at: Instant = 0
    spent: tuple[tuple[Spender, Millionths], ...] = ()
    periods: tuple[Instant, ...] = ()


class BudgetRepairRequest(OperatorRequest, frozen=True, kw_only=True):
    """Compare what the accounts of a budget reserve with its running claims; restore it if `restores`."""

    budget: str
    restores: bool = False


class BudgetFlaw(msgspec.Struct, frozen=True, order=True):
    """Something in the account of a tenant, or of all with an empty name, that does not fit.

    `reserved`: what is reserved, and what its running claims have reserved. `claims`: how many claims hold
    something although their job does not run under them. `waiting`: strands wait for room, and nobody would
    wake them when it comes back.
    """

    tenant: str
    where: Literal["claims", "reserved", "waiting"]
    stored: int
    right: int


class BudgetRepairReply(msgspec.Struct, frozen=True):
    """How many claims run under the budget, and what does not fit them, in order.

    `claims` is None: there are more than `MAX_COMPARED`, and nothing was compared.
    """

    claims: int | None
    flaws: tuple[BudgetFlaw, ...] = ()
    is_restored: bool = False


def budget_repair_reply(
    request: BudgetRepairRequest, claims: int, flaws: Iterable[BudgetFlaw]
) -> BudgetRepairReply:
    """Return the reply about accounts that were compared; a request that restores has done so."""
    found = tuple(sorted(flaws))
    return BudgetRepairReply(claims, found, is_restored=bool(found) and request.restores)


def budget_repair_entries(request: BudgetRepairRequest) -> tuple[NewEntry, ...]:
    """Return the entry of the audit for accounts that were restored."""
    if request.operation is None:
        return ()
    return (entry_of(request.operation, f"budget {request.budget}", request.scope.tenant),)


def account_flaws(
    reserved: Mapping[str, Millionths],
    right: Mapping[str, Millionths],
    left: Mapping[str, int],
    unwoken: Iterable[str],
) -> Iterator[BudgetFlaw]:
    """Compare, by account: what is reserved, what running claims hold, how many are left behind, who waits.

    >>> [(one.tenant, one.where) for one in account_flaws({"": 5}, {"a": 5}, {"a": 1}, ["b"])]
    [('', 'reserved'), ('a', 'reserved'), ('a', 'claims'), ('b', 'waiting')]
    """
    for tenant in sorted({*reserved, *right}):
        if reserved.get(tenant, 0) != right.get(tenant, 0):
            yield BudgetFlaw(tenant, "reserved", reserved.get(tenant, 0), right.get(tenant, 0))
    for tenant, count in left.items():
        yield BudgetFlaw(tenant, "claims", count, 0)
    for tenant in unwoken:
        yield BudgetFlaw(tenant, "waiting", 0, 1)


class BudgetsFacet(Protocol):
    """Read budgets. Under the scope of one tenant only that tenant's own account and spend exist (S9)."""

    async def accounts(self, request: AccountsRequest) -> AccountsReply:
        """Return accounts after `after`. A period that has ended is not shown: nothing is spent then."""

    async def spend(self, request: SpendRequest) -> SpendReply:
        """Return who has spent what: at most `MAX_SPENDERS` rows and one for the others (S114)."""

    async def repair(self, request: BudgetRepairRequest) -> BudgetRepairReply:
        """Compare what accounts reserve with the claims that run under them; restore it (S125).

        One atomic step. What was spent is never changed, but for a claim that is left behind: that counts as
        ended by somebody else than its worker (S113). Where something is restored, those who wait for room
        are woken, and claims park anew who still has none. What fits is left as it is.
        """
