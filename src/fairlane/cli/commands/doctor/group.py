"""`fairlane doctor`: run every check, report problems and how to fix them; or repair."""

from __future__ import annotations

from importlib.metadata import version

import click

from fairlane import Fairlane
from fairlane.cli.command import Group
from fairlane.cli.commands.doctor.findings import findings
from fairlane.cli.commands.doctor.job import job
from fairlane.cli.commands.doctor.repair import repair
from fairlane.cli.commands.doctor.results import print_results
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.cli.shared_options import note
from fairlane.cli.store_location import check_location
from fairlane.diagnosis.checks import run_checks
from fairlane.diagnosis.counters import recount
from fairlane.diagnosis.journals import check_journals
from fairlane.diagnosis.result import CheckResult, worst
from fairlane.diagnosis.slots import check_slots
from fairlane.diagnosis.snapshot import take_snapshot
from fairlane.model.errors import SchemaTooNew, SchemaTooOld, StoreError


@click.group(cls=Group, runs_alone=True)
@click.option("--problems", is_flag=True, help="Show problems only.")
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Restore places, lists, counters and budgets that do not fit the jobs.",
)
@click.option("--dry-run", is_flag=True, help="With --repair: only show what would be restored.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@note
@click.pass_context
def doctor(
    context: click.Context, *, problems: bool, repairs: bool, dry_run: bool, yes: bool, note: str
) -> None:
    """Check the store, its workers and its counters.

    Reports problems and how to fix them. It only reads, for a few seconds at most, so it is safe on a store
    in use. Exits with 1 if anything is bad; warnings do not count.

    With --repair it compares the unfinished jobs of each tenant in each queue with what the store derives
    from them (places in line, lists of due and running jobs, counters), and what budgets reserve with the
    jobs that run, and restores that from the jobs. Jobs are never changed. It asks before it changes
    anything, says what it did, and each change is in the audit.
    """
    invocation = context.ensure_object(Invocation)
    if context.invoked_subcommand is not None:
        if problems or repairs:
            message = "--problems and --repair belong to `fairlane doctor` alone"
            raise click.UsageError(message)
    elif repairs:
        repair(invocation, yes=yes, dry_run=dry_run, note=note)
    elif dry_run or yes or note:
        message = "--dry-run, --yes and --note belong to --repair"
        raise click.UsageError(message)
    else:
        _check(invocation, is_short=problems)


doctor.add_command(job)
doctor.add_command(findings)


def _check(invocation: Invocation, *, is_short: bool) -> None:
    results = _place(invocation)
    if worst(results) != "bad":
        results += _inside(invocation)
    print_results(invocation, [one for one in results if not is_short or one.level != "ok"])
    if worst(results) == "bad":
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
    store, clock, settings = app.client.store, app.client.clock, app.settings
    snapshot, limit = await take_snapshot(store, clock), settings.retention.store_limit
    return [
        *run_checks(snapshot, version("fairlane"), settings.doctor, store_limit=limit),
        *await check_journals(store, settings.audit),
        *await check_slots(store, clock, snapshot),
        *await recount(store, snapshot),
    ]
