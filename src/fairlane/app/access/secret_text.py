"""Make secrets: of tokens, sessions and sign-in links. Keeps none."""

from __future__ import annotations

from secrets import token_urlsafe
from typing import Final

from fairlane.model.access_records import Secret

PREFIX: Final = "fl_"
"""How a secret begins, so that scanners find one that was committed or posted."""

_BYTES: Final = 32
_LONGEST: Final = 200


def new_secret() -> tuple[str, Secret]:
    """Return a new secret of 256 random bits: the text, which is shown once, and what is kept of it."""
    text = PREFIX + token_urlsafe(_BYTES)
    return text, Secret.of(text)


def secret_of(text: str) -> Secret | None:
    """Return what is kept of a secret, or None for a text that is no secret.

    >>> secret_of("password") is None, secret_of("fl_" + "x" * 43) is None
    (True, False)
    """
    return Secret.of(text) if text.startswith(PREFIX) and len(text) <= _LONGEST else None
