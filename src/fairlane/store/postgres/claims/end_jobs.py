"""Write the ends of jobs and claims that the model has decided, with all that follows, by one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.retry.decision import LeaseLoss
from fairlane.store.postgres.connection import StatementRunner
from fairlane.store.postgres.rows import attempt_tail
from fairlane.store.postgres.statements import load


class JobEnd(NamedTuple):
    """What one job becomes: its id and the columns `ENDS`. Counters that are None stay; see `columns`."""

    id: UUID
    state: State
    because: str | None
    delay: Micros = 0
    failures: int | None = None
    crashes: int | None = None
    crashes_alone: int | None = None
    snoozes: int | None = None
    is_suspect: bool | None = None
    tail: str | None = None
    learns: bool = False
    result: bytes | None = None


def stopped(job: JobRecord, state: State, reason: str) -> JobEnd:
    """Return the end of a waiting job that was cancelled, moved to dead, purged or has expired."""
    return JobEnd(job.id, state, reason)


def lost(job: JobRecord, loss: LeaseLoss) -> JobEnd:
    """Return the end of a claim that was taken back; the job is a suspect from now on (S39)."""
    return JobEnd(
        job.id,
        loss.state,
        loss.because,
        failures=loss.failures,
        crashes=loss.crashes,
        crashes_alone=loss.crashes_alone,
        is_suspect=True,
        tail=attempt_tail(loss.outcome, loss.failure, None),
    )


async def end_jobs(runner: StatementRunner, schema: str, at: Instant, ends: Sequence[JobEnd]) -> None:
    """Write ends. The caller has locked the rows of running jobs, or holds the queue lock of waiting ones."""
    if ends:
        columns = [list(column) for column in zip(*ends, strict=True)]
        await runner.fetch(load("settle", schema).end_jobs, at, *columns)
