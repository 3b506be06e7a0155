"""Budgets: what is spent and reserved now, and who has spent it (S59, S113-S115).

Claims reserve and settlements spend (`ClaimsFacet`); rules and ceilings are policies. Here they are read.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.amounts import Millionths
from fairlane.model.policy.budget import Account
from fairlane.store.contract.request import Request


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


class BudgetsFacet(Protocol):
    """Read budgets. Under the scope of one tenant only that tenant's own account and spend exist (S9)."""

    async def accounts(self, request: AccountsRequest) -> AccountsReply:
        """Return accounts after `after`. A period that has ended is not shown: nothing is spent then."""

    async def spend(self, request: SpendRequest) -> SpendReply:
        """Return who has spent what: at most `MAX_SPENDERS` rows and one for the others (S114)."""
