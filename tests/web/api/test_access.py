"""Users, tokens and sessions over HTTP (S79, S80)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.app.access.sign_in import SignIn
from fairlane.model.access import Principal, Role
from fairlane.model.access_errors import TooManyAttempts
from fairlane.web.problem import problem_of
from tests.web.api.callers import Callers
from tests.web.callers import web_of

PASSWORD = "correct horse battery"
BOB = {"name": "bob", "password": PASSWORD, "role": "viewer", "tenant": "acme"}


async def add(callers: Callers, **values: Any) -> Any:
    """Add a user."""
    return await callers.post("/users", {**BOB, **values}, status=201)


async def change(callers: Callers, name: str, status: int = 200, **values: Any) -> Any:
    """Change a user."""
    response = await callers.ask("PATCH", f"/users/{name}", json=values)
    assert response.status_code == status, response.text
    return response.json()


async def test_a_user_is_added_changed_and_removed(callers: Callers) -> None:
    """S79: audited with who did it over HTTP and why; no answer has a password or a hash."""
    made = await add(callers, note="on call")
    assert (made["name"], made["role"], made["tenant"], made["disabled"]) == ("bob", "viewer", "acme", False)
    assert made.keys() == {
        *("name", "role", "tenant", "grants", "disabled", "created_at", "created_by", "seen_at"),
    }
    changed = await change(callers, "bob", role="operator", all_tenants=True, grants=["queues.set"])
    assert (changed["role"], changed["tenant"], changed["grants"]) == ("operator", None, ["queues.set"])
    assert (await change(callers, "bob", disabled=True, no_grants=True))["grants"] == []
    assert (await callers.get("/users"))["items"] == [await callers.get("/users/bob")]
    gone = await callers.ask("DELETE", "/users/bob", json={"note": "left"})
    assert (gone.status_code, gone.json()["name"]) == (200, "bob")
    assert (await callers.get("/users"))["items"] == []
    entries = (await callers.get("/audit"))["items"]
    assert [(one["kind"], one["note"]) for one in entries] == [
        ("users.remove", "left"),
        ("users.set", ""),
        ("users.set", ""),
        ("users.add", "on call"),
    ]
    assert {(one["actor"], one["origin"]) for one in entries} == {("ann", "api")}
    assert PASSWORD not in str(entries)
    assert "argon2" not in str(entries)


async def test_bad_values_name_the_field_and_nothing_is_stored(callers: Callers) -> None:
    """S79: one clear error; the password is in none."""
    for values, field in (
        ({"name": "bob smith"}, "name"),
        ({"password": "short-word"}, "password"),
        ({"role": "boss"}, "role"),
        ({"tenant": "a b"}, "tenant"),
        ({"grants": ["queues.paus"]}, "grants"),
        ({"admin": True}, "admin"),
    ):
        problem = await callers.post("/users", {**BOB, **values}, status=422)
        assert [one["field"] for one in problem["problems"]] == [field]
        assert "short-word" not in str(problem)
    assert "queues.pause" in str(await callers.post("/users", {**BOB, "grants": ["queues.paus"]}, status=422))
    assert (await callers.get("/users"))["items"] == []
    await add(callers)
    assert (await callers.post("/users", BOB, status=409))["code"] == "user_exists"
    assert (await change(callers, "bob", 422, tenant="acme", all_tenants=True))["field"] == "tenant"
    assert (await change(callers, "bob", 422, grants=[], no_grants=True))["field"] == "grants"
    assert (await change(callers, "eve", 404, role="viewer"))["code"] == "not_found"
    for path in ("/tokens/0123/revoke", "/sessions/0123/end"):
        assert (await callers.post(path, {}, status=404))["code"] == "not_found"
    assert (await callers.post("/tokens", {"name": "ci", "role": "viewer", "for": "soon"}, status=422))[
        "field"
    ] == "for"


async def test_a_granted_action_is_no_way_up(app: Fairlane) -> None:
    """S79: nobody gives away a role or an action that they do not have, nor touches those above them."""
    await app.users.aadd("root", password=PASSWORD, role="admin")
    token = await app.tokens.acreate("deploy", role="admin")
    names = ("users.add", "users.set", "users.remove", "tokens.create", "tokens.revoke")
    helper = Principal(name="helper", role=Role.OPERATOR, grants=frozenset(names))
    refused: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("POST", "/users", {**BOB, "role": "admin"}),
        ("POST", "/users", {**BOB, "grants": ["queues.set"]}),
        ("PATCH", "/users/root", {"password": "another one entirely"}),
        ("PATCH", "/users/bob", {"role": "manager"}),
        ("PATCH", "/users/bob", {"grants": ["tenants.forget"]}),
        ("DELETE", "/users/root", {}),
        ("POST", "/tokens", {"name": "ci", "role": "manager"}),
        ("POST", f"/tokens/{token.token.id}/revoke", {}),
    )
    async with web_of(app, helper) as client:
        assert (await client.post("/api/v1/users", json=BOB)).status_code == 201
        for method, path, body in refused:
            response = await client.request(method, f"/api/v1{path}", json=body)
            assert (response.status_code, response.json()["code"]) == (403, "forbidden"), path
        allowed = {"role": "operator", "grants": ["users.add"]}
        assert (await client.patch("/api/v1/users/bob", json=allowed)).status_code == 200
    assert [user.role for user in await app.users.alist()] == [Role.OPERATOR, Role.ADMIN]
    assert len(await app.tokens.alist()) == 1


async def test_a_token_is_in_one_answer_and_revoked(callers: Callers, app: Fairlane) -> None:
    """S80: with its secret, and with when it expires."""
    body = {"name": "ci", "role": "viewer", "tenant": "acme", "for": "90d"}
    made = await callers.post("/tokens", body, status=201)
    found = await SignIn(app).with_token(made["secret"])
    assert found is not None
    assert (found.role, found.tenant) == (Role.VIEWER, "acme")
    (token,) = (await callers.get("/tokens"))["items"]
    assert made["token"] == {**token, "seen_at": None}
    assert token["expires_at"] is not None
    assert made["secret"] not in str([token, await callers.get("/audit")])
    assert (await callers.post(f"/tokens/{token['id']}/revoke", {"note": "rotated"}))["id"] == token["id"]
    assert await SignIn(app).with_token(made["secret"]) is None
    assert (await callers.get("/tokens"))["items"] == []


async def test_a_session_is_listed_and_ended(callers: Callers, app: Fairlane) -> None:
    """S80: at once; its user must sign in again."""
    await add(callers)
    found = await SignIn(app).with_password("bob", PASSWORD, peer="192.0.2.1")
    assert found is not None
    (session,) = (await callers.get("/sessions"))["items"]
    assert (session["user"], session["tenant"], session["peer"]) == ("bob", "acme", "192.0.2.1")
    assert found.secret not in str(session)
    assert (await callers.post(f"/sessions/{session['id']}/end", {"note": "x"}))["user"] == "bob"
    assert await SignIn(app).with_session(found.secret) is None
    assert (await callers.get("/sessions"))["items"] == []


@pytest.mark.parametrize("path", ["/users", "/users/bob", "/tokens", "/sessions"])
async def test_access_is_not_there_for_callers_of_one_tenant(callers: Callers, path: str) -> None:
    """S79: not even for its administrators, and not their own."""
    await add(callers)
    response = await callers.ask("GET", path, tenant="acme")
    assert response.status_code == 404


def test_too_many_attempts_say_how_long_to_wait() -> None:
    """S81: in the header, too."""
    reply, headers = problem_of(TooManyAttempts(271), "1")
    assert (reply.status, reply.code, headers) == (429, "too_many_attempts", {"retry-after": "271"})
