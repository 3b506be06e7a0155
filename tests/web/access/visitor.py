"""A visitor of a web whose callers the store knows: a browser at an address, perhaps over TLS."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx2
from httpx2 import ASGITransport, AsyncClient

from fairlane import Fairlane
from fairlane.app.access.sign_in import SignedIn, SignIn
from fairlane.store.opening import register_scheme
from fairlane.web.application import asgi
from tests.oracle.clock import DrivenClock
from tests.stores import STORES
from tests.web.callers import SAME_ORIGIN

PASSWORD: Final = "correct horse battery"
HERE: Final = "192.0.2.1"
PAGE: Final = "/help"
"""A page that everybody may see, and that asks no store."""


class Visitor:
    """One browser in front of a web application."""

    def __init__(self, app: Fairlane, client: AsyncClient) -> None:
        """Stand before the door."""
        self.app = app
        self.client = client

    async def enter(self, name: str = "ann", password: str = PASSWORD, **form: str) -> httpx2.Response:
        """Send the form of the sign-in page."""
        return await self.client.post("/sign-in", data={"name": name, "password": password, **form})

    async def use(self, link: str) -> httpx2.Response:
        """Press the button of a link's page."""
        return await self.client.post("/sign-in", data={"link": link})

    async def is_in(self, **headers: str) -> bool:
        """Whether a page is shown, and not the way to the sign-in page."""
        answer = await self.client.get(PAGE, headers=headers)
        assert answer.status_code in {200, 303, 401}, answer.text
        return answer.status_code == 200 and "Sign in" not in answer.text

    async def who(self, **headers: str) -> str | None:
        """Return who the web takes the visitor for, as its pages say; None for nobody."""
        answer = await self.client.get(PAGE, headers=headers)
        found = re.search(r'<div class="side-foot"><b>([^<]*)</b>(\w+)', answer.text)
        return None if found is None else f"{found[1]} {found[2]}"


@asynccontextmanager
async def visiting(
    app: Fairlane, *, peer: str = HERE, origin: str = "http://localhost", web: Any = None
) -> AsyncIterator[Visitor]:
    """Open a browser at an address."""
    transport = ASGITransport(app=web or asgi(app), client=(peer, 4711))
    async with AsyncClient(transport=transport, base_url=origin, headers=SAME_ORIGIN) as client:
        yield Visitor(app, client)


async def signed_in(app: Fairlane, name: str = "ann") -> SignedIn:
    """Sign a user in without a page."""
    found = await SignIn(app).with_password(name, PASSWORD, peer=HERE)
    assert found is not None
    return found


@asynccontextmanager
async def on_store(name: str, **settings: Any) -> AsyncIterator[tuple[Fairlane, DrivenClock]]:
    """Open an application on an empty store of a kind, with one user: ann, an operator."""
    clock = DrivenClock()
    async with STORES[name](clock) as store:
        register_scheme("door", lambda *_: cast("Any", _Left(store)))
        app = Fairlane("door://here", **settings)
        await app.users.aadd("ann", password=PASSWORD, role="operator")
        try:
            yield app, clock
        finally:
            await app.aclose()


class _Left:
    """A store, or its upkeep, that the application does not close: its test does."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        return _Left(found) if name == "upkeep" else found

    async def aclose(self) -> None:
        """Leave the store open."""
