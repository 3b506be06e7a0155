"""Keep claims, and say which are lost or asked to stop (S30, S37, S62)."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.claims import RenewReply, RenewRequest, WorkerRequest
from fairlane.store.postgres.connect import Server
from fairlane.store.postgres.rows import plain_uuid, progress_value
from fairlane.store.postgres.statements import load


async def renew(server: Server, request: RenewRequest) -> RenewReply:
    """Extend what is held; one that is just being settled by somebody else is neither extended nor named."""
    renewals = request.renewals
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
    return RenewReply(_named(request, stale), _named(request, asked), lease_until)


def _named(request: RenewRequest, places: list[int] | None) -> tuple[UUID, ...]:
    return tuple(request.renewals[place - 1].id for place in sorted(places or ()))


async def asked_to_cancel(server: Server, request: WorkerRequest) -> tuple[UUID, ...]:
    """Name the running jobs of a worker that are to stop."""
    rows = await server.fetch(load("settle", server.schema).asked, request.worker, request.scope.tenant)
    return tuple(plain_uuid(id) for (id,) in rows)
