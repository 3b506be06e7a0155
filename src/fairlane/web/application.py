"""Make the ASGI application: a route for each endpoint, form and page, mounted anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from fairlane.app.fairlane import Fairlane
from fairlane.model.instants import SECOND
from fairlane.web.access.admission import known
from fairlane.web.access.callers import StoredCallers
from fairlane.web.access.sign_in_pages import sign_in_routes
from fairlane.web.api import GROUPS
from fairlane.web.call import WebCall
from fairlane.web.declare import Endpoint, EndpointGroup
from fairlane.web.forms.flash import COOKIE
from fairlane.web.forms.submit import after_error, after_form, form_of, submit
from fairlane.web.html.assets import serve_asset
from fairlane.web.html.rendering import show
from fairlane.web.http.error_response import error_response
from fairlane.web.http.probes import probe_of
from fairlane.web.http.request_id import request_id_of
from fairlane.web.http.security import RequestGuard
from fairlane.web.live import LiveRoute, live_of
from fairlane.web.locations import API, FORMS, PROBES
from fairlane.web.page import PageGroup, WebPage
from fairlane.web.pages import PAGES
from fairlane.web.personal import choose
from fairlane.web.problem import NOT_FOUND, HttpProblem
from fairlane.web.reading import read_json, read_path, read_query
from fairlane.web.site import Authenticate, Site


def asgi(
    app: Fairlane,
    *,
    authenticate: Authenticate | None = None,
    sign_in: str | None = None,
    groups: Sequence[EndpointGroup] = GROUPS,
    pages: Sequence[PageGroup] = PAGES,
) -> Starlette:
    """Return the web application of a Fairlane application.

    It serves itself, or is mounted under any prefix of another ASGI application. Nothing is opened or read
    before the first request. Its `state.site` is what all requests share.

    `authenticate` says who makes a request; without one, the users, tokens and sessions of the store do, and
    there is a sign-in page. `sign_in` is a URL that pages lead to instead while nobody is known.
    """
    endpoints = {endpoint.name: endpoint for group in groups for endpoint in group}
    stored = StoredCallers(app)
    has_sign_in = authenticate is None
    site = Site(app, endpoints, authenticate or stored, pages, sign_in=sign_in, has_sign_in=has_sign_in)
    routes: list[BaseRoute] = [
        Route(API + one.path, _serving(site, one, _answer_endpoint), methods=[one.method], name=one.name)
        for one in endpoints.values()
    ]
    routes += [
        Route(
            f"{FORMS}/{one.name}", _serving(site, one, _answer_form), methods=["POST"], name=f"do:{one.name}"
        )
        for one in endpoints.values()
        if one.has_form
    ]
    routes += [
        Route(one.path, _serving(site, one, _answer_page), methods=[one.method], name=f"page:{one.name}")
        for group in pages
        for one in group
    ]
    probe = _open(probe_of(site))
    routes += [Route(path, probe) for path in sorted(PROBES)]
    routes += [
        Route("/static/{name}", _open(serve_asset)),
        Route("/personal", _open(choose), methods=["POST"]),
        Route("/live", _serving(site, LiveRoute(), live_of(site))),
    ]
    if has_sign_in:
        routes += sign_in_routes(site, stored, _open)
    served = Starlette(
        routes=routes,
        middleware=[Middleware(RequestGuard, site=site)],
        exception_handlers={HTTPException: _no_route},
        lifespan=_lifespan(site),
    )
    served.router.redirect_slashes = False  # it would repeat the host that a request names
    served.state.site = site
    return served


def _lifespan(site: Site) -> Callable[[Starlette], Any]:
    """Close what was opened, unless whoever serves this has opened it before."""
    app = site.app

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        was_open = app.client.is_open_here
        try:
            yield
        finally:
            if not was_open:
                await app.client.aclose_here()
            if site.reader is not app:
                await site.reader.aclose()

    return lifespan


async def _no_route(request: Request, error: Exception) -> Response:
    """Answer for a path that leads nowhere, and for a method that it does not take."""
    assert isinstance(error, HTTPException)  # noqa: S101 (for the type checkers: it is registered for these)
    if error.status_code != 405:  # noqa: PLR2004 (the status itself)
        return error_response(request.scope, HttpProblem(404, "not_found", NOT_FOUND))
    allowed = (error.headers or {}).get("Allow", "")
    problem = HttpProblem(
        405,
        "method_not_allowed",
        f"{request.method} is not possible here",
        hint=f"possible: {allowed}",
        headers={"allow": allowed},
    )
    return error_response(request.scope, problem)


# ── one request ───────────────────────────────────────────────────────────────


def _serving(
    site: Site, what: Any, answer: Callable[[WebCall, Any], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        try:
            call = await _admit(site, request, what)
            return await answer(call, what)
        except Exception as error:  # noqa: BLE001 (whatever it was, the caller gets an answer)
            return error_response(request.scope, error)

    return serve


def _open(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Serve what needs no sign-in, because it shows nothing of the application."""

    async def serve(request: Request) -> Response:
        try:
            return await answer(request)
        except Exception as error:  # noqa: BLE001 (as above)
            return error_response(request.scope, error)

    return serve


async def _admit(site: Site, request: Request, what: Endpoint | WebPage | LiveRoute) -> WebCall:
    principal = await known(site, request)
    if not site.is_there(principal, what.tenants):
        raise HttpProblem(404, "not_found", NOT_FOUND)
    if not principal.may(what.name, site.least_role(what.least)):
        raise HttpProblem(403, "forbidden", f"this needs the role {site.least_role(what.least)}")
    return WebCall(site=site, principal=principal, request=request, request_id=request_id_of(request.scope))


async def _answer_endpoint(call: WebCall, endpoint: Endpoint) -> Response:
    values: dict[str, Any] = read_path(call.request.path_params, endpoint.fields)
    if endpoint.query is not None:
        values["query"] = read_query(call.request.query_params, endpoint.query)
    if endpoint.body is not None:
        values["body"] = read_json(await call.request.body(), endpoint.body)
    with call.acting("api"):
        if endpoint.is_change or not endpoint.limited:
            reply = await endpoint.handler(call, **values)
        else:
            async with _within_limit(call):
                reply = await endpoint.handler(call, **values)
    if isinstance(reply, Response):
        return reply
    return Response(msgspec.json.encode(reply), status_code=endpoint.status, media_type="application/json")


@asynccontextmanager
async def _within_limit(call: WebCall) -> AsyncGenerator[None]:
    """Stop what reads for too long: the statement that runs is cancelled with it."""
    limit = call.site.settings.statement_limit / SECOND
    ending = asyncio.timeout(limit)
    try:
        async with ending:
            yield
    except TimeoutError:
        if not ending.expired():
            raise
        raise HttpProblem(
            504, "too_slow", f"reading took longer than {limit:g} s", hint="ask for less: narrow the search"
        ) from None


async def _answer_form(call: WebCall, endpoint: Endpoint) -> Response:
    pairs = await form_of(call)
    try:
        done = await submit(call, endpoint, pairs)
    except Exception as error:  # noqa: BLE001 (as above: beside the form, or on the page that comes next)
        return after_error(call, pairs, error)
    return done if isinstance(done, Response) else after_form(call, pairs, done)


async def _answer_page(call: WebCall, page: WebPage) -> Response:
    with call.acting("web"):
        async with _within_limit(call) if page.limited else nullcontext():
            response = await show(call, page)
    if COOKIE in call.request.cookies:
        call.site.flashes.clear(response, call.request.scope)
    return response
