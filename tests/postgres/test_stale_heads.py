"""A strand whose first job is gone is set right by the claim that meets it, served or not (S42)."""

from __future__ import annotations

import psycopg

from tests.contract.world import World


async def test_a_strand_that_is_not_served_is_not_left_behind(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """Its head was before the jobs of another task, its jobs are behind them, and are claimed there.

    Found by killing connections while jobs ran: two jobs were ready, and no claim met them any more.
    """
    order = ("b", "a", "a", "a", "b", "b")
    jobs = []
    for task in order:
        jobs.append(await world.enqueue(task=task))
        world.advance(1)
    first = await world.claim_one()
    assert first.job.id == jobs[0].id
    # What a message that comes late says: the job that was claimed is ready.
    head = (jobs[0].enqueued_at, str(jobs[0].id))
    admin.execute(f"SET search_path = {schema}")
    admin.execute("UPDATE strand SET head_key = %s, head_id = %s WHERE task = 'b'", head)
    admin.execute("UPDATE tenant_queue SET head_key = %s", head[:1])
    served = [claim.job.id for _ in range(4) for claim in await world.claim(2)]
    assert served == [job.id for job in jobs[1:]]
