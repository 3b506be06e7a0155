"""`fairlane duties`: who does the duties, how each went, and one pass by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click
import msgspec

from fairlane import DutyView, Fairlane
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.shared_options import note
from fairlane.duties.by_hand import run_duty
from fairlane.model.durations import ago
from fairlane.model.duty_report import DUTIES
from fairlane.model.instants import Instant, to_instant


@click.group(cls=Group, lists=True)
def duties() -> None:
    """Show the duties, or make a pass: list, run. Default: list."""


@duties.command("list", cls=Command)
@click.pass_obj
def list_duties(invocation: Invocation) -> None:
    """List the duties: who did each last, when, what it did."""

    async def read(app: Fairlane) -> tuple[Sequence[DutyView], str | None, Instant]:
        return await app.duties.alist(), await app.duties.aleader(), await now_of(app)

    found, leader, now = invocation.run(read)
    invocation.output.table(found, _view(now))
    invocation.output.note(
        f"Done by {leader}." if leader else "Nobody does them: start a worker, or `fairlane scheduler`."
    )
    for one in found:
        if one.failures:
            times = "once" if one.failures == 1 else f"{one.failures} times in a row"
            invocation.output.note(f"{one.name} failed {times}: {one.error}")


@duties.command(cls=Command)
@click.argument("name", type=click.Choice(sorted(DUTIES)), metavar="NAME")
@note
@click.pass_obj
def run(invocation: Invocation, *, name: str, note: str) -> None:
    """Make one pass of a duty now, in this process.

    Safe beside the process that does the duties: each step is done once. The audit says who did it.
    """
    done = invocation.run(lambda app: run_duty(app, name, note=note))
    did, more = done.did or "nothing to do", "; there is more" if done.more and done.did else ""
    text = f"{name}: {did}{more}, in {done.took:.3f} s."
    invocation.output.answer(text, msgspec.to_builtins(done))


def _view(now: Instant) -> TableView[DutyView]:
    return TableView(
        {
            "DUTY": lambda one: one.name,
            "LAST": lambda one: None if one.last_at is None else ago(to_instant(one.last_at), now),
            "TOOK": lambda one: _seconds(one.took),
            "LAG": lambda one: _seconds(one.lag),
            "DID": lambda one: one.did,
            "NEXT": lambda one: None if one.next_at is None else ago(max(now, to_instant(one.next_at)), now),
            "FAILED": lambda one: one.failures or None,
            "BY": lambda one: one.worker,
        },
        asdict,
    )


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.3f} s"
