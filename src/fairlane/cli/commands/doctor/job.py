"""`fairlane doctor job`: everything about one job."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import click
import msgspec

from fairlane import Fairlane
from fairlane.app.redaction import REDACTED
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.commands.doctor.results import print_results, result_json
from fairlane.cli.exits import Exit
from fairlane.cli.invocation import Invocation
from fairlane.diagnosis.one_job import JobDiagnosis, diagnose_job
from fairlane.diagnosis.result import CheckResult, worst
from fairlane.model.scope import Scope


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.pass_obj
def job(invocation: Invocation, id: UUID) -> None:
    """Check one job: where it is, whether what leads to it is right, why it does not run, what to do.

    Only reads. Exits with 1 if anything is bad.
    """

    async def read(app: Fairlane) -> JobDiagnosis:
        record, waiting = await app.client.aget(id, Scope.all()), await app.jobs.aexplain(id)
        return await diagnose_job(app.client.store, Scope.all(), record, waiting)

    found = invocation.run(read)
    if invocation.is_json:
        invocation.output.answer("", _as_json(found))
    else:
        about = found.job
        invocation.output.line(
            f"Job {about.id} of task {about.task}, tenant {about.tenant}, queue {about.queue}."
        )
        print_results(invocation, [_for_commands(one, id) for one in found.checks])
    if worst(list(found.checks)) == "bad":
        raise click.exceptions.Exit(Exit.REFUSED)


def _as_json(found: JobDiagnosis) -> dict[str, Any]:
    job = found.job
    checks = [result_json(_for_commands(one, job.id)) for one in found.checks]
    return {
        "id": str(job.id),
        "state": job.state.value,
        "task": job.task,
        "tenant": job.tenant,
        "queue": job.queue,
        "attempt": job.attempt,
        "worker": job.worker,
        "checks": checks,
        "suggested_actions": [one["advice"] for one in checks if one["level"] != "ok" and one["advice"]],
    }


def _for_commands(one: CheckResult, id: UUID) -> CheckResult:
    """Name commands instead of methods, and show no secret that a reason quotes."""
    advice = one.advice.replace("`app.jobs.run_now(id)`", f"`fairlane run-now {id}`")
    return msgspec.structs.replace(one, what=REDACTED.text(one.what) or "", advice=advice)
