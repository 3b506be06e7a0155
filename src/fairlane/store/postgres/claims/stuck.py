"""Take back claims that are stuck (S31): older than they may be, although their worker reports."""

from __future__ import annotations

from fairlane.model.journal import facts
from fairlane.model.retry.decision import reconcile
from fairlane.model.retry.stuck import STUCK_FACTOR, settle_stuck
from fairlane.store.contract.claims import StuckReply, StuckRequest, stuck_claim
from fairlane.store.postgres.claims.end_jobs import end_budgets, end_jobs, queues_at, settled
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.rows import WIDTH, read_record
from fairlane.store.postgres.statements import load


async def take_stuck(server: Server, request: StuckRequest) -> StuckReply:
    """Take back stuck claims that nobody is settling; one question where there are none."""
    sql = load("settle", server.schema)
    asked = (request.started_after, STUCK_FACTOR, request.limit + 1)
    async with server.transaction() as connection:
        rows = await connection.fetch(sql.stuck_claims, server.now(), *asked)
        if not rows:
            return StuckReply()
        now = rows[0][WIDTH]
        taken, ends, events, jobs = [], [], [], []
        for row in rows[: request.limit]:
            job = read_record(row)
            end = settled(reconcile(job, settle_stuck(job, now), now), request.attempts_kept)
            ends.append(end)
            jobs.append(job)
            taken.append(stuck_claim(job, end.state))
            events.append(facts.stuck(job, end.state))
        await end_jobs(connection, server.schema, now, ends)
        waiting = await end_budgets(connection, server.schema, now, jobs)
        await append_entries(connection, server.schema, now, "events", events)
        queues = await queues_at(connection, server.schema, [row["gate"] for row in rows])
    server.hint({*(one.queue for one in taken), *queues, *waiting})
    return StuckReply(tuple(taken), len(rows) > request.limit)
