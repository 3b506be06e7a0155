"""Callers for tests: requests that go straight into the application, as a caller of one's choice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from httpx2 import ASGITransport, AsyncClient
from starlette.requests import Request

from fairlane import Fairlane
from fairlane.model.access import Principal, Role
from fairlane.web.application import asgi

ORIGIN: Final = "http://localhost"
SAME_ORIGIN: Final = {"sec-fetch-site": "same-origin"}
"""What a browser adds to the requests of our own pages."""

NO_RATE: Final = {"web": {"rate": "none"}}
"""Settings: a test asks in a second as often as people do in an hour."""


def always(principal: Principal | None) -> Callable[[Request], Awaitable[Principal | None]]:
    """Return an `authenticate` that knows one caller, or nobody."""

    async def authenticate(_: Request) -> Principal | None:
        return principal

    return authenticate


def ann(role: Role = Role.ADMIN, tenant: str | None = None) -> Principal:
    """Return a user of all tenants, or of one."""
    return Principal(name="ann", role=role, tenant=tenant)


@asynccontextmanager
async def web_of(
    app: Fairlane, principal: Principal | None, *, browser: bool = True, **options: Any
) -> AsyncIterator[AsyncClient]:
    """Open a client of an application's web; `browser` adds what browsers say to our own pages' requests.

    The client knows the web application as its `app`.
    """
    web = asgi(app, authenticate=always(principal), **options)
    transport = ASGITransport(app=web)  # an exception that escapes fails the test
    async with AsyncClient(
        transport=transport, base_url=ORIGIN, headers=SAME_ORIGIN if browser else {}
    ) as client:
        yield client
    await app.aclose()
