"""Open the store that a URL names. Imports a store and its driver only when needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Final, Protocol, TypeAlias

from fairlane.model.errors import ConfigError
from fairlane.model.instants import Instant
from fairlane.store.contract import Store
from fairlane.store.urls import scheme_hint


class StoreClock(Protocol):
    """Replaces a store's own clock in tests (S1)."""

    def now(self) -> Instant:
        """Return the current instant."""
        ...


Opener: TypeAlias = Callable[[str, StoreClock | None], Store]
"""Creates a store from its URL without connecting: the first verb connects."""

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")
_openers: Final[dict[str, Opener]] = {}
_SHIPPED: Final = {
    "sqlite": "fairlane.store.sqlite.store",
    "postgresql": "fairlane.store.postgres.store",
    "postgres": "fairlane.store.postgres.store",
    "redis": "fairlane.store.redis.store",
    "rediss": "fairlane.store.redis.store",
    "redis+sentinel": "fairlane.store.redis.store",
    "rediss+sentinel": "fairlane.store.redis.store",
    "unix": "fairlane.store.redis.store",
}
"""The module of each scheme; its `open_url` is the opener."""


def register_scheme(scheme: str, opener: Opener) -> None:
    """Register the opener of a URL scheme; it replaces an earlier one."""
    if not _SCHEME.fullmatch(scheme):
        message = f"{scheme!r} is not a scheme of a URL; use a-z, then a-z, 0-9, + . -"
        raise ValueError(message)
    _openers[scheme] = opener


def open_store(url: str, *, clock: StoreClock | None = None) -> Store:
    """Return the store of a URL, not yet connected. `ConfigError` shows the scheme, never the rest.

    >>> open_store("carrier-pigeon://user:secret@loft")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fairlane.model.errors.ConfigError: url: no store is known for scheme 'carrier-pigeon'. Allowed: ...
    """
    if url.startswith((":memory:", "file::memory:")):  # SQLite's own name; its store explains what is wrong
        url = f"sqlite:///{url}"
    scheme, separator, _ = url.partition("://")
    known = ", ".join(f"{name}://" for name in sorted({*_openers, *_SHIPPED}))
    if not separator or not _SCHEME.fullmatch(scheme.lower()):
        # The text may hold a password, whatever else is wrong with it.
        raise ConfigError("it has no scheme, as in sqlite:///fairlane.db.", key="url", allowed=known)
    if scheme not in _openers and scheme in _SHIPPED:
        register_scheme(scheme, _opener(scheme))
    if scheme not in _openers:
        hint = scheme_hint(scheme, {*_openers, *_SHIPPED})
        raise ConfigError(f"no store is known for scheme {scheme!r}{hint}.", key="url", allowed=known)
    return _openers[scheme](url, clock)


def _opener(scheme: str) -> Opener:
    """Import a store. Its driver may be an extra that is not installed."""
    try:
        opener: Opener = import_module(_SHIPPED[scheme]).open_url
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "fairlane":
            raise
        extra = _SHIPPED[scheme].split(".")[2]
        message = f"{scheme}:// needs {error.name}; install it with: pip install 'fairlane[{extra}]'"
        raise ConfigError(message, key="url") from error
    return opener
