"""Every request: who it is from, where it leads, how it is answered when something is wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from httpx2 import AsyncClient, Response

from fairlane import Fairlane
from fairlane.model.access import Principal, Role
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup
from fairlane.web.http.security import CSP
from tests.web.boxes import boxes, pages
from tests.web.callers import SAME_ORIGIN, ann, web_of

BOXES: Any = {"groups": [boxes], "pages": [pages]}
JSON = "application/problem+json"


def fields(response: Response) -> dict[str, Any]:
    """Return an error's fields, without the texts for people."""
    found: dict[str, Any] = response.json()
    return {name: found[name] for name in ("status", "code", "field") if name in found}


async def test_an_endpoint_answers_in_json_as_its_caller(app: Fairlane) -> None:
    """Changes carry the caller's name, and that they came over the API."""
    async with web_of(app, ann(), **BOXES) as web:
        answer = await web.post("/api/v1/boxes/a/fill", json={"count": 2, "labels": ["x"]})
    assert answer.status_code == 200
    assert answer.json() == {
        "name": "a",
        "actor": "ann",
        "origin": "api",
        "content": {"count": 2, "labels": ["x"], "content": {}},
    }


async def test_every_answer_has_a_request_id_and_the_security_headers(app: Fairlane) -> None:
    """Also errors, and also those of paths that lead nowhere."""
    async with web_of(app, ann(), **BOXES) as web:
        for path in ("/api/v1/boxes", "/boxes", "/nowhere", "/api/v1/nowhere"):
            answer = await web.get(path)
            assert len(answer.headers["x-request-id"]) == 32
            assert answer.headers["content-security-policy"] == CSP
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status", "media"),
    [
        ("GET", "/api/v1/nowhere", 404, JSON),
        ("GET", "/api/v2/boxes", 404, JSON),
        ("GET", "/nowhere", 404, "text/html"),
        ("GET", "/boxes/", 404, "text/html"),
        ("PUT", "/api/v1/boxes", 405, JSON),
        ("POST", "/boxes", 405, "text/html"),
        ("POST", "/do/boxes.find", 404, "text/html"),
        ("POST", "/do/nothing", 404, "text/html"),
    ],
)
async def test_a_path_that_leads_nowhere_is_answered_in_the_callers_form(
    app: Fairlane, method: str, path: str, status: int, media: str
) -> None:
    """JSON for programs, a page for people."""
    async with web_of(app, ann(), **BOXES) as web:
        answer = await web.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith(media)
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("principal", "method", "path", "status", "code"),
    [
        (None, "GET", "/api/v1/boxes", 401, "signed_out"),
        (ann(Role.VIEWER), "POST", "/api/v1/boxes/a/fill", 403, "forbidden"),
        (ann(Role.OPERATOR), "DELETE", "/api/v1/boxes/a", 403, "forbidden"),
        (ann(Role.ADMIN, "acme"), "DELETE", "/api/v1/boxes/a", 404, "not_found"),
        (ann(Role.VIEWER, "acme"), "DELETE", "/api/v1/boxes/a", 404, "not_found"),
    ],
)
async def test_a_caller_is_held_to_its_role_and_its_tenant(
    app: Fairlane, principal: Principal | None, method: str, path: str, status: int, code: str
) -> None:
    """What concerns all tenants does not exist for a caller of one, whatever its role."""
    async with web_of(app, principal, **BOXES) as web:
        answer = await web.request(method, path, json={"count": 1} if method == "POST" else {})
    assert fields(answer) == {"status": status, "code": code}


