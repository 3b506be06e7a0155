"""`/breakers`: what each circuit breaker is, and by hand: open, close, reset. All tenants share them (S9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from fairlane.app.admin.breakers import BreakerView
from fairlane.app.redaction import REDACTED
from fairlane.model.access import Role
from fairlane.web.api.policies import EndingBody, end_in, reason_in
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, Change, EndpointGroup

BREAKERS: Final = EndpointGroup("breakers", "Circuit breakers around what jobs call, shared by all workers.")


class BreakerList(msgspec.Struct, frozen=True):
    """All breakers, by name and tenant."""

    items: Sequence[BreakerView]


class BreakerQuery(Body, frozen=True, kw_only=True):
    """Of which tenant alone; without one of all together."""

    tenant: str | None = None


class ForceBody(EndingBody, frozen=True, kw_only=True):
    """Open or close a breaker, of all or of one tenant. `note` says why and must not be empty."""

    tenant: str | None = None


class ResetBreakerBody(Change, frozen=True, kw_only=True):
    """Reset a breaker, of all or of one tenant."""

    tenant: str | None = None


@BREAKERS.get("/breakers", "breakers.find", tenants="all")
async def find(call: WebCall) -> BreakerList:
    """Return all breakers: state, counts, until when, who waits."""
    return BreakerList(tuple(map(breaker_shown, await call.app.breakers.alist())))


@BREAKERS.get("/breakers/{breaker}", "breakers.get", tenants="all")
async def get(call: WebCall, breaker: str, query: BreakerQuery) -> BreakerView:
    """Return one breaker. One that was never used is closed."""
    return breaker_shown(await call.app.breakers.aget(breaker, tenant=query.tenant))


@BREAKERS.post("/breakers/{breaker}/open", "breakers.open", least=Role.MANAGER, tenants="all")
async def open_(call: WebCall, breaker: str, body: ForceBody) -> BreakerView:
    """Let nobody pass until then, or until it is closed or reset; afterwards one job passes first."""
    given: dict[str, Any] = {"reason": reason_in(body), "tenant": body.tenant or None}
    return breaker_shown(await call.app.breakers.aopen(breaker, **given, until=await end_in(call, body)))


@BREAKERS.post("/breakers/{breaker}/close", "breakers.close", least=Role.MANAGER, tenants="all")
async def close(call: WebCall, breaker: str, body: ForceBody) -> BreakerView:
    """Let everybody pass, whatever fails, until then or until it is opened or reset."""
    given: dict[str, Any] = {"reason": reason_in(body), "tenant": body.tenant or None}
    return breaker_shown(await call.app.breakers.aclose(breaker, **given, until=await end_in(call, body)))


@BREAKERS.post("/breakers/{breaker}/reset", "breakers.reset", least=Role.OPERATOR, tenants="all")
async def reset(call: WebCall, breaker: str, body: ResetBreakerBody) -> BreakerView:
    """Close it with nothing counted, and end what was forced."""
    return breaker_shown(await call.app.breakers.areset(breaker, tenant=body.tenant or None, note=body.note))


def breaker_shown(one: BreakerView) -> BreakerView:
    """Return a breaker as it may be shown: people write secrets into reasons (S6)."""
    if one.forced is None:
        return one
    return replace(one, forced=replace(one.forced, reason=REDACTED.text(one.forced.reason) or ""))
