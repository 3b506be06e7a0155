"""Renew leases, and tell a worker which of its jobs are asked to stop."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.claims import RenewReply, RenewRequest, WorkerRequest
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.rows import if_any, plain_uuid, progress_value
from fairlane.store.postgres.statements import load


async def renew(server: Server, request: RenewRequest) -> RenewReply:
    """Extend leases. A claim that somebody is settling is neither extended nor named."""
    renewals = request.renewals
    ((lease_until, stale, asked),) = await server.fetch(
        load("settle", server.schema).renew,
        server.now(),
        request.worker,
        request.scope.tenant,
        request.lease,
        [one.id for one in renewals],
        [one.fence for one in renewals],
        [progress_value(one.progress) for one in renewals],
        if_any([one.metadata for one in renewals]),
        if_any([one.spent or None for one in renewals]),
    )
    return RenewReply(_ids_at(request, stale), _ids_at(request, asked), lease_until)


def _ids_at(request: RenewRequest, positions: list[int] | None) -> tuple[UUID, ...]:
    """Return the jobs at these positions of a request, which SQL counts from 1."""
    return tuple(request.renewals[position - 1].id for position in sorted(positions or ()))


async def cancel_asked(server: Server, request: WorkerRequest) -> tuple[UUID, ...]:
    """Return the worker's running jobs whose cancel was requested."""
    statement = load("settle", server.schema).asked
    rows = await server.fetch(statement, request.worker, request.scope.tenant)
    return tuple(plain_uuid(id) for (id,) in rows)
