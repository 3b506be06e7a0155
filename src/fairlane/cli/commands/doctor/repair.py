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
from fairlane.diagnosis.repairing import Compared, compare_all, flaw_text, restore
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
    compared = invocation.run(lambda app: compare_all(app.client.store, Scope.all()))
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

    async def mend(app: Fairlane) -> list[Compared]:
        asked = operation("doctor.repair", who=invocation.who, note=note)
        return [await restore(app.client.store, Scope.all(), one, asked) for one in wrong]

    _print(invocation, invocation.run(mend))


def _print(invocation: Invocation, compared: Sequence[Compared]) -> None:
    lines = [line for one in compared for line in _lines(one)]
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
