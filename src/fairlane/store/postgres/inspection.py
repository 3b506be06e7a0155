"""Inspect the store itself: settings, leads, the tasks of unfinished jobs, what is wrong. Changes nothing."""

from __future__ import annotations

from fairlane.model.policy.pressure import StoreSize
from fairlane.store.contract.inspection import (
    Inspection,
    InspectRequest,
    LeadRecord,
    StoredPart,
    wanted_parts,
)
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.diagnosis import read_facts, remarks
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.statements import load


async def inspect(server: Server, request: InspectRequest) -> Inspection:
    """Return all that `Inspection` has."""
    sql = load("inspection", server.schema)
    tenant, wanted = request.scope.tenant, wanted_parts(request)
    async with read_transaction(server, in_order=True) as connection:
        settings = await connection.fetchrow(sql.settings)
        leads = await connection.fetch(sql.leads)
        tasks = await connection.fetch(sql.tasks, tenant)
        first_lease_until = await connection.fetchval(sql.first_lease, tenant)
        clients = await connection.fetchval(sql.clients)
        facts = await read_facts(server, connection)
        size = await connection.fetchval(sql.size)
        tables = await connection.fetch(sql.parts, wanted + 1) if wanted else []
    return Inspection(
        settings={name: str(value) for name, value in dict(settings or {}).items()},
        leads=tuple(LeadRecord(*row) for row in leads),
        tasks=tuple(task for (task,) in tasks),
        first_lease_until=first_lease_until,
        remarks=remarks(facts),
        clients=clients,
        size=StoreSize(size),
        parts=tuple(
            StoredPart(name=name, kind="table", entries=rows, size=size)
            for name, rows, size in tables[:wanted]
        ),
        are_all_parts=len(tables) <= wanted,
    )
