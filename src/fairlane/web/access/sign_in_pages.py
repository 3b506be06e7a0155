"""`/sign-in` and `/sign-out`: begin a session with a password or a link, and end it (S91).

Nobody needs to be known here. A page never says whether it was the name or the password.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from fairlane.app.access.secret_text import PREFIX
from fairlane.app.access.sign_in import SignedIn
from fairlane.model.access_errors import TooManyAttempts
from fairlane.model.errors import StoreError
from fairlane.web.access.callers import StoredCallers
from fairlane.web.access.session_cookie import forget_session, keep_session, session_secret
from fairlane.web.forms.flash import COOKIE, Flash
from fairlane.web.forms.submit import NEXT, form_pairs
from fairlane.web.html.rendering import render_plain
from fairlane.web.http.proxies import peer_of
from fairlane.web.http.security import LOOPBACK_NAMES, host_name
from fairlane.web.locations import SIGN_IN, SIGN_OUT, local_path, prefix_of
from fairlane.web.site import Site

Serve = Callable[[Request], Awaitable[Response]]

WRONG: Final = "Name and password do not fit."
USED: Final = "This link was used before, or its time is over. A new start of fairlane prints a new one."
SIGNED_OUT: Final = "You are signed out."

_LINK: Final = "link"


def sign_in_routes(site: Site, callers: StoredCallers, guarded: Callable[[Serve], Serve]) -> list[Route]:
    """Return the routes; `guarded` makes an answer of whatever they raise."""
    pages = SignInPages(site, callers)
    return [
        Route(SIGN_IN, guarded(pages.show), methods=["GET"], name="sign_in"),
        Route(SIGN_IN, guarded(pages.enter), methods=["POST"]),
        Route(SIGN_OUT, guarded(pages.leave), methods=["POST"], name="sign_out"),
    ]


class SignInPages:
    """The pages of one web application."""

    def __init__(self, site: Site, callers: StoredCallers) -> None:
        self._site = site
        self._callers = callers

    async def show(self, request: Request) -> Response:
        """Ask for name and password, or whether to use a link; lead on whoever is signed in already."""
        query = request.query_params
        wanted = local_path(query.get(NEXT, ""), prefix_of(request.scope))
        link = query.get(_LINK, "")
        if not link and await self._is_known(request):
            return RedirectResponse(wanted, status_code=303)
        flash = self._site.flashes.read(request.cookies.get(COOKIE))
        notice = "" if flash is None else flash.text
        response = _page(
            request, {"link": link if link.startswith(PREFIX) else "", NEXT: wanted, "notice": notice}
        )
        if flash is not None:
            self._site.flashes.clear(response, request.scope)
        return response

    async def enter(self, request: Request) -> Response:
        """Begin a session, and lead back to where the caller came from."""
        site, scope = self._site, request.scope
        peer = peer_of(scope)
        site.rates.take(f"sign-in of {peer}", site.settings.rate)
        form = dict(form_pairs(request.headers.get("content-type", ""), await request.body()))
        link, name = form.get(_LINK, ""), form.get("name", "")
        wanted = local_path(form.get(NEXT, ""), prefix_of(scope))
        try:
            signed_in = await self._begin(link, name, form.get("password", ""), peer)
        except TooManyAttempts as error:
            headers = {"retry-after": str(error.retry_after)}
            return _page(request, {"problem": f"{error}.", "name": name, NEXT: wanted}, 429, headers)
        if signed_in is None:
            problem = USED if link else WRONG
            return _page(request, {"problem": problem, "name": name, NEXT: wanted}, 403)
        await self._end(request)
        response = RedirectResponse(wanted, status_code=303)
        keep_session(response, scope, signed_in)
        return response

    async def leave(self, request: Request) -> Response:
        """End the session in the store, and let the browser forget it."""
        await self._end(request)
        response = RedirectResponse(f"{prefix_of(request.scope)}{SIGN_IN}", status_code=303)
        forget_session(response, request.scope)
        self._site.flashes.set(response, request.scope, Flash("done", SIGNED_OUT))
        return response

    async def _begin(self, link: str, name: str, password: str, peer: str) -> SignedIn | None:
        if link:
            return await self._callers.sign_in.with_link(link, peer=peer)
        return await self._callers.sign_in.with_password(name, password, peer=peer)

    async def _end(self, request: Request) -> None:
        """End the session that the browser has, if it has one."""
        secret = session_secret(request.scope, request.cookies)
        principal = None if secret is None else await self._callers.sign_in.with_session(secret)
        if principal is not None and principal.session is not None:
            await self._callers.sign_in.end_session(principal.session)

    async def _is_known(self, request: Request) -> bool:
        with suppress(StoreError, TooManyAttempts):  # then this page says more than that error would
            return await self._callers(request) is not None
        return False


def link_url(url: str, secret: str) -> str:
    """Return the URL at which a link is used; `url` is that of the first page."""
    return f"{url.rstrip('/')}{SIGN_IN}?{urlencode({_LINK: secret})}"


def _page(
    request: Request, values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    is_open = request.url.scheme != "https" and not _is_loopback(request)
    shown = {"link": "", "name": "", "notice": "", "problem": "", "is_open": is_open, **values}
    html = render_plain(request.scope, "access/sign_in.html", **shown)
    return HTMLResponse(html, status_code=status, headers=headers)


def _is_loopback(request: Request) -> bool:
    return host_name(request.headers.get("host", "")) in LOOPBACK_NAMES
