"""Write the ends of jobs and claims that the model has decided, with all that follows, by one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from fairlane.model.instants import Instant, Micros
from fairlane.model.job import ATTEMPTS_KEPT, JobRecord, Settlement
from fairlane.model.lifecycle.states import State, target
from fairlane.model.retry.decision import LeaseLoss
from fairlane.store.postgres.connection import StatementRunner
from fairlane.store.postgres.rows import attempt_tail
from fairlane.store.postgres.statements import load


class JobEnd(NamedTuple):
    """What one job becomes: its id and the columns `ENDS`; see `columns`.

    Counters and metadata that are None stay.
    """

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
    kept: int = ATTEMPTS_KEPT
    metadata: bytes | None = None


def stopped(job: JobRecord, state: State, reason: str) -> JobEnd:
    """Return the end of a waiting job that was cancelled, moved to dead, purged or has expired."""
    return JobEnd(job.id, state, reason)


def lost(job: JobRecord, loss: LeaseLoss, kept: int) -> JobEnd:
    """Return the end of a claim that was taken back; the job is a suspect from now on (S39)."""
    return JobEnd(
        job.id,
        loss.state,
        loss.because,
        crashes=loss.crashes,
        crashes_alone=0,
        is_suspect=True,
        tail=attempt_tail(loss.outcome, loss.failure, None),
        kept=kept,
    )


def settled(settlement: Settlement, kept: int) -> JobEnd:
    """Return the end of a claim that nobody's worker has settled; its duration tells nothing of the task."""
    return JobEnd(
        settlement.id,
        target(settlement.event),
        settlement.because,
        delay=settlement.delay,
        failures=settlement.failures,
        crashes_alone=settlement.crashes_alone,
        is_suspect=settlement.is_suspect,
        tail=attempt_tail(settlement.outcome, settlement.failure, None),
        kept=kept,
    )


async def end_jobs(runner: StatementRunner, schema: str, at: Instant, ends: Sequence[JobEnd]) -> None:
    """Write ends. The caller has locked the rows of running jobs, or holds the queue lock of waiting ones."""
    if ends:
        columns = [list(column) for column in zip(*ends, strict=True)]
        await runner.fetch(load("settle", schema).end_jobs, at, *columns)


async def end_budgets(
    runner: StatementRunner, schema: str, at: Instant, claims: Iterable[JobRecord]
) -> list[str]:
    """Report claims that others than their workers end; return the queues that wait for budgets' room."""
    ended = list(claims)
    if not ended:
        return []
    keys = [one.id for one in ended], [one.fence for one in ended]
    ((queues,),) = await runner.fetch(load("settle", schema).end_budgets, at, *keys)
    return list(queues)


async def queues_at(runner: StatementRunner, schema: str, gates: Iterable[str | None]) -> list[str]:
    """Return the queues in which strands wait at these gates: a claim that ends may let one of them in."""
    named = sorted({gate for gate in gates if gate is not None})
    if not named:
        return []
    ((queues,),) = await runner.fetch(load("settle", schema).queues_at_gates, named)
    return list(queues)
