"""Move one batch of rows from the outbox to the store: exactly once by id, in order for each tenant.

Exactly once: a row is deleted only after the store has its job. It is sent as a repeated enqueue, so an id
that is stored already is not stored again (S15). In order: a pass sends the first rows of each tenant, read
by one statement, and none behind a refused row. So whoever stores a row has stored, or found deleted, all
earlier rows of its tenant. This holds for several relays at once and needs no leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from logging import getLogger
from random import SystemRandom
from typing import Final, NamedTuple

from fairlane.app.enqueue.refusals import refusal_error
from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import NewJob
from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.outbox.backlog import Backlog, OutboxRow
from fairlane.outbox.held_tenants import HeldTenants
from fairlane.outbox.row import UnreadableRowError, from_row
from fairlane.store.contract.jobs import MAX_BATCH_BYTES, EnqueueReply

_FINAL: Final = frozenset({RefusalKind.ID_TAKEN, RefusalKind.DUPLICATE, RefusalKind.IDEMPOTENCY_MISMATCH})
"""Refusals that waiting does not change."""

_log: Final = getLogger("fairlane")
_draw: Final = SystemRandom().random

Send = Callable[[tuple[NewJob, ...]], EnqueueReply]
"""Stores jobs, possibly for a second time."""


class PassResult(NamedTuple):
    """How many rows a pass stored, and when to run the next; None if the outbox was empty."""

    stored: int
    again_in: Micros | None


def move(backlog: Backlog, send: Send, held_tenants: HeldTenants, now: Micros, limit: int) -> PassResult:
    """Move the first rows that may go, at most `limit`. Safe to interrupt and to repeat at any point."""
    rest = held_tenants.rest(now)
    if rest:
        return PassResult(0, rest)
    rows = backlog.read(limit, MAX_BATCH_BYTES, held_tenants.held(now))
    if not rows:
        return PassResult(0, None)
    jobs, set_aside = _decoded(rows)
    while jobs:
        reply = send(tuple(jobs))
        if not reply.refused:
            break
        jobs = _without(jobs, reply.refused, set_aside, held_tenants, now)
    for tenant in {job.tenant for job in jobs}.difference(held_tenants.held(now)):
        held_tenants.free(tenant)
    backlog.finish((str(job.id) for job in jobs), set_aside.items())
    return PassResult(len(jobs), 0)


def _decoded(rows: Sequence[OutboxRow]) -> tuple[list[NewJob], dict[str, str]]:
    """Return the jobs that can be decoded, and the problem of each other row by id."""
    jobs: list[NewJob] = []
    set_aside: dict[str, str] = {}
    for row in rows:
        try:
            jobs.append(from_row(*row))
        except UnreadableRowError as error:
            set_aside[row.id] = str(error)
            _log_set_aside(row.id, row.tenant, str(error))
    return jobs, set_aside


def _without(
    jobs: Sequence[NewJob],
    refused: Sequence[Refusal],
    set_aside: dict[str, str],
    held_tenants: HeldTenants,
    now: Micros,
) -> list[NewJob]:
    """Return the jobs without the refused ones, which are set aside, or held with all that follow them."""
    waiting: dict[str, int] = {}
    for refusal in refused:
        job = jobs[refusal.index]
        if job.tenant in waiting:
            continue
        why = str(refusal_error([refusal], jobs))
        if refusal.kind in _FINAL:
            set_aside[str(job.id)] = why
            _log_set_aside(str(job.id), job.tenant, why)
            continue
        waiting[job.tenant] = refusal.index
        if any(before.tenant == job.tenant for before in jobs[: refusal.index]):
            held_tenants.free(job.tenant)  # an earlier row may go, so the backoff starts anew
        _log_held(job, held_tenants.hold(job.tenant, now, _draw()), why)
    return [
        job
        for index, job in enumerate(jobs)
        if str(job.id) not in set_aside and index < waiting.get(job.tenant, len(jobs))
    ]


def _log_set_aside(id: str, tenant: str, why: str) -> None:
    _log.error(
        "outbox: job %s of tenant %s is set aside: %s",
        *(id, tenant, why),
        extra={"event": "outbox_set_aside", "job": id, "tenant": tenant},
    )


def _log_held(job: NewJob, delay: Micros, why: str) -> None:
    _log.warning(
        "outbox: tenant %s is held back for %.1f s, its next job %s was refused: %s",
        *(job.tenant, delay / SECOND, job.id, why),
        extra={"event": "outbox_held", "job": str(job.id), "tenant": job.tenant},
    )
