"""`fairlane explain`: why a job is not running, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import click

from fairlane import Fairlane, Job, Waiting
from fairlane.app.redaction import REDACTED
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.times import timestamp
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso, to_instant


@click.command(cls=Command)
@click.argument("id", type=value_types.JOB)
@click.pass_obj
def explain(invocation: Invocation, id: UUID) -> None:
    """Explain why a job is not running, and what to do.

    Shows what the job waits for, until when if that is known, and how many jobs of its tenant go first.
    """

    async def read(app: Fairlane) -> tuple[Job[Any], Waiting, Instant]:
        return await app.jobs.aget(id), await app.jobs.aexplain(id), await now_of(app)

    job, why, now = invocation.run(read)
    invocation.output.answer("\n".join(_sentences(job, why, now)), _as_json(job, why))


def _sentences(job: Job[Any], why: Waiting, now: Instant) -> Iterator[str]:
    yield f"Job {job.id} of task {job.task}, tenant {job.tenant}, queue {job.queue}, is {job.state.value}."
    if why.slot is not None:
        yield f"Schedule: {why.schedule}, slot {timestamp(to_instant(why.slot))}."
    until = "" if why.until is None else f", until {timestamp(to_instant(why.until))} ({_away(why, now)})"
    yield f"Reason: {why.reason}{_about(why)}{until}."
    if why.ahead is not None:
        are = "job of its tenant goes" if why.ahead == 1 else "jobs of its tenant go"
        yield f"Ahead: {why.ahead} {are} first in this queue."
    yield f"Advice: {_advice(job, why)}"


def _advice(job: Job[Any], why: Waiting) -> str:
    """Replace a method in the advice by its command."""
    return why.advice.replace("`app.jobs.run_now(id)`", f"`fairlane run-now {job.id}`")


def _about(why: Waiting) -> str:
    """Return the reason's subject in brackets, without the reason's name that a retry or snooze repeats."""
    subject = (REDACTED.text(why.subject) or "").removeprefix(f"{why.reason}: ")
    return f" ({subject})" if subject not in {"", why.reason} else ""


def _away(why: Waiting, now: Instant) -> str:
    return "" if why.until is None else ago(to_instant(why.until), now)


def _as_json(job: Job[Any], why: Waiting) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "state": job.state.value,
        "reason": why.reason,
        "subject": REDACTED.text(why.subject),
        "until": iso(why.until),
        "ahead": why.ahead,
        "schedule": why.schedule,
        "slot": iso(why.slot),
        "advice": _advice(job, why),
    }
