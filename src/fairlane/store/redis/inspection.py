"""Inspect the server: its settings, who leads, which tasks unfinished jobs need. Changes nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.store.contract.inspection import (
    Inspection,
    InspectRequest,
    LeadRecord,
    largest_parts,
    wanted_parts,
)
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.diagnosis import remarks
from fairlane.store.redis.jobs.count import read_tenant_counts
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.parts import read_parts
from fairlane.store.redis.records.stored_jobs import StoredJobs
from fairlane.store.redis.server import read_settings
from fairlane.store.redis.size import size_of

_read_lead: Final = msgspec.msgpack.Decoder(tuple[str, int]).decode


async def inspect(client: RedisClient, request: InspectRequest) -> Inspection:
    """Return all that an `Inspection` has."""
    _, leads = await client.run("registry/read", NAMES["leads"])
    tenant = request.scope.tenant
    settings = await read_settings(client.ask, client.replicas)
    found, size = remarks(settings), size_of(settings)
    wanted = wanted_parts(request)
    parts, are_all = await read_parts(client) if wanted else ([], True)
    # No settings: they change by themselves.
    memory, clients = settings.pop("used_memory", None), settings.pop("connected_clients", None)
    return Inspection(
        settings=settings,
        remarks=found,
        size=size,
        memory=None if memory is None else int(memory),
        clients=None if clients is None else int(clients) - 1,  # without the one that asks
        leads=tuple(
            sorted(
                LeadRecord(name.decode(), *_read_lead(lead))
                for name, lead in zip(leads[::2], leads[1::2], strict=True)
            )
        ),
        tasks=await _tasks(client, tenant),
        first_lease_until=await _first_lease(client, tenant),
        parts=largest_parts(parts, wanted),
        are_all_parts=not wanted or (are_all and len(parts) <= wanted),
    )


async def _tasks(client: RedisClient, tenant: str | None) -> tuple[str, ...]:
    found: set[str] = set()
    position, is_more = ("", ""), True
    while is_more:
        rows, is_more = await read_tenant_counts(client, position, is_after=True, tenant=tenant, more="tasks")
        found.update(task for row in rows for task in row.tasks)
        position = rows[-1].position if rows else position
    return tuple(sorted(found))


async def _first_lease(client: RedisClient, tenant: str | None) -> int | None:
    stored_jobs = StoredJobs(client)
    if tenant is None:
        _, page = await stored_jobs.page(NAMES["leases"], up=True, start=None, limit=1)
        return page[0][0][0] if page else None
    async for (lease_until, _), stored in stored_jobs.scan(NAMES["leases"]):
        if stored.job.tenant == tenant:
            return lease_until
    return None
