"""`/gates`: limits across all workers, their use, and overrides. All tenants share them (S9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from fairlane.app.admin.gates import GateView
from fairlane.model.access import Role
from fairlane.web.api.policies import Count, OverrideBody, RateValue, count_in, end_in, rate_in, shown
from fairlane.web.api.queues import RateList
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup

GATES: Final = EndpointGroup("gates", "Gates: limits on what runs at once across all workers, and on rates.")


class GateList(msgspec.Struct, frozen=True):
    """All gates, by name."""

    items: Sequence[GateView]


class GateSetBody(OverrideBody, frozen=True, kw_only=True):
    """A gate's limit and rate. A limit of 0 closes the gate."""

    limit: Count = UNSET
    rate: RateValue = UNSET


@GATES.get("/gates", "gates.find", tenants="all")
async def find(call: WebCall) -> GateList:
    """Return all gates by name: limit, rate, and how many jobs are in them now."""
    return GateList(tuple(map(shown, await call.app.gates.alist())))


@GATES.get("/gates/{gate}", "gates.get", tenants="all")
async def get(call: WebCall, gate: str) -> GateView:
    """Return one gate. An unknown name has no limit."""
    return shown(await call.app.gates.aget(gate))


@GATES.get("/rates", "gates.rates", tenants="all")
async def rates(call: WebCall) -> RateList:
    """Return each rate that all tenants share, those of queues, tasks and gates, and how far it is used."""
    return RateList(await call.app.gates.arates())


@GATES.patch("/gates/{gate}", "gates.set", least=Role.ADMIN, tenants="all")
async def set_(call: WebCall, gate: str, body: GateSetBody) -> GateView:
    """Override a gate's limit or rate. What is left out stays; lowering a limit interrupts no job."""
    view = await call.app.gates.aset(
        gate,
        limit=count_in(body.limit),
        rate=rate_in("rate", body.rate),
        note=body.note,
        until=await end_in(call, body),
    )
    return shown(view)


@GATES.post("/gates/{gate}/reset", "gates.reset", least=Role.ADMIN, tenants="all")
async def reset(call: WebCall, gate: str, body: Change) -> GateView:
    """Remove the override, so that the declared values apply again."""
    return shown(await call.app.gates.areset(gate, note=body.note))
