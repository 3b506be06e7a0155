"""The first minute: a link that works once, on the loopback only, while there are no users (S91)."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from fairlane import Fairlane
from fairlane.app.access.sign_in import SESSION_LIFETIME
from fairlane.model.instants import SECOND
from fairlane.web.access.first_sign_in import LINK_LIFETIME, first_sign_in, is_loopback
from fairlane.web.application import asgi
from tests.app.world import World
from tests.stores import STORES
from tests.web.access.visitor import PASSWORD, on_store, visiting
from tests.web.pages.markup import Markup

URL = "http://127.0.0.1:8080/"


async def link_of(app: Fairlane, url: str = URL) -> str:
    """Return the secret of the link that a start prints."""
    told = await first_sign_in(app, url, "127.0.0.1")
    assert told is not None
    (found,) = re.findall(r"http://\S+", told)
    assert found.startswith(f"{url}sign-in?link=fl_")
    (secret,) = parse_qs(urlsplit(str(found)).query)["link"]
    return secret


async def empty(app: Fairlane) -> None:
    """Remove the user that the tests' stores have."""
    await app.users.aremove("ann")


async def test_a_link_signs_an_administrator_in_once(stored: Fairlane) -> None:
    """S91: looking at its page uses nothing up; of many that use it at once, one gets in."""
    await empty(stored)
    link = await link_of(stored)
    web = asgi(stored)
    async with visiting(stored, web=web) as visitor, visiting(stored, web=web) as other:
        for _ in range(2):
            page = await visitor.client.get("/sign-in", params={"link": link})
            ((action, fields),) = Markup(page.text).forms
            assert (action, fields["link"], Markup(page.text).wrong) == ("/sign-in", link, [])
        answers = await asyncio.gather(*(one.use(link) for one in (visitor, other, visitor, other)))
        assert sorted(answer.status_code for answer in answers) == [303, 403, 403, 403]
        assert [await visitor.is_in(), await other.is_in()].count(True) == 1
        entered = visitor if await visitor.is_in() else other
        assert (await entered.who() or "").endswith(" admin")
        again = await other.use(link)
        assert (again.status_code, "was used before" in again.text) == (403, True)
    (session,) = await stored.sessions.alist()
    await stored.sessions.aend(session.id)
    async with visiting(stored, web=web) as copy:
        copy.client.cookies.update(entered.client.cookies)
        assert not await copy.is_in()


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_a_link_and_its_session_end(store: str) -> None:
    """S91: by the store's clock."""
    async with on_store(store) as (app, clock):
        await empty(app)
        late, used = await link_of(app), await link_of(app)
        async with visiting(app) as visitor:
            assert (await visitor.use(used)).status_code == 303
            clock.advance(LINK_LIFETIME / SECOND)
            assert await visitor.is_in()
            clock.advance((SESSION_LIFETIME - LINK_LIFETIME) / SECOND)
            assert not await visitor.is_in()
            assert (await visitor.use(late)).status_code == 403
            assert not await visitor.is_in()


async def test_a_wrong_link_is_no_link(world: World) -> None:
    """S91: nor is a token, a session or nothing."""
    app = world.app()
    token = (await app.tokens.acreate("ci", role="admin")).secret
    async with visiting(app) as visitor:
        await visitor.use(await link_of(app))
        (session,) = visitor.client.cookies.values()
    async with visiting(app) as visitor:
        for wrong in ("fl_x", "x", token, session):
            assert (await visitor.use(wrong)).status_code == 403
        assert not await visitor.is_in()
        page = await visitor.client.get("/sign-in", params={"link": '"><script>'})
        assert "script" not in page.text


async def test_with_a_user_nothing_is_printed(app: Fairlane) -> None:
    """S91: a link would be a second way in."""
    assert await first_sign_in(app, URL, "127.0.0.1") is None
    await app.users.aremove("ann")
    assert await first_sign_in(app, URL, "127.0.0.1") is not None
    await app.users.aadd("bob", password=PASSWORD, role="viewer", tenant="acme")
    assert await first_sign_in(app, URL, "127.0.0.1") is None


OTHERS_REACH = ["0.0.0.0", "::", "10.0.0.7", "192.0.2.1", "fd00::1", "/run/web.sock"]  # noqa: S104 (not bound)


@pytest.mark.parametrize("address", OTHERS_REACH)
async def test_no_link_is_printed_for_an_address_that_others_reach(world: World, address: str) -> None:
    """S91: there the start says what to do, and no link is made."""
    app = world.app()
    told = await first_sign_in(app, URL, address)
    assert told is not None
    assert "fl_" not in told
    assert "fairlane users add NAME --role admin" in told
    assert "write" not in world.verbs()
    assert not is_loopback(address)


async def test_where_a_proxy_names_the_users_nobody_needs_to_be_added(world: World) -> None:
    """S91: they can sign in already."""
    web = {"trusted_proxies": ["10.0.0.7"], "user_header": "X-User", "user_header_role": "viewer"}
    assert await first_sign_in(world.app(config={"web": web}), URL, "127.0.0.1") is None


async def test_below_a_prefix_the_link_is_too(world: World) -> None:
    """S91: as it is printed, so it works."""
    await link_of(world.app(), "http://127.0.0.1:8080/ops/jobs/")
