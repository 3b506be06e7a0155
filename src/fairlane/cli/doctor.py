"""`fairlane doctor`: look at everything, say what is wrong and what to do. Reads only."""

from __future__ import annotations

from importlib.metadata import version
from itertools import chain

import click

from fairlane import Fairlane
from fairlane.cli.command import Command
from fairlane.cli.diagnosis import capacity, crew, health
from fairlane.cli.diagnosis.finding import Finding, worst
from fairlane.cli.diagnosis.place import place_findings
from fairlane.cli.diagnosis.recount import recount
from fairlane.cli.diagnosis.sight import Sight, look
from fairlane.cli.diagnosis.slots import compare
from fairlane.cli.exits import Exit
from fairlane.cli.output import View
from fairlane.cli.session import Session
from fairlane.model.errors import SchemaTooNew, SchemaTooOld, StoreError

_VIEW: View[Finding] = View(
    {"LEVEL": lambda one: one.level, "CHECK": lambda one: one.check, "FINDING": lambda one: one.what},
    lambda one: {"check": one.check, "level": one.level, "what": one.what, "advice": one.advice},
)


@click.command(cls=Command)
@click.option("--problems", is_flag=True, help="Leave out what is well.")
@click.pass_obj
def doctor(session: Session, *, problems: bool) -> None:
    """Check the store, its workers and its books.

    Says what is wrong, and what to do about it. Reads only, and for a few seconds at the most, so that it may
    be run on a store in use. Exits with 1 if anything is bad; warnings do not count.
    """
    findings = _place(session)
    if worst(findings) != "bad":
        findings += _inside(session)
    shown = [one for one in findings if not problems or one.level != "ok"]
    session.output.table(shown, _VIEW, empty="All is well.")
    if not session.is_json:
        for one in shown:
            if one.advice and one.level != "ok":
                session.output.say("")
                session.output.say(f"{one.level}: {one.what}")
                session.output.say(f"  {one.advice}")
    if worst(findings) == "bad":
        raise click.exceptions.Exit(Exit.REFUSED)


def _place(session: Session) -> list[Finding]:
    return place_findings(str(session.app.settings.url))


def _inside(session: Session) -> list[Finding]:
    try:
        return session.run(_examine)
    except SchemaTooOld as error:
        return [Finding("schema", "bad", str(error), "Run `fairlane migrate`.")]
    except SchemaTooNew as error:
        return [Finding("schema", "bad", str(error), "Upgrade Fairlane here to the version of the workers.")]
    except StoreError as error:
        advice = "The store must be reachable and whole before anything else can be checked."
        return [Finding("store", "bad", str(error), advice)]


async def _examine(app: Fairlane) -> list[Finding]:
    sight = await look(app)
    return [*judge(sight, version("fairlane")), *await compare(app, sight), *await recount(app, sight)]


def judge(sight: Sight, here: str) -> list[Finding]:
    """Run every check over what was seen."""
    return list(
        chain(
            health.settings(sight),
            health.library(sight),
            health.remarks(sight),
            health.damage(sight),
            health.clock(sight),
            crew.workers(sight),
            crew.versions(sight, here),
            crew.queues(sight),
            crew.lead(sight),
            crew.leases(sight),
            crew.tasks(sight),
            crew.applications(sight),
            health.oldest(sight),
            capacity.queues(sight),
            health.pauses(sight),
            health.system_share(sight),
        )
    )
