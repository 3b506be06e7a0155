"""The settings: what each caller sees of them, and users, tokens and sessions changed by their forms."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from fairlane import Fairlane, Lane, Queue
from fairlane.app.access.sign_in import SignIn
from fairlane.model.access import Role
from fairlane.web.pages.settings import SETTINGS
from tests.app.access.conftest import cheap_passwords
from tests.app.world import World
from tests.web.access.visitor import PASSWORD, Visitor, on_store, signed_in, visiting
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup

__all__ = ["cheap_passwords"]

ACCESS = "/settings/access"
STORES = ("postgres", "redis", "sqlite")


@pytest.fixture(params=STORES)
async def admin(request: pytest.FixtureRequest) -> AsyncIterator[Visitor]:
    """Somebody who has signed in as ann, an administrator."""
    async with on_store(request.param) as (app, _):
        await app.users.aset("ann", role="admin")
        async with visiting(app) as visitor:
            assert (await visitor.enter()).status_code == 303
            yield visitor


async def sent(visitor: Visitor, name: str, /, **fields: str) -> str:
    """Send a form of the page, and return what the next page says."""
    answer = await visitor.client.post(f"/do/{name}", data={**fields, "next": ACCESS})
    assert (answer.status_code, answer.headers["location"]) == (303, ACCESS), answer.text
    page = await visitor.client.get(ACCESS)
    assert Markup(page.text).wrong == []
    return page.text


async def test_users_are_added_changed_and_removed(admin: Visitor) -> None:
    """On every store; what is left blank stays as it is."""
    page = await sent(admin, "users.add", name="bob", password=PASSWORD, role="viewer", tenant="acme")
    assert "The user is added." in page
    assert "tenant acme" in page
    assert PASSWORD not in page
    bob = await signed_in(admin.app, "bob")
    await sent(admin, "users.set", user="bob", role="operator", password="")
    found = await admin.app.users.aget("bob")
    assert (found.role, found.tenant) == (Role.OPERATOR, "acme")
    assert await SignIn(admin.app).with_session(bob.secret) is not None
    assert "disabled" in await sent(admin, "users.set", user="bob", disabled="true")
    assert await SignIn(admin.app).with_session(bob.secret) is None
    await sent(admin, "users.set", user="bob", disabled="false")
    assert "User bob is gone." in await sent(admin, "users.remove", user="bob", note="left")
    assert [one.name for one in await admin.app.users.alist()] == ["ann"]


async def test_a_token_is_shown_once(admin: Visitor) -> None:
    """The page with its secret is kept by no cache, and loading it again makes no other one."""
    form = {"name": "deploy", "role": "operator", "tenant": "acme", "for": "90d", "note": "ci"}
    made = await admin.client.post("/settings/tokens", data=form)
    (secret,) = set(re.findall(r"fl_[\w-]{40,}", made.text))
    assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
    assert Markup(made.text).wrong == []
    found = await SignIn(admin.app).with_token(secret)
    assert found is not None
    assert (found.role, found.tenant) == (Role.OPERATOR, "acme")
    (token,) = await admin.app.tokens.alist()
    page = (await admin.client.get(ACCESS)).text
    assert token.id in page
    assert secret not in page
    assert (await admin.client.get("/settings/tokens")).status_code == 405
    assert f"Token {token.id} is revoked." in await sent(admin, "tokens.revoke", token=token.id, note="x")
    assert await SignIn(admin.app).with_token(secret) is None
    (entry, *_) = [one for one in (await admin.app.audit.afind()).items if one.kind == "tokens.create"]
    assert (entry.actor, entry.note, secret in str(entry)) == ("ann", "ci", False)


async def test_a_session_is_ended_and_ones_own_is_marked(admin: Visitor) -> None:
    """Ending one's own leads to the sign-in page."""
    other = await signed_in(admin.app)
    page = (await admin.client.get(ACCESS)).text
    assert page.count("this one") == 1
    assert other.principal.session is not None
    await sent(admin, "sessions.end", session=other.principal.session, note="x")
    assert await SignIn(admin.app).with_session(other.secret) is None
    (own,) = await admin.app.sessions.alist()
    ended = await admin.client.post("/do/sessions.end", data={"session": own.id, "note": "x", "next": ACCESS})
    assert ended.status_code == 303
    assert (await admin.client.get(ACCESS)).headers["location"] == f"/sign-in?next={ACCESS}"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"name": "ci", "role": "boss"}, 422),
        ({"name": "ci", "role": "viewer", "for": "soon"}, 422),
        ({"role": "viewer"}, 422),
        ({"name": "ci", "role": "viewer", "secret": "fl_mine"}, 422),
    ],
)
async def test_a_token_that_cannot_be_made_is_explained(
    app: Fairlane, form: dict[str, str], status: int
) -> None:
    """And none is made."""
    async with web_of(app, ann()) as web:
        assert (await web.post("/settings/tokens", data=form)).status_code == status
    assert await app.tokens.alist() == ()


