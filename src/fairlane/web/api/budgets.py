"""`/budgets`: ceilings on what jobs spend, what is spent and by whom. All tenants share them (S9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fairlane.app.admin.budgets import BudgetView, SpendView
from fairlane.model.access import Role
from fairlane.web.api.policies import OverrideBody, end_in, shown
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup

BUDGETS: Final = EndpointGroup("budgets", "Budgets: ceilings on what jobs may spend in a calendar period.")


class BudgetList(msgspec.Struct, frozen=True):
    """All budgets, by name."""

    items: Sequence[BudgetView]


class BudgetSetBody(OverrideBody, frozen=True, kw_only=True):
    """A budget's ceiling, in its currency, as text: `"700.00"`. With 0 no job starts."""

    ceiling: str


@BUDGETS.get("/budgets", "budgets.find", tenants="all")
async def find(call: WebCall) -> BudgetList:
    """Return all budgets by name: ceiling, what is spent and reserved now, and when it runs out."""
    return BudgetList(tuple(map(shown, await call.app.budgets.alist())))


@BUDGETS.get("/budgets/{budget}", "budgets.get", tenants="all")
async def get(call: WebCall, budget: str) -> BudgetView:
    """Return one budget. An unknown name has no ceiling."""
    return shown(await call.app.budgets.aget(budget))


@BUDGETS.get("/budgets/{budget}/spend", "budgets.spend", tenants="all")
async def spend(call: WebCall, budget: str) -> SpendView:
    """Return who has spent what in the last period: by task, by tenant and by who created the jobs."""
    return await call.app.budgets.aspend(budget)


@BUDGETS.patch("/budgets/{budget}", "budgets.set", least=Role.ADMIN, tenants="all")
async def set_(call: WebCall, budget: str, body: BudgetSetBody) -> BudgetView:
    """Override a budget's ceiling, at the next claim. What was spent stays counted; running jobs go on."""
    view = await call.app.budgets.aset(
        budget, ceiling=body.ceiling, note=body.note, until=await end_in(call, body)
    )
    return shown(view)


@BUDGETS.post("/budgets/{budget}/reset", "budgets.reset", least=Role.ADMIN, tenants="all")
async def reset(call: WebCall, budget: str, body: Change) -> BudgetView:
    """Remove the override, so that the declared ceiling applies again."""
    return shown(await call.app.budgets.areset(budget, note=body.note))
