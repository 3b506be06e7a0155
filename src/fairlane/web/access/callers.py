"""Know callers by what the store has of them: the `authenticate` of a web that was given none (S91)."""

from __future__ import annotations

from starlette.requests import Request

from fairlane.app.access.sign_in import SignIn
from fairlane.app.fairlane import Fairlane
from fairlane.model.access import Principal
from fairlane.web.access.authorization import basic_pair, is_basic, is_token, token_of
from fairlane.web.access.session_cookie import session_secret
from fairlane.web.http.proxies import is_proxied, peer_of


class StoredCallers:
    """Knows a caller by a token, by name and password, by what a proxy says, or by a session's cookie.

    What a request brings first in this order decides: with a token that was revoked it is nobody's request,
    whatever cookie is beside it.
    """

    def __init__(self, app: Fairlane) -> None:
        self._app = app
        self.sign_in = SignIn(app)

    async def __call__(self, request: Request) -> Principal | None:
        """Return who makes a request; None for nobody. `TooManyAttempts` if too many have failed."""
        web = self._app.settings.web
        authorization = request.headers.get("authorization", "")
        if is_token(authorization):
            return await self.sign_in.with_token(token_of(authorization))
        if web.basic_auth and is_basic(authorization):
            return await self._basic(authorization, peer_of(request.scope))
        if web.user_header is not None and is_proxied(request.scope):
            named = request.headers.getlist(web.user_header)
            if any(named):
                # Of two names one is the client's own: a proxy that is to be believed replaces the header.
                return await self._named(named[0]) if len(named) == 1 else None
        secret = session_secret(request.scope, request.cookies)
        return None if secret is None else await self.sign_in.with_session(secret)

    async def _basic(self, authorization: str, peer: str) -> Principal | None:
        pair = basic_pair(authorization)
        return None if pair is None else await self.sign_in.check_password(*pair, peer=peer)

    async def _named(self, value: str) -> Principal | None:
        otherwise = self._app.settings.web.user_header_role
        return await self.sign_in.with_name(_text_of(value), otherwise=otherwise)


def _text_of(value: str) -> str:
    """Return the text of a header that a proxy sent as UTF-8, which is read as Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
