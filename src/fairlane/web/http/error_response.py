"""Answer an error in the form that was asked for: JSON for programs, a page or a line of it for people."""

from __future__ import annotations

from logging import getLogger
from typing import Final
from urllib.parse import quote

from markupsafe import Markup
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from fairlane.web.html.rendering import render_plain
from fairlane.web.http.request_id import request_id_of
from fairlane.web.locations import is_api, is_probe, path_below, prefix_of
from fairlane.web.problem import ProblemReply, SignedOut, problem_of, problem_response

HTMX: Final = "hx-request"
"""The header of requests that htmx makes: they want a part of a page."""

AGAIN_AFTER: Final = 5
"""Seconds after which a page that could not be shown, as its store did not answer, asks again by itself."""

_AWAY: Final = 503
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})

_log: Final = getLogger("fairlane.web")


def error_response(scope: Scope, error: Exception) -> Response:
    """Return the answer to an error; what nobody expected is logged under the id of the request."""
    problem, headers = logged_problem(scope, error)
    if is_api(scope) or is_probe(scope):
        return problem_response(problem, headers)
    is_part = HTMX in Headers(scope=scope)
    if isinstance(error, SignedOut) and error.sign_in is not None:
        return _to_sign_in(scope, error.sign_in, is_own=error.is_own, is_part=is_part)
    if is_part:
        return error_line(problem, headers)
    is_repeated = problem.status == _AWAY and scope["method"] == "GET"
    text = render_plain(scope, "error.html", problem=problem, again=AGAIN_AFTER if is_repeated else None)
    return HTMLResponse(text, status_code=problem.status, headers=headers)


def logged_problem(scope: Scope, error: Exception) -> tuple[ProblemReply, dict[str, str]]:
    """Return what an error says, and headers; what nobody expected is logged under the request's id."""
    request_id = request_id_of(scope)
    problem, headers = problem_of(error, request_id)
    if problem.status == 500:  # noqa: PLR2004 (the status itself)
        _log.error(
            "request %s failed: %s %s",
            *(request_id, scope["method"], path_below(scope)),
            exc_info=error,
            extra={"event": "request_failed", "request_id": request_id},
        )
    return problem, headers


def error_line(problem: ProblemReply, headers: dict[str, str] | None = None) -> Response:
    """Return an error as the line that htmx shows beside a form."""
    line = Markup('<p class="error" role="alert">{}</p>').format(error_text(problem))
    return HTMLResponse(line, status_code=422, headers=headers)


def error_text(problem: ProblemReply) -> str:
    """Return an error as one line: field, message and hint.

    >>> error_text(ProblemReply(title="", status=422, code="", detail="until: is past", hint="name a day"))
    'until: is past; name a day'
    """
    text = problem.detail or problem.title
    return f"{text}; {problem.hint}" if problem.hint else text


def _to_sign_in(scope: Scope, place: str, *, is_own: bool, is_part: bool) -> Response:
    """Lead to the sign-in page, and from there back to the page that was asked for.

    A link on another site's page, as in a chat, comes without our cookie, and so does whatever it is led to
    at once. A page in between goes on from here, with the cookie: who is signed in sees no sign-in page.
    """
    if is_part:
        return Response(status_code=204, headers={"hx-redirect": place})
    query = scope.get("query_string", b"").decode("latin-1")
    wanted = f"{scope['path']}?{query}" if query else scope["path"]
    if scope["method"] == "GET" and wanted != f"{prefix_of(scope)}/":
        place += f"{'&' if '?' in place else '?'}next={quote(wanted, safe='/')}"
    if is_own and scope["method"] == "GET" and Headers(scope=scope).get("sec-fetch-site") in _ELSEWHERE:
        return HTMLResponse(render_plain(scope, "access/return.html", place=place))
    return RedirectResponse(place, status_code=303)
