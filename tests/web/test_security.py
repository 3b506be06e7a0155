"""What comes from elsewhere is refused before anybody is asked who it is: on every route there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Headers
from starlette.applications import Starlette
from starlette.routing import Route

from fairlane import Fairlane
from fairlane.web.api import GROUPS
from fairlane.web.application import asgi
from fairlane.web.pages import PAGES
from tests.web.boxes import boxes, pages
from tests.web.callers import always, ann, web_of

EVERYTHING: Any = {"groups": [*GROUPS, boxes], "pages": [*PAGES, pages]}
SAFE = {"GET", "HEAD", "OPTIONS"}


def unsafe_routes(web: Starlette) -> Iterator[tuple[str, str]]:
    """Yield method and a path for each route that changes something."""
    for route in web.routes:
        assert isinstance(route, Route)
        for method in (route.methods or set()) - SAFE:
            yield method, re.sub(r"{\w+(:\w+)?}", "x", route.path)


ROUTES = sorted(unsafe_routes(asgi(Fairlane(), authenticate=always(None), **EVERYTHING)))


def test_there_are_routes() -> None:
    """What is generated must not be empty."""
    assert ("POST", "/do/boxes.fill") in ROUTES
    assert ("DELETE", "/api/v1/boxes/x") in ROUTES


ELSEWHERE = {
    "another site, says the browser": ({"sec-fetch-site": "cross-site"}, 403),
    "a neighbour of our site, says the browser": ({"sec-fetch-site": "same-site"}, 403),
    "another origin": ({"origin": "https://evil.example"}, 403),
    "another port": ({"origin": "http://localhost:8080"}, 403),
    "a page without an origin": ({"origin": "null"}, 403),
    "an origin that is none": ({"origin": "http://["}, 403),
    "nobody says from where": ({}, 403),
    "a foreign host": ({"host": "evil.example", "origin": "http://evil.example"}, 421),
    "no host": ({"host": "", "sec-fetch-site": "same-origin"}, 421),
}


@pytest.mark.parametrize("case", ELSEWHERE)
async def test_no_change_comes_from_elsewhere(app: Fairlane, case: str) -> None:
    """On every route, with a cookie as only a browser has it, and with a role that may do everything."""
    headers, status = ELSEWHERE[case]
    async with web_of(app, ann(), browser=False, **EVERYTHING) as web:
        web.cookies.set("fairlane_session", "x")
        answers = {
            (method, path): (await web.request(method, path, headers=Headers(headers))).status_code
            for method, path in ROUTES
        }
    assert {route: found for route, found in answers.items() if found != status} == {}


async def test_a_browser_on_our_own_page_changes_things(app: Fairlane) -> None:
    """The same request is taken that is refused without these headers."""
    async with web_of(app, ann(), browser=False, **EVERYTHING) as web:
        web.cookies.set("fairlane_session", "x")
        for headers in ({"sec-fetch-site": "same-origin"}, {"origin": "http://localhost"}):
            answer = await web.post("/api/v1/boxes/a/fill", json={"count": 1}, headers=headers)
            assert answer.status_code == 200


async def test_a_program_with_a_token_needs_no_origin_but_must_not_name_a_foreign_one(app: Fairlane) -> None:
    """No page of another site can add that header; one that says where it is from is believed."""
    async with web_of(app, ann(), browser=False, **EVERYTHING) as web:
        token = {"authorization": "Bearer fl_x"}
        answer = await web.post("/api/v1/boxes/a/fill", json={"count": 1}, headers=token)
        assert answer.status_code == 200
        foreign = {**token, "origin": "https://evil.example"}
        answer = await web.post("/api/v1/boxes/a/fill", json={"count": 1}, headers=foreign)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site")


async def test_basic_credentials_need_an_origin(app: Fairlane) -> None:
    """A browser adds them by itself, as it does cookies."""
    async with web_of(app, ann(), browser=False, **EVERYTHING) as web:
        basic = {"authorization": "Basic YTpi"}
        answer = await web.post("/api/v1/boxes/a/fill", json={"count": 1}, headers=basic)
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_missing")


async def test_a_page_of_a_foreign_host_is_refused_too(app: Fairlane) -> None:
    """Else a name that leads to this machine would read what the loopback is trusted with."""
    async with web_of(app, ann(), **EVERYTHING) as web:
        answer = await web.get("/boxes", headers={"host": "evil.example"})
        assert answer.status_code == 421
        assert "evil" not in answer.text


@pytest.mark.parametrize("is_declared", [True, False])
async def test_a_request_has_a_size(app: Fairlane, is_declared: bool) -> None:
    """Whether or not it says so before."""
    most = app.settings.web.max_body

    async def body() -> Any:
        for _ in range(most // 1_000_000 + 1):
            yield b" " * 1_000_000

    headers = {"content-length": str(most + 1)} if is_declared else {}
    async with web_of(app, ann(), **EVERYTHING) as web:
        answer = await web.post("/api/v1/boxes/a/fill", content=body(), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
