"""Reclaim claims whose lease has ended (S38). `lose_lease` decides what becomes of each job."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.retry.decision import lose_lease
from fairlane.store.contract.claims import LostClaim, ReclaimReply, ReclaimRequest
from fairlane.store.postgres.claims.end_jobs import end_budgets, end_jobs, lost, queues_at
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.rows import read_record
from fairlane.store.postgres.statements import load

_FULL_SCAN_EVERY: Final = 60
_CHEAP: Final[Micros] = SECOND // 50
"""While a full scan takes less than this, every measured pass is a full scan. Two passes a second beside an
old snapshot then cost a twenty-fifth of a core at most."""


class ScanStart:
    """Where a recurring pass starts to scan an index: behind dead entries that an old snapshot keeps.

    What the last pass left behind is found by a full scan, once in a while. Statements start some seconds
    earlier than said here, more after a clock went back.
    """

    def __init__(self) -> None:
        """Begin with a full scan."""
        self._last: Instant = 0
        self._passes = 0

    def __call__(self) -> Instant:
        """Return the instant at which this pass starts; 0 for a full scan."""
        return self._last if self._passes % _FULL_SCAN_EVERY else 0

    def passed(self, at: Instant, *, is_whole: bool, took: Micros = SECOND) -> None:
        """Note a pass. One that left something behind, or a cheap full scan, is followed by a full scan."""
        is_cheap = self() == 0 and took < _CHEAP
        self._last = at
        self._passes = self._passes + 1 if is_whole and not is_cheap else 0


async def reclaim(server: Server, scan_start: ScanStart, request: ReclaimRequest) -> ReclaimReply:
    """Take back lapsed claims that nobody is settling; one question where there are none."""
    sql = load("settle", server.schema)
    scan_from = scan_start()
    asked = await server.fetch(sql.is_any_lapsed, server.now(), scan_from, request.expired_by)
    ((at, lapsed_by, is_any, took, is_idle),) = asked
    if not is_any:
        scan_start.passed(lapsed_by, is_whole=True, took=took)
        return ReclaimReply(is_idle=is_idle)
    async with server.transaction() as connection:
        rows = await connection.fetch(sql.lapsed_claims, lapsed_by, scan_from, request.limit + 1)
        taken, ends, jobs = [], [], []
        for row in rows[: request.limit]:
            job = read_record(row)
            loss = lose_lease(job)
            jobs.append(job)
            ends.append(lost(job, loss, request.attempts_kept))
            taken.append(LostClaim(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state))
        await end_jobs(connection, server.schema, at, ends)
        waiting = await end_budgets(connection, server.schema, at, jobs)
        queues = await queues_at(connection, server.schema, [row["gate"] for row in rows])
    scan_start.passed(lapsed_by, is_whole=len(rows) <= request.limit, took=took)
    server.hint({*(one.queue for one in taken), *queues, *waiting})
    return ReclaimReply(tuple(taken), len(rows) > request.limit)
