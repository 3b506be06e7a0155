"""`fairlane doctor`: run every check, report problems and how to fix them. Reads only."""

from __future__ import annotations

from importlib.metadata import version
from itertools import chain

import click

from fairlane import Fairlane
from fairlane.cli.command import Command
from fairlane.cli.diagnosis import capacity, store_health
from fairlane.cli.diagnosis import workers as crew
from fairlane.cli.diagnosis.counters import recount
from fairlane.cli.diagnosis.location import check_location
from fairlane.cli.diagnosis.result import CheckResult, worst
from fairlane.cli.diagnosis.slots import check_slots
from fairlane.cli.diagnosis.snapshot import StoreSnapshot, take_snapshot
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.cli.render.output import View
from fairlane.model.errors import SchemaTooNew, SchemaTooOld, StoreError

_VIEW: View[CheckResult] = View(
    {"LEVEL": lambda one: one.level, "CHECK": lambda one: one.check, "FINDING": lambda one: one.what},
    lambda one: {"check": one.check, "level": one.level, "what": one.what, "advice": one.advice},
)


@click.command(cls=Command)
@click.option("--problems", is_flag=True, help="Show problems only.")
@click.pass_obj
def doctor(invocation: Invocation, *, problems: bool) -> None:
    """Check the store, its workers and its counters.

    Reports problems and how to fix them. It only reads, for a few seconds at most, so it is safe on a store
    in use. Exits with 1 if anything is bad; warnings do not count.
    """
    findings = _place(invocation)
    if worst(findings) != "bad":
        findings += _inside(invocation)
    shown = [one for one in findings if not problems or one.level != "ok"]
    invocation.output.table(shown, _VIEW, empty="No problems found.")
    if not invocation.is_json:
        for one in shown:
            if one.advice and one.level != "ok":
                invocation.output.line("")
                invocation.output.line(f"{one.level}: {one.what}")
                invocation.output.line(f"  {one.advice}")
    if worst(findings) == "bad":
        raise click.exceptions.Exit(Exit.REFUSED)


def _place(invocation: Invocation) -> list[CheckResult]:
    return check_location(str(invocation.app.settings.url))


def _inside(invocation: Invocation) -> list[CheckResult]:
    try:
        return invocation.run(_examine)
    except SchemaTooOld as error:
        return [CheckResult("schema", "bad", str(error), "Run `fairlane migrate`.")]
    except SchemaTooNew as error:
        return [
            CheckResult("schema", "bad", str(error), "Upgrade Fairlane here to the version of the workers.")
        ]
    except StoreError as error:
        advice = "The store must be reachable and undamaged before anything else can be checked."
        return [CheckResult("store", "bad", str(error), advice)]


async def _examine(app: Fairlane) -> list[CheckResult]:
    snapshot = await take_snapshot(app)
    return [
        *run_checks(snapshot, version("fairlane")),
        *await check_slots(app, snapshot),
        *await recount(app, snapshot),
    ]


def run_checks(snapshot: StoreSnapshot, here: str) -> list[CheckResult]:
    """Run every check on a snapshot of the store."""
    return list(
        chain(
            store_health.settings(snapshot),
            store_health.library(snapshot),
            store_health.remarks(snapshot),
            store_health.damage(snapshot),
            store_health.clock(snapshot),
            crew.workers(snapshot),
            crew.versions(snapshot, here),
            crew.queues(snapshot),
            crew.lead(snapshot),
            crew.leases(snapshot),
            crew.tasks(snapshot),
            crew.applications(snapshot),
            store_health.oldest(snapshot),
            capacity.queues(snapshot),
            store_health.pauses(snapshot),
            store_health.system_share(snapshot),
        )
    )
