"""Tokens, basic authentication, a proxy's word, and an `authenticate` of one's own (S80, S81, S91)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from starlette.requests import Request

from fairlane import Fairlane
from fairlane.app.access import passwords
from fairlane.app.access.attempts import FOR_NAME_AND_PEER
from fairlane.model.access import Principal, Role
from fairlane.web import StoredCallers
from fairlane.web.application import asgi
from tests.app.world import World
from tests.stores import STORES
from tests.web.access.visitor import PAGE, PASSWORD, on_store, signed_in, visiting
from tests.web.callers import ann

PROXY = "10.0.0.7"
HEADER = "x-forwarded-user"
PROXIED: Any = {"trusted_proxies": [PROXY], "user_header": "X-Forwarded-User"}


def basic(name: str = "ann", password: str = PASSWORD) -> dict[str, str]:
    """Return the header of basic authentication."""
    return {"authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


def bearer(secret: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"authorization": f"Bearer {secret}"}


async def with_ann(world: World, **web: Any) -> Fairlane:
    """Return an application in memory with these settings of the web, and one user: ann, an operator."""
    app = world.app(config={"web": web})
    await app.users.aadd("ann", password=PASSWORD, role="operator")
    return app


# ── tokens ────────────────────────────────────────────────────────────────────


async def test_a_token_is_known_until_it_is_revoked(stored: Fairlane) -> None:
    """S80: at once, on every store; another text is nobody's."""
    made = await stored.tokens.acreate("ci", role="viewer", tenant="acme")
    async with visiting(stored) as visitor:
        assert await visitor.who(**bearer(made.secret)) == "token ci viewer"
        jobs = await visitor.client.get("/api/v1/jobs", headers=bearer(made.secret))
        assert jobs.status_code == 200
        for wrong in (made.secret + "x", made.secret[:-1], made.token.id, "fl_", "", made.secret.upper()):
            answer = await visitor.client.get("/api/v1/jobs", headers=bearer(wrong))
            assert answer.status_code == 401, wrong
        await stored.tokens.arevoke(made.token.id)
        assert not await visitor.is_in(**bearer(made.secret))


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_a_token_expires(store: str) -> None:
    """S80: by the store's clock."""
    async with on_store(store) as (app, clock):
        made = await app.tokens.acreate("ci", role="viewer", valid_for=60)
        async with visiting(app) as visitor:
            assert await visitor.is_in(**bearer(made.secret))
            clock.advance(60)
            assert not await visitor.is_in(**bearer(made.secret))


async def test_a_token_decides_whatever_cookie_is_beside_it(app: Fairlane) -> None:
    """S91: with a revoked token nobody asks; a session's secret is no token, and no token is a cookie."""
    made = await app.tokens.acreate("ci", role="viewer")
    session = (await signed_in(app)).secret
    async with visiting(app) as visitor:
        await visitor.enter()
        assert await visitor.who(**bearer(made.secret)) == "token ci viewer"
        await app.tokens.arevoke(made.token.id)
        assert not await visitor.is_in(**bearer(made.secret))
        assert not await visitor.is_in(**bearer(session))
    other = (await app.tokens.acreate("ci", role="viewer")).secret
    async with visiting(app) as visitor:
        visitor.client.cookies.set("fairlane_session", other)
        assert not await visitor.is_in()


# ── name and password each time ───────────────────────────────────────────────


async def test_basic_authentication_is_off_until_it_is_set(world: World) -> None:
    """S91: and then the challenge says so."""
    async with visiting(await with_ann(world)) as visitor:
        assert not await visitor.is_in(**basic())
        answer = await visitor.client.get("/api/v1/jobs", headers=basic())
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_basic_authentication_takes_a_users_name_and_password(store: str) -> None:
    """S81: on every store; wrong ones count as attempts, a right one that is known does not cost a hash."""
    async with on_store(store, config={"web": {"basic_auth": True}}) as (app, _), visiting(app) as visitor:
        assert await visitor.who(**basic()) == "ann operator"
        assert (await visitor.client.get("/api/v1/jobs", headers=basic())).status_code == 200
        for name, password in (("ann", "wrong"), ("bob", PASSWORD), ("", "")):
            answer = await visitor.client.get("/api/v1/jobs", headers=basic(name, password))
            assert answer.status_code == 401
            assert "Basic" in answer.headers["www-authenticate"]
        await app.users.aset("ann", disabled=True)
        assert not await visitor.is_in(**basic())


async def test_basic_authentication_is_limited_as_signing_in_is(world: World) -> None:
    """S81: by name and address."""
    app = await with_ann(world, basic_auth=True)
    async with visiting(app) as visitor:
        for _ in range(FOR_NAME_AND_PEER):
            assert not await visitor.is_in(**basic(password="wrong"))
        answer = await visitor.client.get("/api/v1/jobs", headers=basic())
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_attempts")
    async with visiting(app, peer="192.0.2.2") as other:
        assert await other.is_in(**basic())


@pytest.mark.parametrize("value", ["Basic", "Basic ", "Basic !!", "Basic YW5u", "Basic /w==", "Digest x"])
async def test_what_cannot_be_read_is_nobodys(world: World, value: str) -> None:
    """S91: and costs no hash."""
    async with visiting(await with_ann(world, basic_auth=True)) as visitor:
        assert not await visitor.is_in(authorization=value)


