"""The kinds of configuration values: each reads a raw value, or says what is allowed.

A kind never repairs a value. Knows no keys and no sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from math import inf
from string import Formatter
from typing import Any, Final, cast

import msgspec

from fairlane.app.config.units import DURATIONS, SIZES, bytes_of, duration_text, seconds_of, size_text
from fairlane.model.names import label_hint, name_hint
from fairlane.model.payload.sensitive import find_sensitive
from fairlane.model.payload.tagged import INT64, is_utf8
from fairlane.model.policy.amounts import to_decimal, to_millionths
from fairlane.model.policy.budget import shares
from fairlane.model.policy.periods import is_zone
from fairlane.store.urls import is_clear

HIDDEN: Final = "(hidden)"
NONE: Final = "none"
"""The word for "no limit" and "no timeout" in a file: TOML has no null."""


LEAST_SECRET: Final = 16
"""The shortest secret: what is shorter can be guessed."""

KEY_PARTS: Final = ("key", "n", "time", "id")
"""What a template of a key may contain."""


def plain_text(value: Any) -> str:
    """Return a value roughly as a file would write it.

    >>> plain_text(True), plain_text(("a", "b")), plain_text("open"), plain_text(4)
    ('true', '["a","b"]', 'open', '4')
    """
    try:
        return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # a lone surrogate, which only code can hold
        return repr(value)


class ValueKind(msgspec.Struct, frozen=True):
    """How a value is read. `read` raises ValueError, with a message where "it is ..." is not enough.

    `is_text`: an environment variable is taken as it is; other kinds parse it as a TOML value first.
    `is_secret`: the value is never shown as it is. `show` formats a value that was read, never None.
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


def safe_url(url: str) -> str:
    """Return a URL without its password and without secrets in its query.

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


TEXT: Final = ValueKind(_text, "a text", is_text=True)
FLAG: Final = ValueKind(_flag, "true or false")
NAME: Final = ValueKind(_name, str(name_hint("")).removeprefix("use "), is_text=True)
URL: Final = ValueKind(
    _text, "sqlite:///file.db, or the URL of another store", is_text=True, is_secret=True, show=safe_url
)


def _safe_place(place: str) -> str:
    """Return a folder as it is, a URL without its password."""
    return safe_url(place) if "://" in place else place


PLACE: Final = ValueKind(
    _text, "a folder, or a URL such as s3://bucket/jobs", is_text=True, is_secret=True, show=_safe_place
)


def _secret(value: Any) -> str:
    if not is_utf8(_text(value)):
        raise ValueError
    if len(value) < LEAST_SECRET:
        message = f"it has fewer than {LEAST_SECRET} characters"
        raise ValueError(message)
    return str(value)


def _hidden(_: Any) -> str:
    return HIDDEN


SECRET: Final = ValueKind(
    _secret,
    f"a text of at least {LEAST_SECRET} characters",
    is_text=True,
    is_secret=True,
    show=_hidden,
)


def _key_template(value: Any) -> str:
    if label_hint(value) is not None:
        raise ValueError
    try:
        parts = [(name, form or how) for _, name, form, how in Formatter().parse(value) if name is not None]
    except ValueError:  # a single brace
        raise ValueError from None
    if any(name not in KEY_PARTS or extra for name, extra in parts):
        raise ValueError
    if all(name == "key" for name, _ in parts):
        message = "each new job would get the same key"
        raise ValueError(message)
    return str(value)


KEY_TEMPLATE: Final = ValueKind(
    _key_template,
    f"a text with {', '.join(f'{{{name}}}' for name in KEY_PARTS)}; not with {{key}} alone",
    is_text=True,
)


def one_of(*choices: str) -> ValueKind:
    """One of these words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return ValueKind(read, ", ".join(choices), is_text=True)


def list_of(kind: ValueKind) -> ValueKind:
    """A list of such values."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError  # noqa: TRY004 (as above)
        return tuple(kind.read(one) for one in value)  # pyright: ignore[reportUnknownVariableType]

    return ValueKind(read, f"a list of: {kind.allowed}")


def count(least: int, most: int = INT64 - 1) -> ValueKind:
    """A whole number from `least` to `most`, by default to the largest that stores can hold."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return value

    return ValueKind(read, f"a whole number, {least} " + ("or more" if most == INT64 - 1 else f"to {most}"))


def number(least: float, most: float) -> ValueKind:
    """A number from `least` to `most`."""

    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return value

    return ValueKind(read, f"a number from {least:g} to {most:g}")


def duration(least: float = 0, most: float = inf) -> ValueKind:
    """A duration, in seconds."""

    def read(value: Any) -> float:
        seconds = seconds_of(value)
        if not least <= seconds <= most:
            raise ValueError
        return seconds

    bounds = f", {least:g} s or more" if most == inf else f", {least:g} s to {most:.0f} s"
    allowed = DURATIONS + (bounds if (least, most) != (0, inf) else "")
    return ValueKind(read, allowed, is_text=True, show=duration_text)


def size(least: int = 1) -> ValueKind:
    """A size, in bytes."""

    def read(value: Any) -> int:
        number = bytes_of(value)
        if number < least:
            raise ValueError
        return number

    return ValueKind(read, SIZES, is_text=True, show=size_text)


def or_none(kind: ValueKind) -> ValueKind:
    """The same, or the word "none"."""

    def read(value: Any) -> Any:
        return None if value == NONE else kind.read(value)

    allowed = f'{kind.allowed}, or "{NONE}"'
    return ValueKind(read, allowed, is_text=kind.is_text, is_secret=kind.is_secret, show=kind.show)


# ── budgets ───────────────────────────────────────────────────────────────────


def _amount(value: Any) -> Decimal:
    return to_decimal(to_millionths(value))


def _currency(value: Any) -> str:
    if not isinstance(value, str) or not (
        len(value) == CURRENCY_LETTERS and value.isascii() and value.isupper()
    ):
        raise ValueError
    return value


def _zone(value: Any) -> str:
    if not is_zone(value):
        raise ValueError
    return str(value)


def _shares(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 (one way to say that a value does not fit)
    listed = cast("Sequence[Any]", value)
    shares(listed)
    return tuple(listed)


CURRENCY_LETTERS: Final = 3
AMOUNT: Final = ValueKind(_amount, 'an amount with at most 6 decimals, such as "500.00"', show=str)
CURRENCY: Final = ValueKind(_currency, "three capital letters, such as USD", is_text=True)
ZONE: Final = ValueKind(_zone, "the name of a time zone, such as Europe/Berlin", is_text=True)
SHARES: Final = ValueKind(_shares, "a list of shares in whole percents, such as [0.8, 1.0]")
