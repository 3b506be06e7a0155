"""Move one batch of rows from the outbox to the store: exactly once by their ids, in order for each tenant.

Exactly once: a row is removed only after the store has its job, and is sent as a repeat, so that an id which
is there already answers for itself (S15). In order: a pass sends, for each tenant, its first rows as one
statement has read them, and none behind a row that was refused. So whoever stores a row has stored, or found
gone, all rows of its tenant before it; this holds for several relays at once, and needs no leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from logging import getLogger
from random import SystemRandom
from typing import Final, NamedTuple

from fairlane.app.refusals import error_of
from fairlane.model.admission import Refusal, RefusalKind
from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import NewJob
from fairlane.outbox.backlog import Backlog, Waiting
from fairlane.outbox.holding import Holds
from fairlane.outbox.row import UnreadableRowError, from_row
from fairlane.store.contract.jobs import BATCH_BYTES, EnqueueReply

_FINAL: Final = frozenset({RefusalKind.ID_TAKEN, RefusalKind.DUPLICATE, RefusalKind.IDEMPOTENCY_MISMATCH})
"""What waiting does not change."""

_log: Final = getLogger("fairlane")
_draw: Final = SystemRandom().random

Send = Callable[[tuple[NewJob, ...]], EnqueueReply]
"""Stores jobs, perhaps for a second time."""


class Passed(NamedTuple):
    """What a pass has done, and in how long there is more to do; None if it has seen everything there was."""

    stored: int
    again_in: Micros | None


def move(backlog: Backlog, send: Send, holds: Holds, now: Micros, most: int) -> Passed:
    """Move the first rows that may go, at most so many. Safe to stop and to repeat at any point."""
    rest = holds.rest(now)
    if rest:
        return Passed(0, rest)
    rows = backlog.read(most, BATCH_BYTES, holds.held(now))
    if not rows:
        return Passed(0, None)
    jobs, aside = _decoded(rows)
    while jobs:
        reply = send(tuple(jobs))
        if not reply.refused:
            break
        jobs = _without(jobs, reply.refused, aside, holds, now)
    for tenant in {job.tenant for job in jobs}.difference(holds.held(now)):
        holds.free(tenant)
    backlog.finish((str(job.id) for job in jobs), aside.items())
    return Passed(len(jobs), 0)


def _decoded(rows: Sequence[Waiting]) -> tuple[list[NewJob], dict[str, str]]:
    """Give the jobs that can be read, and by id what is wrong with the other rows."""
    jobs: list[NewJob] = []
    aside: dict[str, str] = {}
    for row in rows:
        try:
            jobs.append(from_row(*row))
        except UnreadableRowError as error:
            aside[row.id] = str(error)
            _tell_set_aside(row.id, row.tenant, str(error))
    return jobs, aside


def _without(
    jobs: Sequence[NewJob], refused: Sequence[Refusal], aside: dict[str, str], holds: Holds, now: Micros
) -> list[NewJob]:
    """Leave out what was refused: for good, or for now with all that its tenant has behind it."""
    waiting: dict[str, int] = {}
    for refusal in refused:
        job = jobs[refusal.index]
        if job.tenant in waiting:
            continue
        why = str(error_of([refusal], jobs))
        if refusal.kind in _FINAL:
            aside[str(job.id)] = why
            _tell_set_aside(str(job.id), job.tenant, why)
            continue
        waiting[job.tenant] = refusal.index
        if any(before.tenant == job.tenant for before in jobs[: refusal.index]):
            holds.free(job.tenant)  # something of it may go: it has not been refused all the time
        _tell_held(job, holds.hold(job.tenant, now, _draw()), why)
    return [
        job
        for index, job in enumerate(jobs)
        if str(job.id) not in aside and index < waiting.get(job.tenant, len(jobs))
    ]


def _tell_set_aside(id: str, tenant: str, why: str) -> None:
    _log.error(
        "outbox: job %s of tenant %s is set aside: %s",
        *(id, tenant, why),
        extra={"event": "outbox_set_aside", "job": id, "tenant": tenant},
    )


def _tell_held(job: NewJob, delay: Micros, why: str) -> None:
    _log.warning(
        "outbox: tenant %s is held back for %.1f s, its next job %s was refused: %s",
        *(job.tenant, delay / SECOND, job.id, why),
        extra={"event": "outbox_held", "job": str(job.id), "tenant": job.tenant},
    )
