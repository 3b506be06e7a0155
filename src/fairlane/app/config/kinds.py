"""What one value of the configuration may be: each kind reads what a file holds, or says what is allowed.

Knows no keys and no sources. A kind never repairs: what does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import inf
from typing import Any, Final

import msgspec

from fairlane.app.config.units import DURATIONS, SIZES, bytes_of, duration_text, seconds_of, size_text
from fairlane.model.names import name_hint
from fairlane.model.sensitive import find_sensitive
from fairlane.model.tagged import INT64
from fairlane.store.urls import is_clear

HIDDEN: Final = "(hidden)"
NONE: Final = "none"
"""How a file says that there is no limit or no timeout: TOML has no word of its own for it."""


def plain_text(value: Any) -> str:
    """Write a value as a file would, more or less.

    >>> plain_text(True), plain_text(("a", "b")), plain_text("open"), plain_text(4)
    ('true', '["a","b"]', 'open', '4')
    """
    try:
        return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half of a character, which only code can hold
        return repr(value)


class Kind(msgspec.Struct, frozen=True):
    """How a value is read; `read` raises ValueError, with a text where "it is ..." does not say enough.

    `is_text`: an environment variable is taken as it stands; other kinds are read as a TOML value first.
    `is_secret`: the value is never shown as it is. `show` writes a value that was read, never None.
    """

    read: Callable[[Any], Any]
    allowed: str
    is_text: bool = False
    is_secret: bool = False
    show: Callable[[Any], str] = plain_text


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004 (one way to say that a value does not fit)
    return value


def _name(value: Any) -> str:
    if name_hint(value) is not None:
        raise ValueError
    return str(value)


def _amount(value: Any) -> Decimal:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError  # noqa: TRY004 (as above)
    try:
        return Decimal(value)
    except InvalidOperation:
        raise ValueError from None


def safe_url(url: str) -> str:
    """Show a URL without its password and without what looks secret in its query.

    >>> safe_url("redis://ops:hunter2@host:6379/0?ssl=1&password=hunter2")
    'redis://ops:***@host:6379/0?ssl=1&password=***'
    >>> safe_url("hunter2"), safe_url("redis://ops:hunt#er2@host:6379/0")
    ('(hidden)', 'redis://(hidden)')
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return HIDDEN
    if not url.startswith("sqlite:///") and not is_clear(url):  # a file has no password
        return f"{scheme}://{HIDDEN}"
    rest, _, query = rest.partition("?")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    name, colon, _ = user.partition(":")
    pairs = [pair.partition("=") for pair in query.split("&")] if query else []
    safe = "&".join(f"{key}{sign}{value if _is_plain(key, value) else '***'}" for key, sign, value in pairs)
    return f"{scheme}://{name}{colon and ':***'}{at}{host}{slash}{path}{query and '?'}{safe}"


def _is_plain(key: str, value: str) -> bool:
    return not find_sensitive({key: value})


def anything(value: Any) -> Any:
    """Take a value as it is: for features that do not exist yet and read it when they do."""
    return value


TEXT: Final = Kind(_text, "a text", is_text=True)
FLAG: Final = Kind(_flag, "true or false")
NAME: Final = Kind(_name, str(name_hint("")).removeprefix("use "), is_text=True)
AMOUNT: Final = Kind(_amount, 'an amount as text, e.g. "500.00"', is_text=True)
URL: Final = Kind(
    _text, "sqlite:///file.db, or the URL of another store", is_text=True, is_secret=True, show=safe_url
)
SECRET: Final = Kind(_text, "a text", is_text=True, is_secret=True, show=lambda _: HIDDEN)
ANYTHING: Final = Kind(anything, "")


def one_of(*words: str) -> Kind:
    """One of these words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind(read, ", ".join(words), is_text=True)


def list_of(kind: Kind) -> Kind:
    """A list of such values."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError  # noqa: TRY004 (as above)
        return tuple(kind.read(one) for one in value)  # pyright: ignore[reportUnknownVariableType]

    return Kind(read, f"a list of: {kind.allowed}")


def count(least: int, most: int = INT64 - 1) -> Kind:
    """A whole number from `least` on, as stores can keep it."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return value

    return Kind(read, f"a whole number, {least} " + ("or more" if most == INT64 - 1 else f"to {most}"))


def number(least: float, most: float) -> Kind:
    """A number within bounds."""

    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return value

    return Kind(read, f"a number from {least:g} to {most:g}")


def duration(least: float = 0, most: float = inf) -> Kind:
    """A duration, in seconds."""

    def read(value: Any) -> float:
        seconds = seconds_of(value)
        if not least <= seconds <= most:
            raise ValueError
        return seconds

    bounds = f", {least:g} s or more" if most == inf else f", {least:g} s to {most:.0f} s"
    allowed = DURATIONS + (bounds if (least, most) != (0, inf) else "")
    return Kind(read, allowed, is_text=True, show=duration_text)


def size(least: int = 1) -> Kind:
    """A size, in bytes."""

    def read(value: Any) -> int:
        number = bytes_of(value)
        if number < least:
            raise ValueError
        return number

    return Kind(read, SIZES, is_text=True, show=size_text)


def or_none(kind: Kind) -> Kind:
    """The same, or the word "none"."""

    def read(value: Any) -> Any:
        return None if value == NONE else kind.read(value)

    return Kind(read, f'{kind.allowed}, or "{NONE}"', is_text=kind.is_text, show=kind.show)
