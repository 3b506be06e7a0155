"""`/livez`, `/readyz` and `/health` of the web: for everybody, with details for who may see workers (S92)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fairlane.diagnosis.health import HealthWatch
from fairlane.diagnosis.probes import Probes
from fairlane.model.access_errors import TooManyAttempts
from fairlane.model.errors import StoreError
from fairlane.runtime.clock import MachineClock
from fairlane.web.access.admission import known
from fairlane.web.locations import path_below
from fairlane.web.problem import HttpProblem
from fairlane.web.site import Site

_SEES: Final = "workers.find"
"""Who may use this endpoint sees details."""


def probe_of(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers the probes of a web application."""
    probes = Probes(HealthWatch(lambda: site.app.client.store, MachineClock()))

    async def serve(request: Request) -> Response:
        has_details = await _may_see_details(site, request)
        status, body = await probes(path_below(request.scope), has_details=has_details)
        return Response(body, status_code=status, media_type="application/json")

    return serve


async def _may_see_details(site: Site, request: Request) -> bool:
    if "cookie" not in request.headers and "authorization" not in request.headers:
        return False
    try:
        return site.may(await known(site, request), _SEES)
    except (HttpProblem, TooManyAttempts, StoreError):
        return False
