"""End jobs and claims: write what the model decided, with all that follows from it, by one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.judge import Loss
from fairlane.model.lifecycle import State
from fairlane.store.postgres.admitting import Link
from fairlane.store.postgres.rows import attempt_tail
from fairlane.store.postgres.statements import load


class End(NamedTuple):
    """What one job becomes. Counters that are None stay; without a tail no attempt has ended."""

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


def stopped(job: JobRecord, state: State, word: str) -> End:
    """Give the end of a waiting job that was cancelled, condemned, purged or has expired."""
    return End(job.id, state, word)


def lost(job: JobRecord, loss: Loss) -> End:
    """Give the end of a claim that was taken back; the job is a suspect from now on (S39)."""
    return End(
        job.id,
        loss.state,
        loss.because,
        failures=loss.failures,
        crashes=loss.crashes,
        crashes_alone=loss.crashes_alone,
        is_suspect=True,
        tail=attempt_tail(loss.outcome, loss.failure, None),
    )


async def end_jobs(link: Link, schema: str, at: Instant, ends: Sequence[End]) -> None:
    """Write ends. The rows of running jobs are locked; for waiting ones the mutex of their queue is held."""
    if ends:
        columns = [list(column) for column in zip(*ends, strict=True)]
        await link.fetch(load("settle", schema).end_jobs, at, *columns)
