"""Carry one message to the next page: what a form did, or why it did not. In a signed cookie."""

from __future__ import annotations

from secrets import token_bytes
from typing import Final, Literal, TypeAlias

import msgspec
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.responses import Response
from starlette.types import Scope

from fairlane.web.locations import prefix_of

COOKIE: Final = "fairlane_flash"
_LASTS: Final = 60
"""Seconds: the next page comes at once, or never."""
_LONGEST: Final = 300
"""Characters: a browser keeps 4 KB."""

FlashKind: TypeAlias = Literal["done", "error"]


class Flash(msgspec.Struct, frozen=True):
    """What the last form did. Templates show its text; a reader sees it once."""

    kind: FlashKind
    text: str


class FlashSigner:
    """Signs messages, so that nobody else can put words on a page.

    Without a secret the key lasts as long as the process, and no other process can read what it signs.
    """

    def __init__(self, secret: str | None = None) -> None:
        key = token_bytes(32) if secret is None else secret.encode()
        self._serializer = URLSafeTimedSerializer(key, salt="fairlane.flash")

    def set(self, response: Response, scope: Scope, flash: Flash) -> None:
        """Give a message to the next page."""
        response.set_cookie(
            COOKIE,
            str(self._serializer.dumps({"kind": flash.kind, "text": flash.text[:_LONGEST]})),
            max_age=_LASTS,
            path=prefix_of(scope) or "/",
            secure=scope.get("scheme") == "https",
            httponly=True,
            samesite="strict",
        )

    def read(self, cookie: str | None) -> Flash | None:
        """Return the message of a cookie; None if there is none, or it is not from here."""
        if cookie is None:
            return None
        try:
            return msgspec.convert(self._serializer.loads(cookie, max_age=_LASTS), Flash)
        except (BadData, msgspec.ValidationError):
            return None

    def clear(self, response: Response, scope: Scope) -> None:
        """Let the message be forgotten: it was shown."""
        response.delete_cookie(COOKIE, path=prefix_of(scope) or "/", httponly=True, samesite="strict")
