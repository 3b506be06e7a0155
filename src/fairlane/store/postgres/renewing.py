"""Keep claims, and say which are lost or asked to stop (S30, S37, S62)."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.claims import RenewReply, RenewRequest, WorkerRequest
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.rows import plain_uuid, progress_value
from fairlane.store.postgres.statements import load


async def renew(server: Server, request: RenewRequest) -> RenewReply:
    """Extend what is held; one that is just being settled by somebody else is neither extended nor named."""
    renewals = sorted(request.renewals, key=lambda one: one.id)
    rows = await server.fetch(
        load("settle", server.schema).renew,
        server.now(),
        request.worker,
        request.scope.tenant,
        request.lease,
        [one.id for one in renewals],
        [one.fence for one in renewals],
        [progress_value(one.progress) for one in renewals],
    )
    lease_until, stale, asked = rows[0]
    return RenewReply(_in_order(request, stale), _in_order(request, asked), lease_until)


def _in_order(request: RenewRequest, ids: list[UUID] | None) -> tuple[UUID, ...]:
    if not ids:
        return ()
    named = set(map(plain_uuid, ids))
    return tuple(one.id for one in request.renewals if one.id in named)


async def asked_to_cancel(server: Server, request: WorkerRequest) -> tuple[UUID, ...]:
    """Name the running jobs of a worker that are to stop."""
    rows = await server.fetch(load("settle", server.schema).asked, request.worker, request.scope.tenant)
    return tuple(plain_uuid(id) for (id,) in rows)