async def test_an_unknown_name_costs_basic_authentication_the_same_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S81: one hash each, so that no clock tells which users there are."""
    app = await with_ann(world, basic_auth=True)
    hashed: list[str | None] = []
    real = passwords._verify

    def counted(password_hash: str | None, password: bytes) -> bool:
        hashed.append(password_hash)
        return real(password_hash, password)

    monkeypatch.setattr(passwords, "_verify", counted)
    async with visiting(app) as visitor:
        for name in ("ann", "nobody"):
            assert not await visitor.is_in(**basic(name, "wrong"))
            assert (await visitor.enter(name, "wrong")).status_code == 403
    assert len(hashed) == 4
    assert [one is None for one in hashed] == [False, False, True, True]


# ── a proxy's word ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("store", sorted(set(STORES) - {"oracle"}))
async def test_a_named_proxy_names_the_user(store: str) -> None:
    """S91: with the role and the tenant that the store has of it."""
    async with on_store(store, config={"web": PROXIED}) as (app, _), visiting(app, peer=PROXY) as visitor:
        assert await visitor.who(**{HEADER: "ann"}) == "ann operator"
        assert not await visitor.is_in(**{HEADER: "bob"})
        assert not await visitor.is_in()
        await app.users.aset("ann", disabled=True)
        assert not await visitor.is_in(**{HEADER: "ann"})


@pytest.mark.parametrize("peer", ["10.0.0.8", "127.0.0.1", "192.0.2.1", "::1"])
async def test_nobody_else_names_the_user(world: World, peer: str) -> None:
    """S91: not from another address, and not by saying that it came through the proxy."""
    app = await with_ann(world, **PROXIED)
    async with visiting(app, peer=peer) as visitor:
        for more in ({}, {"x-forwarded-for": PROXY}, {"forwarded": f"for={PROXY}"}, {"x-real-ip": PROXY}):
            assert not await visitor.is_in(**{HEADER: "ann"}, **more)


async def test_without_the_setting_no_header_names_anybody(world: World) -> None:
    """S91: a trusted proxy alone says where a request comes from, not who makes it."""
    app = await with_ann(world, trusted_proxies=[PROXY])
    async with visiting(app, peer=PROXY) as visitor:
        assert not await visitor.is_in(**{HEADER: "ann"})


async def test_two_names_are_none(world: World) -> None:
    """S91: one of them is the client's own, whatever cookie is beside it."""
    app = await with_ann(world, **PROXIED)
    async with visiting(app, peer=PROXY) as visitor:
        await visitor.enter()
        answer = await visitor.client.get(PAGE, headers=[(HEADER, "ann"), (HEADER, "ann")])
        assert answer.status_code == 303


async def test_who_is_not_in_the_store_may_have_a_role(world: World) -> None:
    """S91: the one that is set; a name that none can have is nobody's, and a disabled user stays out."""
    app = await with_ann(world, **PROXIED, user_header_role="viewer")
    async with visiting(app, peer=PROXY) as visitor:
        assert await visitor.who(**{HEADER: "bob@example.org"}) == "bob@example.org viewer"
        assert await visitor.who(**{HEADER: "ann"}) == "ann operator"
        for name in ("a b", "x" * 300, "token ci"):
            assert not await visitor.is_in(**{HEADER: name})
        await app.users.aset("ann", disabled=True)
        assert not await visitor.is_in(**{HEADER: "ann"})


async def test_behind_a_proxy_a_change_needs_an_origin_but_with_a_token_none(world: World) -> None:
    """S91: the proxy adds the user to whatever a browser sends; no page of another site adds a token."""
    app = await with_ann(world, **PROXIED)
    token = (await app.tokens.acreate("ci", role="admin")).secret
    path, body = "/api/v1/queues/default/pause", {"note": "x"}
    async with visiting(app, peer=PROXY) as visitor:
        del visitor.client.headers["sec-fetch-site"]
        answer = await visitor.client.post(path, json=body, headers={HEADER: "ann"})
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_missing")
        answer = await visitor.client.post(path, json=body, headers=bearer("eyJ.of.another"))
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_missing")
        assert (await visitor.client.post(path, json=body, headers=bearer(token))).status_code == 200


# ── one's own ─────────────────────────────────────────────────────────────────


async def test_an_authenticate_of_ones_own_decides_alone(app: Fairlane) -> None:
    """S91: what the store knows is asked only if it asks."""
    token = (await app.tokens.acreate("ci", role="viewer")).secret

    async def mine(request: Request) -> Principal | None:
        return ann(Role.MANAGER) if request.headers.get("x-mine") == "yes" else None

    known = StoredCallers(app)

    async def mine_or_known(request: Request) -> Principal | None:
        return await mine(request) or await known(request)

    for own, is_known in ((mine, False), (mine_or_known, True)):
        async with visiting(app, web=asgi(app, authenticate=own)) as visitor:
            assert await visitor.who(**{"x-mine": "yes"}) == "ann manager"
            assert await visitor.is_in(**bearer(token)) == is_known
            assert not await visitor.is_in()
