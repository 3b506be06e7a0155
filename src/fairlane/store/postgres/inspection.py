"""Look into the store itself: its settings, who leads, what unfinished jobs need. Changes nothing."""

from __future__ import annotations

from fairlane.store.contract.inspection import Inspection, InspectRequest, Lead
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.diagnosis import look, remarks
from fairlane.store.postgres.reading import reading
from fairlane.store.postgres.statements import load


async def inspect(server: Server, request: InspectRequest) -> Inspection:
    """Answer all that `Inspection` asks; the server looks after its files by itself."""
    sql = load("inspection", server.schema)
    tenant = request.scope.tenant
    async with reading(server, in_order=True) as connection:
        settings = await connection.fetchrow(sql.settings)
        leads = await connection.fetch(sql.leads)
        tasks = await connection.fetch(sql.tasks, tenant)
        first_lease_until = await connection.fetchval(sql.first_lease, tenant)
        facts = await look(server, connection)
    return Inspection(
        settings={name: str(value) for name, value in dict(settings or {}).items()},
        leads=tuple(Lead(*row) for row in leads),
        tasks=tuple(task for (task,) in tasks),
        first_lease_until=first_lease_until,
        remarks=remarks(facts),
    )
