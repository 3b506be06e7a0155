"""Read the header Authorization: a token of ours, or a name with a password. Checks neither."""

from __future__ import annotations

from base64 import b64decode
from typing import Final

from fairlane.app.access.secret_text import PREFIX

_TOKEN: Final = f"bearer {PREFIX}"


def is_token(authorization: str) -> bool:
    """Whether a request brings a token of ours, which no browser adds by itself.

    >>> is_token("Bearer fl_x"), is_token("Bearer eyJhbGciOi"), is_token("Basic YTpi")
    (True, False, False)
    """
    return authorization[: len(_TOKEN)].lower() == _TOKEN


def is_basic(authorization: str) -> bool:
    """Whether a request brings a name with a password, which browsers add by themselves."""
    return authorization.lower().startswith("basic ")


def token_of(authorization: str) -> str:
    """Return the token that a request brings."""
    return authorization.partition(" ")[2].strip()


def basic_pair(authorization: str) -> tuple[str, str] | None:
    """Return the name and the password of basic authentication; None if they cannot be read.

    >>> basic_pair("Basic YW5uOmE6Yg=="), basic_pair("Basic !"), basic_pair("Basic YW5u")
    (('ann', 'a:b'), None, None)
    """
    try:
        text = b64decode(authorization.partition(" ")[2].strip(), validate=True).decode()
    except ValueError:
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon else None
