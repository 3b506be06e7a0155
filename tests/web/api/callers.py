"""Callers of the REST API: each with a role and perhaps a tenant, named in the header of its request."""

from __future__ import annotations

from typing import Any, Final

import httpx2
from starlette.requests import Request

from fairlane import Fairlane
from fairlane.model.access import Principal, Role
from fairlane.web.application import asgi
from fairlane.web.locations import API

NAME_HEADER: Final = "x-test-name"
_ROLE: Final = "x-test-role"
_TENANT: Final = "x-test-tenant"


async def by_headers(request: Request) -> Principal | None:
    """Believe what the headers say: how callers are known is tested elsewhere."""
    role = request.headers.get(_ROLE)
    if role is None:
        return None
    return Principal(
        name=request.headers.get(NAME_HEADER, "ann"), role=Role(role), tenant=request.headers.get(_TENANT)
    )


class Callers:
    """The web application of one Fairlane application, and what callers ask of it."""

    def __init__(self, app: Fairlane) -> None:
        """Mount it."""
        self.app = app
        self.web = asgi(app, authenticate=by_headers)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        role: Role | None = Role.ADMIN,
        tenant: str | None = None,
        headers: dict[str, str] | None = None,
        **request: Any,
    ) -> httpx2.Response:
        """Send a request to a path below `/api/v1`."""
        known = {} if role is None else {_ROLE: role.value}
        known |= {} if tenant is None else {_TENANT: tenant}
        # As a browser on the same site says of itself.
        known |= {"sec-fetch-site": "same-origin", **(headers or {})}
        transport = httpx2.ASGITransport(app=self.web)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, API + path, headers=known, **request)

    async def get(self, path: str, **request: Any) -> Any:
        """Read something; it must be there."""
        response = await self.ask("GET", path, **request)
        assert response.status_code == 200, response.text
        return response.json()

    async def post(self, path: str, body: Any = None, *, status: int = 200, **request: Any) -> Any:
        """Do something; by default it must succeed."""
        response = await self.ask("POST", path, json=body or {}, **request)
        assert response.status_code == status, response.text
        return response.json()
