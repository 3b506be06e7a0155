"""Say who is first in line, from the heads that claims use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from fairlane.store.contract.line import FirstInLine, FirstRequest, JobLine, lines_in
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.jobs.count import tasks_of

_PER_SCRIPT: Final = 100
"""How many tenants, or tasks of one tenant, a script looks at."""


async def first_in_line(client: RedisClient, request: FirstRequest) -> tuple[FirstInLine, ...]:
    """Return the first ready job of each line that has any."""
    lines = sorted(lines_in(request), key=lambda line: line.queue)
    found: list[FirstInLine] = []
    for queue, some in groupby(lines, key=lambda line: line.queue):
        tenants = [line.tenant for line in some]
        for at in range(0, len(tenants), _PER_SCRIPT):
            found += await _of_queue(client, queue, tenants[at : at + _PER_SCRIPT])
    return tuple(sorted(found))


async def _of_queue(client: RedisClient, queue: str, tenants: Sequence[str]) -> list[FirstInLine]:
    found: list[FirstInLine] = []
    replies: list[list[Any]] = await client.run("jobs/first_in_line", queue, "", *tenants)
    for tenant, reply in zip(tenants, replies, strict=True):
        first = await _of_many_tasks(client, queue, tenant) if reply == [b"wide"] else reply
        if first:
            id, ready_at, _ = first
            found.append(FirstInLine(JobLine(tenant, queue), UUID(bytes=id), ready_at))
    return found


async def _of_many_tasks(client: RedisClient, queue: str, tenant: str) -> list[Any]:
    """Return the first job of a tenant with too many tasks for its record, some tasks per script."""
    tasks = await tasks_of(client, queue, tenant)
    firsts: list[Any] = []
    for at in range(0, len(tasks), _PER_SCRIPT):
        reply = await client.run("jobs/first_in_line", queue, tenant, *tasks[at : at + _PER_SCRIPT])
        firsts += [one for one in reply if one]
    # Keys are whole microseconds that a double holds exactly, sent as text.
    return min(firsts, key=lambda one: (int(one[2]), one[0]), default=[])
