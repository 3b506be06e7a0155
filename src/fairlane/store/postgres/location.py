"""Read the URL of a PostgreSQL store: ours of its options, and what the driver gets. Connects to nothing."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from fairlane.model.errors import ConfigError
from fairlane.store.postgres.statements import quoted

DEFAULT_SCHEMA: Final = "fairlane"
DEFAULT_POOL: Final = 2
"""Connections of one event loop, the one that listens among them. A worker has two loops: one claims and
settles, one renews, beats and does the duties."""

_LONGEST_NAME: Final = 63
_MOST_CONNECTIONS: Final = 1_000
_OWN: Final = frozenset({"schema", "pool", "pgbouncer"})
_ALLOWED: Final = (
    "postgresql://user@host:port/database?schema=fairlane&pool=2&pgbouncer=transaction, "
    "and what libpq knows, as sslmode=verify-full"
)


class Location:
    """Where a store is, from `postgresql://…?schema=name&pool=number&pgbouncer=transaction`.

    A password may stand in the URL, in PGPASSWORD or in a .pgpass file; nothing here shows it.
    """

    def __init__(self, url: str) -> None:
        """Read the URL; `ConfigError` if it cannot be one."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        own = {name: options.pop(name) for name in _OWN & options.keys()}
        # The driver reads the rest itself: hosts, TLS, target_session_attrs, its own settings.
        self.dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options), fragment=""))
        self.schema = _schema(own.get("schema", DEFAULT_SCHEMA))
        self.pool = _pool(own.get("pool", str(DEFAULT_POOL)))
        self.is_pooled = _is_pooled(own.get("pgbouncer"))
        hosts = unquote(parts.netloc.rpartition("@")[2]) or options.get("host", "localhost")
        self.place = f"PostgreSQL at {hosts}, schema {quoted(self.schema)}"
        """For people; without user and password."""


def _schema(name: str) -> str:
    size = len(name.encode())
    if not 0 < size <= _LONGEST_NAME or "\0" in name or name.startswith("pg_"):
        message = f"{name!r} cannot be a schema: 1 to {_LONGEST_NAME} bytes, not beginning with pg_."
        raise ConfigError(message, key="url", allowed=_ALLOWED)
    return name


def _pool(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_CONNECTIONS:
        message = f"pool={text!r} is no number of connections from 1 to {_MOST_CONNECTIONS}."
        raise ConfigError(message, key="url", allowed=_ALLOWED)
    return int(text)


def _is_pooled(mode: str | None) -> bool:
    if mode not in (None, "transaction", "session"):
        raise ConfigError(f"pgbouncer={mode!r} is not known.", key="url", allowed=_ALLOWED)
    return mode == "transaction"
