"""Parse a server's URL, and refuse a bad one without showing any of it: it may contain a password.

Knows no store and connects to nothing. Each store interprets its own options.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from fairlane.model.errors import ConfigError

_HOSTS: Final = re.compile(r"((\[[^][]*\]|[^][:,]*)(:[0-9]{0,5})?(,|$))*")
_PORT: Final = re.compile(r":([0-9]+)(?=,|$)")
_LAST_PORT: Final = 65_535
_ENCODE: Final = (
    "it cannot be read; in a user name or password, percent-encode what means something in a URL: "
    "# as %23, / as %2F, : as %3A, ? as %3F, @ as %40, [ as %5B, ] as %5D, % as %25."
)
_DRIVERS: Final = {"postgresql": "postgresql", "postgres": "postgresql", "sqlite": "sqlite", "redis": "redis"}
_OTHER_NAMES: Final = {
    "valkey": "redis",
    "valkeys": "rediss",
    "file": "sqlite",
    "sqlite3": "sqlite",
    "pgsql": "postgresql",
    "psql": "postgresql",
    "redis+ssl": "rediss",
    "redis+tls": "rediss",
    "redis+unix": "unix",
    "redis+socket": "unix",
    "redis+cluster": "redis",
    "rediss+cluster": "rediss",
    "sentinel": "redis+sentinel",
    "redis-sentinel": "redis+sentinel",
    "redis+sentinels": "redis+sentinel",
    "sentinel+redis": "redis+sentinel",
}


def split_server_url(url: str, allowed: str) -> SplitResult:
    """Parse the URL of a server; `ConfigError` if it is ambiguous.

    A reserved character in a password shifts the parts: what looks like an option or a port is then part of
    the password.
    """
    parts = _split(url)
    if parts is None:
        raise ConfigError(_ENCODE, key="url", allowed=allowed)
    return parts


def is_clear(url: str) -> bool:
    """Whether a server's URL is unambiguous: then all parts but secrets may be shown.

    >>> is_clear("redis://ops:hunter2@host:6379/0"), is_clear("redis://ops:hunt#er2@host:6379/0")
    (True, False)
    """
    return _split(url) is not None


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
    except ValueError:  # its text contains a part of the URL, which must not be shown
        return None
    user, _, hosts = parts.netloc.rpartition("@")
    is_shifted = "#" in url or "@" in user + parts.path + parts.query
    is_clear = not is_shifted and has_hosts(hosts)
    return parts if is_clear else None


def has_hosts(text: str) -> bool:
    """Whether a text is a list of hosts, with or without ports.

    >>> has_hosts("a:1,[::1]:2,c"), has_hosts("a:secret"), has_hosts("a:70000")
    (True, False, False)
    """
    return _HOSTS.fullmatch(text) is not None and all(int(port) <= _LAST_PORT for port in _PORT.findall(text))


def options_of(
    parts: SplitResult, known: Collection[str], allowed: str, *, others: bool = False
) -> dict[str, str]:
    """Return the options of a URL by name; `ConfigError` suggests the nearest for an unknown one.

    With `others`, an unknown option is refused only if it resembles a known one: it may be for the driver.
    """
    options: dict[str, str] = {}
    for text in parts.query.split("&") if parts.query else []:
        try:
            ((name, value),) = parse_qsl(text, keep_blank_values=True)
        except ValueError:  # nothing between two &
            continue
        if name not in known:
            near = get_close_matches(name, known, 1, 0.75)
            if near or not others:
                raise ConfigError(_unknown(name, text, options, near), key="url", allowed=allowed)
        options[name] = value
    return options


def _unknown(name: str, text: str, before: Mapping[str, str], near: list[str]) -> str:
    """Word the error for an unknown option. After a password it is not named: it may be part of it."""
    is_named = "=" in text and not any("password" in one for one in before)
    what = f"there is no option {name[:40]!r}" if is_named else "it has an option that is not known"
    return f"{what}; did you mean {near[0]}?" if near else f"{what}."


def scheme_hint(scheme: str, known: Collection[str]) -> str:
    """Return what to write instead of an unknown scheme; empty if there is no guess.

    >>> scheme_hint("postgresql+asyncpg", ["postgresql"]), scheme_hint("valkey", ["redis"])
    ('; drop +asyncpg: write postgresql://', '; write redis://')
    """
    lower = scheme.lower()
    if lower in known:
        return f"; write {lower}://"
    if lower in _OTHER_NAMES:
        return f"; write {_OTHER_NAMES[lower]}://"
    head, plus, driver = lower.partition("+")
    if plus and head in _DRIVERS:
        return f"; drop +{driver}: write {_DRIVERS[head]}://"
    near = get_close_matches(lower, known, 1)
    return f"; did you mean {near[0]}://?" if near else ""