@pytest.mark.parametrize(("role", "tenant", "status"), [
    (Role.MANAGER, None, 403), (Role.ADMIN, "acme", 404), (Role.VIEWER, None, 403),
])  # fmt: skip
async def test_who_may_not_change_access_does_not_see_it(
    app: Fairlane, role: Role, tenant: str | None, status: int
) -> None:
    """Not the lists, not the configuration, not a new token; its own settings are everybody's."""
    async with web_of(app, ann(role, tenant)) as web:
        for method, path in (
            ("GET", ACCESS),
            ("GET", "/settings/configuration"),
            ("POST", "/settings/tokens"),
        ):
            assert (
                await web.request(method, path, data={"name": "ci", "role": "viewer"})
            ).status_code == status
        page = await web.get("/settings")
        assert page.status_code == 200
        assert ACCESS not in page.text
        assert ('id="health"' in page.text) == (tenant is None)
    assert await app.tokens.alist() == ()


async def test_another_site_makes_no_token(app: Fairlane) -> None:
    """The page is a form's target as every other is."""
    async with web_of(app, ann(), browser=False) as web:
        for headers in ({}, {"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
            form = {"name": "ci", "role": "admin"}
            assert (await web.post("/settings/tokens", data=form, headers=headers)).status_code == 403
    assert await app.tokens.alist() == ()


async def test_the_store_is_shown_without_its_password() -> None:
    """Nor is any other secret, in the configuration neither."""
    app = Fairlane(
        "postgresql://ops:hunter2@127.0.0.1:1/shop",
        name="shop",
        queues=[Queue("mail")],
        lanes=[Lane("fast", slots=2, queues=["mail"])],
        config={"web": {"secret": "s" * 20, "replica_url": "postgresql://ops:hunter3@127.0.0.1:1/shop"}},
    )
    async with web_of(app, ann(), pages=[SETTINGS]) as web:  # nothing of it asks the store
        page = (await web.get("/settings/configuration")).text
        assert "postgresql://ops:***@127.0.0.1:1/shop" in page
        assert not re.search(r"hunter|sssss", page)
        assert "lanes.fast.slots" in page


async def test_the_general_page_shows_store_queues_lanes_and_health(world: World) -> None:
    """As acceptance asks: queues, lanes, store connection."""
    app = world.app(queues=[Queue("mail")], config={"web": {"replica_url": "postgresql://a:hunter2@b/c"}})
    async with web_of(app, ann(), groups=()) as web:
        web._transport.app.state.site.reader = app  # type: ignore[attr-defined]
        page = (await web.get("/settings")).text
    assert "oracle://here" in page
    assert "postgresql://a:***@b/c" in page
    assert "no worker is live" in page
    assert "hunter2" not in page


async def test_personal_choices_are_kept_from_this_page(app: Fairlane) -> None:
    """And lead back to it, below any prefix."""
    async with web_of(app, ann()) as web:
        forms = [
            fields
            for action, fields in Markup((await web.get("/settings")).text).forms
            if action == "/personal"
        ]
        assert {fields["next"] for fields in forms} == {"/settings"}
        answer = await web.post("/personal", data={"theme": "dark", "range": "7d", "next": "/settings"})
        assert answer.headers["location"] == "/settings"
        assert 'data-theme="dark"' in (await web.get("/settings")).text
