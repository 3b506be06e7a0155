"""Inspect the server: its settings, who leads, which tasks unfinished jobs need. Changes nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.store.contract.inspection import Inspection, InspectRequest, LeadRecord
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.diagnosis import remarks
from fairlane.store.redis.jobs.count import read_tenant_counts
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.records.stored_jobs import StoredJobs
from fairlane.store.redis.server import read_settings

_read_lead: Final = msgspec.msgpack.Decoder(tuple[str, int]).decode


async def inspect(client: RedisClient, request: InspectRequest) -> Inspection:
    """Return all that an `Inspection` has."""
    _, leads = await client.run("registry/read", NAMES["leads"])
    tenant = request.scope.tenant
    settings = await read_settings(client.ask, client.replicas)
    found = remarks(settings)
    settings.pop("used_memory", None)  # not a setting: it changes by itself
    return Inspection(
        settings=settings,
        remarks=found,
        leads=tuple(
            sorted(
                LeadRecord(name.decode(), *_read_lead(lead))
                for name, lead in zip(leads[::2], leads[1::2], strict=True)
            )
        ),
        tasks=await _tasks(client, tenant),
        first_lease_until=await _first_lease(client, tenant),
    )


async def _tasks(client: RedisClient, tenant: str | None) -> tuple[str, ...]:
    found: set[str] = set()
    position, is_more = ("", ""), True
    while is_more:
        rows, is_more = await read_tenant_counts(client, position, is_after=True, tenant=tenant, tasks=True)
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
