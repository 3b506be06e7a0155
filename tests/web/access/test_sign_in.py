"""The sign-in page, its cookie, and signing out (S80, S81, S91)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.app.access.attempts import FOR_NAME_AND_PEER
from fairlane.app.access.sign_in import SESSION_LIFETIME
from fairlane.model.errors import StoreUnavailable
from fairlane.model.instants import SECOND
from fairlane.web.application import asgi
from tests.app.world import World
from tests.web.access.visitor import PAGE, PASSWORD, visiting
from tests.web.callers import web_of
from tests.web.pages.markup import Markup


def cookies_of(answer: Any) -> list[str]:
    """Return the cookies that an answer sets, in lower case."""
    return [value.lower() for value in answer.headers.get_list("set-cookie")]


async def test_nobody_is_let_in_who_is_not_known(app: Fairlane) -> None:
    """S79: no page, endpoint, stream or form is; what shows nothing of the application is for everybody."""
    async with visiting(app) as visitor:
        for path in ("/", "/jobs", "/dead", "/help", "/live?page=/"):
            answer = await visitor.client.get(path)
            assert (answer.status_code, answer.headers["location"][:8]) == (303, "/sign-in"), path
        for path in ("/api/v1/jobs", "/api/v1/openapi.json", "/api/v1/users"):
            answer = await visitor.client.get(path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path
        form = await visitor.client.post("/do/queues.pause", data={"name": "default", "note": "x"})
        assert (form.status_code, form.headers["location"]) == (303, "/sign-in")
        assert (await visitor.client.get("/static/app.css")).status_code == 200


async def test_a_user_signs_in_and_out_on_every_store(stored: Fairlane) -> None:
    """S80: signing out ends the session in the store, so a copy of its cookie is worth nothing."""
    web = asgi(stored)
    async with visiting(stored, web=web) as visitor, visiting(stored, web=web) as copy:
        answer = await visitor.enter(next="/jobs?q=state:dead")
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?q=state:dead")
        assert await visitor.who() == "ann operator"
        copy.client.cookies.update(visitor.client.cookies)
        assert await copy.is_in()
        left = await visitor.client.post("/sign-out")
        assert (left.status_code, left.headers["location"]) == (303, "/sign-in")
        assert not await visitor.is_in()
        assert not await copy.is_in()
        assert "You are signed out." in (await visitor.client.get("/sign-in")).text
        assert "You are signed out." not in (await visitor.client.get("/sign-in")).text
    assert await stored.sessions.alist() == ()


async def test_a_revoked_session_is_over_at_once(stored: Fairlane) -> None:
    """S80: also when the user is disabled, removed, or gets another password."""
    web = asgi(stored)

    async def end() -> None:
        (session,) = await stored.sessions.alist()
        await stored.sessions.aend(session.id)

    async def disable() -> None:
        await stored.users.aset("ann", disabled=True)

    async def enable_with_another_password() -> None:
        await stored.users.aset("ann", disabled=False, password="another one entirely")

    async with visiting(stored, web=web) as visitor:
        for act, password in (
            (end, PASSWORD),
            (disable, PASSWORD),
            (enable_with_another_password, None),
        ):
            if password is not None:
                assert (await visitor.enter(password=password)).status_code == 303
                assert await visitor.is_in()
            await act()
            assert not await visitor.is_in()
        assert (await visitor.enter(password="another one entirely")).status_code == 303
        assert await visitor.is_in()
        await stored.users.aremove("ann")
        assert not await visitor.is_in()


async def test_a_session_ends_with_the_working_day(world: World, app: Fairlane) -> None:
    """S80: by the store's clock, however long the browser keeps its cookie."""
    async with visiting(app) as visitor:
        await visitor.enter()
        world.clock.advance(SESSION_LIFETIME / SECOND - 1)
        assert await visitor.is_in()
        world.clock.advance(1)
        assert not await visitor.is_in()


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", "guess-6"), ("bob", PASSWORD), ("off", PASSWORD), ("", ""), ("\0 <b>", "guess-7")],
)
async def test_nothing_says_whether_it_was_the_name_or_the_password(
    app: Fairlane, name: str, password: str
) -> None:
    """S81: the same page, but for the name that was typed; the work is compared beside the application."""
    await app.users.aadd("off", password=PASSWORD, role="admin")
    await app.users.aset("off", disabled=True)
    async with visiting(app) as visitor:
        usual = await visitor.enter("eve", "wrong")
        answer = await visitor.enter(name, password)
        assert answer.status_code == usual.status_code == 403
        assert cookies_of(answer) == []
        assert Markup(answer.text).text.replace(name, "") == Markup(usual.text).text.replace("eve", "")
        assert "Name and password do not fit." in answer.text
        assert "<b>" not in answer.text
        assert not password or password not in answer.text
        assert Markup(answer.text).wrong == []
        assert not await visitor.is_in()


