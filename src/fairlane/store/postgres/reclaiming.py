"""Take back claims whose lease ran out (S38): `lose` decides, each job is a step of its own."""

from __future__ import annotations

from fairlane.model.judge import lose
from fairlane.store.contract.claims import Lost, ReclaimReply, ReclaimRequest
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.ending import end_jobs, lost
from fairlane.store.postgres.rows import hot_record
from fairlane.store.postgres.statements import load
from fairlane.store.postgres.sweeping import Floor


async def reclaim(server: Server, floor: Floor, request: ReclaimRequest) -> ReclaimReply:
    """Take back what nobody is just settling; one question where nothing is lost."""
    sql = load("settle", server.schema)
    since = floor()
    asked = await server.fetch(sql.is_any_lapsed, server.now(), since, request.lapsed_by)
    ((at, by, is_any, took, is_idle),) = asked
    if not is_any:
        floor.passed(by, is_whole=True, took=took)
        return ReclaimReply(is_idle=is_idle)
    async with server.transaction() as link:
        rows = await link.fetch(sql.lapsed, by, since, request.most + 1)
        taken, ends = [], []
        for _, is_alone, *row in rows[: request.most]:
            job = hot_record(row)
            loss = lose(job, was_alone=is_alone, max_crashes=request.max_crashes)
            ends.append(lost(job, loss))
            taken.append(Lost(job.id, job.tenant, job.queue, str(job.worker), job.fence, loss.state))
        await end_jobs(link, server.schema, at, ends)
        gates = sorted({gate for gate, *_ in rows if gate is not None})
        lines = await link.fetchval(sql.queues_at, gates) if gates else []
    floor.passed(by, is_whole=len(rows) <= request.most, took=took)
    server.hint({*(one.queue for one in taken), *lines})
    return ReclaimReply(tuple(taken), len(rows) > request.most)
