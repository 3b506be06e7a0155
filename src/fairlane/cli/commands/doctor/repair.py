"""`fairlane doctor --repair`: restore what is derived from jobs and does not fit them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import click

from fairlane import Fairlane
from fairlane.app.admin.operations import operation
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import TableView
from fairlane.diagnosis.repairing import (
    Compared,
    ComparedBudget,
    budget_flaw_text,
    compare_all,
    compare_budgets,
    flaw_text,
    restore,
    restore_budget,
)
from fairlane.model.scope import Scope
from fairlane.store.contract.repair import MAX_COMPARED

_SHOWN: Final = 5
"""How many flaws of one tenant in one queue are shown."""


class Line(NamedTuple):
    """One flaw, or what else is to be said of a tenant in a queue."""

    queue: str
    tenant: str
    what: str
    is_restored: bool


_VIEW: Final[TableView[Line]] = TableView(
    {
        "QUEUE": lambda one: one.queue,
        "TENANT": lambda one: one.tenant,
        "REPAIRED": lambda one: "yes" if one.is_restored else "no",
        "FINDING": lambda one: one.what,
    },
    lambda one: one._asdict(),
)


def repair(invocation: Invocation, *, yes: bool, dry_run: bool, note: str) -> None:
    """Compare, show, ask, restore, and show what was done."""

    async def compare(app: Fairlane) -> list[Compared | ComparedBudget]:
        store, scope = app.client.store, Scope.all()
        return [*await compare_all(store, scope), *await compare_budgets(store, scope)]

    compared = invocation.run(compare)
    wrong = [one for one in compared if one.reply.flaws]
    if not wrong or dry_run:
        _print(invocation, compared)
        if wrong:
            raise click.exceptions.Exit(Exit.REFUSED)
        return
    if not yes:
        _print(invocation, compared)
    number = sum(len(one.reply.flaws) for one in wrong)
    invocation.confirm(f"Restore what is derived from jobs in {len(wrong)} places ({number} flaws)?", yes=yes)

    async def mend(app: Fairlane) -> list[Compared | ComparedBudget]:
        asked = operation("doctor.repair", who=invocation.who, note=note)
        store, scope = app.client.store, Scope.all()
        return [
            await restore(store, scope, one, asked)
            if isinstance(one, Compared)
            else await restore_budget(store, scope, one, asked)
            for one in wrong
        ]

    _print(invocation, invocation.run(mend))


def _print(invocation: Invocation, compared: Sequence[Compared | ComparedBudget]) -> None:
    found = (_lines(one) if isinstance(one, Compared) else _budget_lines(one) for one in compared)
    lines = [line for some in found for line in some]
    invocation.output.table(lines, _VIEW, empty="Nothing to repair.")


def _lines(one: Compared) -> Iterator[Line]:
    def line(what: str) -> Line:
        return Line(one.queue, one.tenant, what, one.reply.is_restored)

    if one.reply.jobs is None:
        yield line(f"not compared: more than {MAX_COMPARED:,} unfinished jobs")
    for flaw in one.reply.flaws[:_SHOWN]:
        yield line(flaw_text(flaw))
    if one.reply.flaws[_SHOWN:]:
        yield line(f"and {len(one.reply.flaws) - _SHOWN} more")


def _budget_lines(one: ComparedBudget) -> Iterator[Line]:
    """A budget is of no queue; an account of its own names its tenant."""
    flaws = one.reply.flaws
    if one.reply.claims is None:
        text = f"budget {one.budget} not compared: more than {MAX_COMPARED:,} claims"
        yield Line("", "", text, one.reply.is_restored)
    for flaw in flaws[:_SHOWN]:
        yield Line("", flaw.tenant, budget_flaw_text(one.budget, flaw), one.reply.is_restored)
    if flaws[_SHOWN:]:
        text = f"budget {one.budget}: and {len(flaws) - _SHOWN} more"
        yield Line("", "", text, one.reply.is_restored)