async def test_attempts_are_limited_and_the_page_says_how_long(stored: Fairlane) -> None:
    """S81: the right password is not looked at either; another address may sign in."""
    async with visiting(stored) as visitor:
        for _ in range(FOR_NAME_AND_PEER):
            assert (await visitor.enter(password="wrong")).status_code == 403
        answer = await visitor.enter()
        assert (answer.status_code, cookies_of(answer)) == (429, [])
        assert 0 < int(answer.headers["retry-after"]) <= 300
        assert "too many attempts to sign in have failed; try again in" in answer.text
    async with visiting(stored, peer="192.0.2.2") as other:
        assert (await other.enter()).status_code == 303


async def test_one_address_posts_so_often_and_no_more(world: World) -> None:
    """S91: each form costs a question to the store, also with links that are none."""
    app = world.app(config={"web": {"rate": {"limit": 1, "per": "hour", "burst": 2}}})
    async with visiting(app) as visitor:
        assert [(await visitor.use("fl_x")).status_code for _ in range(3)] == [403, 403, 429]


@pytest.mark.parametrize(
    ("origin", "prefix", "cookie"),
    [
        ("http://localhost", "", "fairlane_session=fl_"),
        ("http://localhost:8080", "", "fairlane_session_8080=fl_"),
        ("https://localhost", "", "__host-fairlane_session=fl_"),
    ],
)
async def test_the_cookie_is_for_this_site_alone(
    app: Fairlane, origin: str, prefix: str, cookie: str
) -> None:
    """S91: no script reads it, no other site sends it, and over https no other host sets it."""
    async with visiting(app, origin=origin) as visitor:
        (found,) = cookies_of(await visitor.enter())
        attributes = {part.strip() for part in found.split(";")[1:]}
        assert found.startswith(cookie)
        wanted = {"httponly", "samesite=strict", "path=/", f"max-age={SESSION_LIFETIME // SECOND}"}
        assert attributes == wanted | ({"secure"} if origin.startswith("https") else set())
        assert await visitor.is_in()
        (gone, _) = sorted(cookies_of(await visitor.client.post("/sign-out")), key=lambda one: "flash" in one)
        assert "session" in gone
        assert "max-age=0" in gone
        assert ("secure" in gone) == origin.startswith("https")


async def test_a_cookie_that_came_over_http_is_worth_nothing_over_https(app: Fairlane) -> None:
    """S91: somebody on the way could have set it."""
    web = asgi(app)
    async with visiting(app, web=web) as plain, visiting(app, web=web, origin="https://localhost") as secure:
        await plain.enter()
        (secret,) = plain.client.cookies.values()
        secure.client.cookies.set("fairlane_session", secret)
        assert not await secure.is_in()
        secure.client.cookies.set("__Host-fairlane_session", secret)
        assert await secure.is_in()


