"""Refuse what comes from elsewhere (unknown hosts, other sites), and say what a page may load.

Knows no caller: all of this holds before anybody is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.web.http.error_response import error_response
from fairlane.web.http.proxies import behind_proxies
from fairlane.web.http.request_id import new_request_id, request_id_of
from fairlane.web.locations import is_api, is_probe
from fairlane.web.problem import HttpProblem
from fairlane.web.site import Site

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""What a page may load, run and send: only what this application serves, and nothing inline."""

EVERY_ANSWER: Final[Mapping[str, str]] = {
    "content-security-policy": CSP,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer that does not set them itself, as static files set how long they may be kept."""

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY_HOST: Final = "*"
MOST_OF_A_FORM: Final = 1_000_000
"""Bytes: forms are also read of callers who are not known yet."""

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OWN_SITE: Final = frozenset({"same-origin", "none"})
"""`none` is what a browser says that was told by its user: an address typed, a form sent again."""

_PORT: Final = re.compile(r":\d*$")


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("Jobs.Example.org.:8080"), host_name("[::1]:80"), host_name("")
    ('jobs.example.org', '[::1]', '')
    """
    return _PORT.sub("", host.strip().lower()).rstrip(".")


def is_allowed_host(host: str, allowed: Collection[str]) -> bool:
    """Whether a request may name this host: the loopback's names, or one of those that are allowed.

    >>> is_allowed_host("localhost:8000", ()), is_allowed_host("evil.example", ["example.org"])
    (True, False)
    >>> is_allowed_host("a.example.org", ["*.example.org"]), is_allowed_host("example.org", ["*.example.org"])
    (True, False)
    """
    name = host_name(host)
    if not name:
        return False
    return (
        name in LOOPBACK_NAMES
        or ANY_HOST in allowed
        or any(
            name == one.lower() or (one.startswith("*.") and name.endswith(one[1:].lower()))
            for one in allowed
        )
    )


def check_host(headers: Headers, allowed: Collection[str]) -> None:
    """Refuse a request for an unknown host.

    Otherwise a page of another site, whose name was made to lead to this machine, could read what a proxy or
    the loopback's trust opens.
    """
    if not is_allowed_host(headers.get("host", ""), allowed):
        raise HttpProblem(
            421,
            "unknown_host",
            "this application does not answer under the host that the request names",
            hint="whoever runs it can add the name to web.allowed_hosts",
        )


def check_same_origin(headers: Headers, *, is_required: bool) -> None:
    """Refuse a change that another site's page sends with the caller's own cookie.

    A browser says where a request comes from: in Sec-Fetch-Site, older ones in Origin. `is_required`: one of
    them must be there, since the browser may have added the caller's credentials by itself.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        is_own = site in _OWN_SITE
    elif origin is not None:
        is_own = _place(origin) == headers.get("host", "").lower()
    elif is_required:
        raise HttpProblem(
            403,
            "origin_missing",
            "a change that is sent with a cookie must say where it comes from",
            hint="send Origin or Sec-Fetch-Site, as browsers do; programs use a token: Authorization: Bearer",
        )
    else:
        return
    if not is_own:
        raise HttpProblem(
            403,
            "cross_site",
            "this was sent by a page of another site",
            hint="if a proxy changes Host, let it pass the name that browsers use",
        )


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


class RequestGuard:
    """Stands before all routes: request ids, hosts, origins, sizes, and the headers of every answer."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = new_request_id(behind_proxies(scope, self._site.settings.trusted_proxies))
        most = self._site.settings.max_body if is_api(scope) else MOST_OF_A_FORM
        body = _BoundedBody(receive, most)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id_of(scope)
                for name, value in EVERY_ANSWER.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope, most)
        except HttpProblem as problem:
            await error_response(scope, problem)(scope, receive, send_with_headers)
            return
        await self._app(scope, body.receive, send_with_headers)

    def _check(self, scope: Scope, most: int) -> None:
        headers = Headers(scope=scope)
        if not is_probe(scope):  # those who ask whether a process lives name it by its address
            check_host(headers, self._site.allowed_hosts)
        if scope["method"] not in _SAFE_METHODS:
            check_same_origin(headers, is_required=not is_api(scope) or self._site.is_ambient(scope))
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise _too_large(most)


class _BoundedBody:
    """Receives a request's body, and refuses the rest of one that grows too large."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._size = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise _too_large(self._most)
        return message


def _too_large(most: int) -> HttpProblem:
    return HttpProblem(
        413, "too_large", f"the request has more than {most:,} bytes", hint="send less at a time"
    )
