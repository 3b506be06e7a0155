"""Look into the server: its settings, who leads, what unfinished jobs need. Changes nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.store.contract.inspection import Inspection, InspectRequest, Lead
from fairlane.store.redis.connect import Wire
from fairlane.store.redis.counting import read_books
from fairlane.store.redis.diagnosis import remarks
from fairlane.store.redis.homes import PAGE, Homes
from fairlane.store.redis.keys import NAMES
from fairlane.store.redis.server import look

_read_lead: Final = msgspec.msgpack.Decoder(tuple[str, int]).decode


async def inspect(wire: Wire, request: InspectRequest) -> Inspection:
    """Answer all that `Inspection` asks."""
    _, leads = await wire.run("registry", NAMES["leads"])
    tenant = request.scope.tenant
    settings = await look(wire.ask, wire.replicas)
    found = remarks(settings)
    settings.pop("used_memory", None)  # no setting: it changes by itself
    return Inspection(
        settings=settings,
        remarks=found,
        leads=tuple(
            sorted(
                Lead(name.decode(), *_read_lead(lead))
                for name, lead in zip(leads[::2], leads[1::2], strict=True)
            )
        ),
        tasks=await _tasks(wire, tenant),
        first_lease_until=await _first_lease(wire, tenant),
    )


async def _tasks(wire: Wire, tenant: str | None) -> tuple[str, ...]:
    found: set[str] = set()
    place, is_more = ("", ""), True
    while is_more:
        books, is_more = await read_books(wire, place, is_after=True, tenant=tenant, tasks=True)
        found.update(task for *_, tasks in books for task in tasks)
        place = books[-1][:2] if books else place
    return tuple(sorted(found))


async def _first_lease(wire: Wire, tenant: str | None) -> int | None:
    homes, place = Homes(wire), None
    while True:
        _, page = await homes.walk(NAMES["leases"], up=True, start=place, most=1 if tenant is None else PAGE)
        for where, kept in page:
            if kept is not None and tenant in {None, kept.job.tenant}:
                return where[0]
        if not page:
            return None
        place = page[-1][0]
