"""`fairlane doctor findings`: the problems that the duties have found, lasting and past."""

from __future__ import annotations

import click

from fairlane import Fairlane
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.diagnosis.findings import PastFinding, past_findings
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso, to_datetime


@click.command(cls=Command)
@click.option("--lasting", is_flag=True, help="Show only problems that have not ended.")
@click.pass_obj
def findings(invocation: Invocation, *, lasting: bool) -> None:
    """Show which problems the duties have found in the last days, the newest first.

    The leader of the duties runs most checks of `fairlane doctor` every minute. A problem is an event when it
    begins, once a day while it lasts, and when it has ended; it is shown as long as events are stored
    (events.keep, 7 days).
    """

    async def read(app: Fairlane) -> tuple[list[PastFinding], Instant]:
        return await past_findings(app.client.store), await now_of(app)

    found, now = invocation.run(read)
    shown = [one for one in found if one.ended_at is None or not lasting]
    invocation.output.table(shown, _view(now), empty="No problem was found.")


def _view(now: Instant) -> TableView[PastFinding]:
    return TableView(
        {
            "LEVEL": lambda one: one.finding.level,
            "CHECK": lambda one: one.finding.check,
            "BEGAN": lambda one: ago(one.began_at, now),
            "ENDED": lambda one: None if one.ended_at is None else ago(one.ended_at, now),
            "FINDING": lambda one: one.finding.what,
        },
        lambda one: {
            "check": one.finding.check,
            "subject": one.finding.subject,
            "level": one.finding.level,
            "what": one.finding.what,
            "advice": one.finding.advice,
            "began_at": _time(one.began_at),
            "told_at": _time(one.told_at),
            "ended_at": _time(one.ended_at),
        },
        stacks=True,
    )


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else iso(to_datetime(instant))
