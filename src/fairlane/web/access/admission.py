"""Admit a request: find its caller, and refuse a caller that asks too often."""

from __future__ import annotations

from starlette.requests import Request

from fairlane.model.access import Principal
from fairlane.web.http.proxies import peer_of
from fairlane.web.site import Site


async def known(site: Site, request: Request) -> Principal:
    """Return who makes a request, unless it asks too often; so may nobody try credentials too often."""
    rate, peer = site.settings.rate, f"peer {peer_of(request.scope)}"
    has_credentials = "cookie" in request.headers or "authorization" in request.headers
    if has_credentials:
        site.rates.check(peer, rate)
    principal = await site.authenticate(request)
    if principal is not None:
        site.rates.take(f"{principal.how} {principal.name} of {principal.tenant}", rate)
        return principal
    if has_credentials and rate is not None:
        site.rates.note(peer, rate)
    raise site.signed_out(request.scope)
