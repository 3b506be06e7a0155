"""What proxies say of their clients: believed of those that were named, and of nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.requests import Request

from fairlane.model.access import Principal
from fairlane.web.application import asgi
from fairlane.web.http.proxies import client_of
from tests.app.world import World
from tests.web.boxes import boxes, pages
from tests.web.callers import ORIGIN, ann

TRUSTED = ["10.0.0.0/24", "fd00::/8"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.7", ["1.2.3.4"], "1.2.3.4"),
        ("10.0.0.7", ["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
        ("10.0.0.7", ["6.6.6.6", "1.2.3.4, 10.0.0.8"], "1.2.3.4"),
        ("10.0.0.7", ["1.2.3.4, fd00::1"], "1.2.3.4"),
        ("10.0.0.7", ["10.0.0.9"], "10.0.0.7"),
        ("10.0.0.7", [], "10.0.0.7"),
        ("10.0.0.7", ["unknown"], "10.0.0.7"),
        ("10.0.0.7", ["1.2.3.4:5555"], "10.0.0.7"),
        ("::1", ["", ","], "::1"),
    ],
)
def test_the_client_is_the_nearest_that_is_no_proxy(peer: str, forwarded: list[str], client: str) -> None:
    """Whatever stands farther left may have been written by the client itself."""
    assert client_of(peer, forwarded, TRUSTED) == client


@pytest.mark.parametrize(
    ("peer", "seen"),
    [
        ("10.0.0.7", ("1.2.3.4", "https")),
        ("10.0.1.7", ("10.0.1.7", "http")),
        ("::ffff:10.0.0.7", ("1.2.3.4", "https")),
        ("nobody", ("nobody", "http")),
    ],
)
async def test_only_named_proxies_are_believed(world: World, peer: str, seen: tuple[str, str]) -> None:
    """The address and the scheme that they name reach everything behind: limits, cookies, the log."""
    app = world.app(config={"web": {"trusted_proxies": TRUSTED}})
    found: list[Any] = []

    async def authenticate(request: Request) -> Principal:
        assert request.client is not None
        found.append((request.client.host, request.url.scheme))
        return ann()

    web = asgi(app, authenticate=authenticate, groups=[boxes], pages=[pages])
    headers = {"x-forwarded-for": "1.2.3.4", "x-forwarded-proto": "https"}
    transport = ASGITransport(app=web, client=(peer, 4711))
    async with AsyncClient(transport=transport, base_url=ORIGIN, headers=headers) as client:
        assert (await client.get("/api/v1/boxes")).status_code == 200
    assert found == [seen]
    await app.aclose()


@pytest.mark.parametrize("scheme", ["ftp", "", "https, http"])
async def test_a_scheme_that_is_none_changes_nothing(world: World, scheme: str) -> None:
    """It would end up in a cookie's flags."""
    app = world.app(config={"web": {"trusted_proxies": TRUSTED}})
    found: list[str] = []

    async def authenticate(request: Request) -> Principal:
        found.append(request.url.scheme)
        return ann()

    web = asgi(app, authenticate=authenticate, groups=[boxes], pages=[pages])
    transport = ASGITransport(app=web, client=("10.0.0.7", 4711))
    async with AsyncClient(transport=transport, base_url=ORIGIN) as client:
        await client.get("/api/v1/boxes", headers={"x-forwarded-proto": scheme})
    assert found == ["http"]
    await app.aclose()
