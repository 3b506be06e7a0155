"""The cookie of a session: its name, and what a browser may do with it. Knows no store.

Two applications on one host do not sign each other's users out: the name has the port and the prefix. Over
https the browser itself holds it to this host (`__Host-`), which needs the path `/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from fairlane.app.access.sign_in import SESSION_LIFETIME, SignedIn
from fairlane.model.instants import SECOND
from fairlane.web.locations import prefix_of

_NAME: Final = "fairlane_session"


def session_secret(scope: Scope, cookies: Mapping[str, str]) -> str | None:
    """Return the secret that a browser has kept for this application; None if it has none."""
    return cookies.get(cookie_name(scope))


def keep_session(response: Response, scope: Scope, signed_in: SignedIn) -> None:
    """Let the browser keep a session while it is valid. No script reads it, no other site sends it."""
    response.set_cookie(
        cookie_name(scope),
        signed_in.secret,
        max_age=SESSION_LIFETIME // SECOND,
        path=_path(scope),
        secure=_is_secure(scope),
        httponly=True,
        samesite="strict",
    )


def forget_session(response: Response, scope: Scope) -> None:
    """Let the browser forget it."""
    response.delete_cookie(
        cookie_name(scope), path=_path(scope), secure=_is_secure(scope), httponly=True, samesite="strict"
    )


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie.

    >>> scope = {"path": "/", "scheme": "http", "headers": [(b"host", b"localhost:8080")]}
    >>> cookie_name(scope), cookie_name({**scope, "scheme": "https", "root_path": "/ops"})
    ('fairlane_session_8080', '__Host-fairlane_session_8080_f91b6381')
    """
    port = Headers(scope=scope).get("host", "").rpartition("]")[2].rpartition(":")[2]
    prefix = prefix_of(scope)
    parts = [_NAME, *([port] if port.isdecimal() and port.isascii() else [])]
    parts += [sha256(prefix.encode()).hexdigest()[:8]] if prefix else []
    return ("__Host-" if _is_secure(scope) else "") + "_".join(parts)


def _path(scope: Scope) -> str:
    return "/" if _is_secure(scope) else prefix_of(scope) or "/"


def _is_secure(scope: Scope) -> bool:
    return bool(scope.get("scheme") == "https")
