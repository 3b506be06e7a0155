"""Guards: which breaker, gate, rate or budget holds work back, who is in it, and who could be next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from fairlane.app.admin.breakers import BreakerView
from fairlane.app.admin.budgets import BudgetView, SpendView
from fairlane.app.admin.gates import GateView
from fairlane.app.admin.job_search import search_of
from fairlane.app.admin.state_counts import StateCounts, state_counts
from fairlane.model.lifecycle.states import State
from fairlane.web.api.breakers import breaker_shown
from fairlane.web.api.policies import shown
from fairlane.web.call import WebCall
from fairlane.web.html.budget_bars import BudgetBar, pressing
from fairlane.web.page import PageGroup, PageView

GUARDS: Final = PageGroup("Guards", section="machinery", icon="guards", key="u")

_MOST_COUNTED: Final = 50
"""Tasks behind gates whose ready jobs are counted; of more, only the names are shown."""


_MOST_SHOWN: Final = 5
"""Spenders of a budget that are shown; the command line has all."""


class GatedTask(msgspec.Struct, frozen=True):
    """A task behind a gate or a breaker: its ready and running jobs, None where they were not counted."""

    name: str
    counts: StateCounts | None

    @property
    def ready(self) -> int:
        """Its ready jobs; some may wait for something else than the guard."""
        return 0 if self.counts is None else self.counts.of(State.READY)

    @property
    def running(self) -> int:
        """Its running jobs, which are in the gate."""
        return 0 if self.counts is None else self.counts.of(State.RUNNING)


class GateRow(msgspec.Struct, frozen=True):
    """A gate and the tasks behind it."""

    gate: GateView
    tasks: Sequence[GatedTask]

    @property
    def is_full(self) -> bool:
        """Whether no job may enter now."""
        return self.gate.free == 0

    @property
    def ready(self) -> int:
        """The ready jobs of its tasks."""
        return sum(one.ready for one in self.tasks)


class BreakerRow(msgspec.Struct, frozen=True):
    """A breaker and the tasks behind it."""

    breaker: BreakerView
    tasks: Sequence[GatedTask]

    @property
    def ready(self) -> int:
        """The ready jobs of its tasks."""
        return sum(one.ready for one in self.tasks)


class BudgetRow(msgspec.Struct, frozen=True):
    """A budget, its accounts as bars, those nearest to the ceiling first, and who has spent most."""

    budget: BudgetView
    bars: Sequence[BudgetBar]
    spend: SpendView

    @property
    def spent(self) -> int:
        """Under how many accounts no job may start any more."""
        return sum(one.is_spent for one in self.bars)

    @property
    def most(self) -> Sequence[tuple[str, Sequence[tuple[str, Decimal]]]]:
        """Who has spent most: a few by task, by tenant and by originator."""
        spend = self.spend
        by = (("task", spend.by_task), ("tenant", spend.by_tenant), ("originator", spend.by_creator))
        return [
            (what, [(who or "–", more) for who, more in parts.items()][:_MOST_SHOWN]) for what, parts in by
        ]


@GUARDS.page("/guards", "guards", tenants="all")
async def list_guards(call: WebCall) -> PageView:
    """Show each breaker, gate, rate and budget: what it is, who uses it, and who waits."""
    behind: dict[str, list[str]] = {}
    protected: dict[str, list[str]] = {}
    for task in await call.app.tasks.alist():
        if task.gate is not None:
            behind.setdefault(task.gate, []).append(task.name)
        if task.breaker is not None:
            protected.setdefault(task.breaker, []).append(task.name)
    named = {name for names in (*behind.values(), *protected.values()) for name in names}
    counts = await _counts(call, sorted(named))
    breakers = [
        BreakerRow(breaker_shown(one), _behind(protected.get(one.name, ()), counts))
        for one in await call.app.breakers.alist()
    ]
    rows = [
        GateRow(shown(gate), _behind(behind.get(gate.name, ()), counts))
        for gate in await call.app.gates.alist()
    ]
    rates = await call.app.gates.arates()
    budgets = [await _budget_row(call, shown(budget)) for budget in await call.app.budgets.alist()]
    values = {"rows": rows, "breakers": breakers, "rates": rates, "budgets": budgets}
    return PageView("guards/list.html", values)


def _behind(tasks: Sequence[str], counts: Mapping[str, StateCounts]) -> Sequence[GatedTask]:
    return [GatedTask(name, counts.get(name)) for name in tasks]


async def _budget_row(call: WebCall, budget: BudgetView) -> BudgetRow:
    return BudgetRow(budget, pressing([budget]), await call.app.budgets.aspend(budget.name))


async def _counts(call: WebCall, tasks: Sequence[str]) -> Mapping[str, StateCounts]:
    if len(tasks) > _MOST_COUNTED:
        return {}
    store, states = call.app.client.store, (State.READY, State.RUNNING)
    return {
        name: await state_counts(store, await search_of(store, "", {"task": name, "state": states}))
        for name in tasks
    }