@pytest.mark.parametrize(
    ("wanted", "led"),
    [
        ("/jobs?q=a", "/jobs?q=a"),
        ("", "/"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nset-cookie: x=y", "/"),
    ],
)
async def test_signing_in_leads_back_within_this_application(app: Fairlane, wanted: str, led: str) -> None:
    """S91: and nowhere else, from the form, the page, and for who is signed in already."""
    async with visiting(app) as visitor:
        page = await visitor.client.get("/sign-in", params={"next": wanted})
        ((action, fields),) = Markup(page.text).forms
        assert (action, fields["next"]) == ("/sign-in", led)
        assert Markup(page.text).wrong == []
        answer = await visitor.enter(next=wanted)
        assert answer.headers["location"] == led
        again = await visitor.client.get("/sign-in", params={"next": wanted})
        assert (again.status_code, again.headers["location"]) == (303, led)


async def test_signing_in_again_ends_the_session_before(app: Fairlane) -> None:
    """S91: else it would be left over, with nobody to end it."""
    async with visiting(app) as visitor:
        await visitor.enter()
        await visitor.enter()
        assert await visitor.is_in()
    assert len(await app.sessions.alist()) == 1


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
async def test_no_other_site_signs_anybody_in_or_out(app: Fairlane, path: str) -> None:
    """S91: a page of another site sends a form, with or without saying so."""
    async with visiting(app) as visitor:
        await visitor.enter()
        form = {"name": "ann", "password": PASSWORD}
        for headers in (
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "", "origin": "https://evil.example"},
        ):
            answer = await visitor.client.post(path, data=form, headers=headers)
            assert (answer.status_code, cookies_of(answer)) == (403, [])
        assert await visitor.is_in()


async def test_a_link_on_another_site_leads_to_the_page_with_the_cookie(app: Fairlane) -> None:
    """S91: the browser leaves our cookie out then; a page in between goes on from here, and brings it."""
    async with visiting(app) as visitor:
        answer = await visitor.client.get("/jobs?q=a&b=%22", headers={"sec-fetch-site": "cross-site"})
        assert answer.status_code == 200
        place = "/sign-in?next=/jobs%3Fq%3Da%26b%3D%2522"
        assert f'content="0; url={place}"' in answer.text
        assert f'href="{place}"' in answer.text
        assert Markup(answer.text).wrong == []
        await visitor.enter()
        led = await visitor.client.get(place)
        assert (led.status_code, led.headers["location"]) == (303, "/jobs?q=a&b=%22")


async def test_the_page_warns_where_others_can_read_what_is_typed(world: World) -> None:
    """S91: over http, unless it is this machine."""
    app = world.app(config={"web": {"allowed_hosts": ["jobs.example.org"]}})
    for origin, is_open in (
        ("http://jobs.example.org", True),
        ("https://jobs.example.org", False),
        ("http://127.0.0.1", False),
    ):
        async with visiting(app, origin=origin) as visitor:
            assert ("not encrypted" in (await visitor.client.get("/sign-in")).text) == is_open


async def test_without_the_store_the_page_is_there_and_says_what_is_wrong(
    world: World, app: Fairlane
) -> None:
    """And nobody is let in."""
    async with visiting(app) as visitor:
        await visitor.enter()
        world.fail_before = [StoreUnavailable("gone"), StoreUnavailable("gone"), StoreUnavailable("gone")]
        assert (await visitor.client.get("/sign-in")).status_code == 200
        assert (await visitor.client.get(PAGE)).status_code == 503
        assert (await visitor.enter()).status_code == 503


async def test_only_who_has_a_session_can_sign_out(app: Fairlane) -> None:
    """A caller whom a proxy or an application of one's own knows has no session here."""
    async with visiting(app) as visitor:
        await visitor.enter()
        assert 'action="/sign-out"' in (await visitor.client.get(PAGE)).text
    token = (await app.tokens.acreate("ci", role="viewer")).secret
    async with web_of(app, None) as web:
        assert 'action="/sign-out"' not in (await web.get(PAGE)).text
    async with visiting(app) as visitor:
        page = await visitor.client.get(PAGE, headers={"authorization": f"Bearer {token}"})
        assert (page.status_code, 'action="/sign-out"' in page.text) == (200, False)