async def test_a_caller_of_one_tenant_acts_inside_it(app: Fairlane) -> None:
    """The scope is the tenant's in every call that a handler makes."""
    async with web_of(app, ann(tenant="acme"), **BOXES) as web:
        assert (await web.get("/api/v1/boxes?limit=1")).json()[0]["name"] == "acme"
    async with web_of(app, ann(), **BOXES) as web:
        assert (await web.get("/api/v1/boxes?limit=1")).json()[0]["name"] == "all"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"{", 400, "body"),
        (b"[]", 400, "body"),
        (b"{}", 422, "count"),
        (b'{"count": "2"}', 422, "count"),
        (b'{"count": 10}', 422, "count"),
        (b'{"count": 2, "colour": "red"}', 422, "colour"),
    ],
)
async def test_bad_input_names_the_field(app: Fairlane, body: bytes, status: int, field: str) -> None:
    """Also what only the handler knows to be wrong."""
    async with web_of(app, ann(), **BOXES) as web:
        answer = await web.post("/api/v1/boxes/a/fill", content=body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert answer.json()["hint"]


async def test_what_nobody_expected_is_logged_and_not_told(
    app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer has the id under which the log has the cause."""
    async with web_of(app, ann(), **BOXES) as web:
        with caplog.at_level(logging.ERROR, "fairlane.web"):
            answer = await web.post("/api/v1/boxes/broken/fill", json={"count": 1})
    assert fields(answer) == {"status": 500, "code": "internal"}
    assert "engine" not in answer.text
    (record,) = caplog.records
    assert vars(record)["request_id"] == answer.json()["request_id"] == answer.headers["x-request-id"]


# ── forms ─────────────────────────────────────────────────────────────────────


async def submitted(web: AsyncClient, name: str = "a", headers: Any = None, **values: Any) -> Response:
    """Send the form of filling a box."""
    return await web.post("/do/boxes.fill", data={"name": name, **values}, headers=headers)


async def test_a_form_does_what_its_endpoint_does_and_leads_on(app: Fairlane) -> None:
    """The next page shows once what was done."""
    async with web_of(app, ann(), **BOXES) as web:
        answer = await submitted(
            web, count="2", labels=["x", "y"], content='{"a": 1}', until="", next="/boxes"
        )
        assert (answer.status_code, answer.headers["location"]) == (303, "/boxes")
        page = await web.get("/boxes")
        assert "Box a is filled." in page.text
        assert "Box a is filled." not in (await web.get("/boxes")).text


@pytest.mark.parametrize(
    "next_page", ["https://evil.example/", "//evil.example", "/\\evil.example", "boxes", ""]
)
async def test_a_form_leads_to_no_other_site(app: Fairlane, next_page: str) -> None:
    """Anything but a path of this application leads to its first page."""
    async with web_of(app, ann(), **BOXES) as web:
        answer = await submitted(web, count="2", next=next_page)
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"count": "many"}, "count: expected `int`, got `str`"),
        ({"count": "11"}, "count: is too large; send 9 at most"),
        ({"count": "1", "content": "{"}, "content: expected `object`, got `str`"),
        ({}, "count: is missing; send it"),
        ({"count": "1", "name": ""}, "name: is missing; send it"),
    ],
)
async def test_a_bad_form_says_what_is_wrong(app: Fairlane, values: dict[str, str], text: str) -> None:
    """Beside the form if htmx sent it, else on the page that comes next."""
    async with web_of(app, ann(), **BOXES) as web:
        line = await submitted(web, headers={"HX-Request": "true"}, **values)
        assert (line.status_code, line.headers["content-type"]) == (422, "text/html; charset=utf-8")
        assert line.text.startswith('<p class="error" role="alert">')
        assert text in line.text
        assert (await submitted(web, next="/boxes", **values)).status_code == 303
        assert text in (await web.get("/boxes")).text


async def test_htmx_is_told_where_to_go(app: Fairlane) -> None:
    """A redirect would be followed inside the request."""
    async with web_of(app, ann(), **BOXES) as web:
        answer = await submitted(web, headers={"HX-Request": "true"}, count="1", next="/boxes")
    assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/boxes")


async def test_a_form_needs_what_its_endpoint_needs(app: Fairlane) -> None:
    """The role, and a caller at all."""
    async with web_of(app, ann(Role.VIEWER), **BOXES) as web:
        assert (await submitted(web, count="1")).status_code == 403
    async with web_of(app, ann(tenant="acme"), **BOXES) as web:
        assert (await web.post("/do/boxes.remove", data={"name": "a"})).status_code == 404
    async with web_of(app, None, sign_in="/sign-in", **BOXES) as web:
        answer = await submitted(web, count="1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_nobody_else_can_put_a_message_on_a_page(app: Fairlane) -> None:
    """The cookie of a message is signed."""
    async with web_of(app, ann(), **BOXES) as web:
        web.cookies.set("fairlane_flash", "eyJraW5kIjoiZG9uZSIsInRleHQiOiJldmlsIn0.aaaa.bbbb")
        assert "evil" not in (await web.get("/boxes", headers=SAME_ORIGIN)).text


async def test_a_page_without_a_caller_leads_to_signing_in_and_back(app: Fairlane) -> None:
    """With its whole address."""
    for place, led in (
        ("/sign-in", "/sign-in?next=/boxes%3Flimit%3D3"),
        ("https://id.example/start?client=7", "https://id.example/start?client=7&next=/boxes%3Flimit%3D3"),
    ):
        async with web_of(app, None, sign_in=place, **BOXES) as web:
            answer = await web.get("/boxes?limit=3")
        assert (answer.status_code, answer.headers["location"]) == (303, led)


async def test_a_page_without_a_caller_and_without_a_place_to_sign_in_says_so(app: Fairlane) -> None:
    """Who gives an `authenticate` of their own signs people in elsewhere; there is no sign-in page then."""
    async with web_of(app, None, **BOXES) as web:
        answer = await web.get("/boxes")
        assert (answer.status_code, "Sign in first" in answer.text) == (401, True)
        assert (await web.get("/sign-in")).status_code == 404
        assert (await web.post("/sign-out")).status_code == 404


async def test_a_change_is_audited_with_the_id_of_its_request(app: Fairlane) -> None:
    """So that an entry, an answer and a line of the log are found by each other."""
    pausing = EndpointGroup("pausing", "Pausing.")

    @pausing.post("/pause/{name}", "queues.pause")
    async def pause(call: WebCall, name: str, body: Change) -> str:
        """Pause a queue."""
        await call.app.queues.apause(name, reason=body.note)
        return name

    async with web_of(app, ann(), groups=[pausing], pages=[]) as web:
        over_api = await web.post("/api/v1/pause/bulk", json={"note": "by api"})
        by_form = await web.post("/do/queues.pause", data={"name": "bulk", "note": "by form"})
        entries = {entry.note: entry for entry in (await app.audit.afind()).items}
    for answer, origin in ((over_api, "api"), (by_form, "web")):
        entry = entries["by form" if origin == "web" else "by api"]
        assert entry.details["request_id"] == answer.headers["x-request-id"]
        assert (entry.actor, entry.origin) == ("ann", origin)
