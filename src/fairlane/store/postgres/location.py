"""Parse the URL of a PostgreSQL store: our options, and what the driver gets. Connects to nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlencode, urlunsplit

from fairlane.model.errors import ConfigError
from fairlane.store.postgres.statements import quoted
from fairlane.store.urls import has_hosts, options_of, split_server_url

DEFAULT_SCHEMA: Final = "fairlane"
_MAX_NAME_BYTES: Final = 63
_MAX_CONNECTIONS: Final = 1_000
_OWN: Final = frozenset({"schema", "pool", "pgbouncer"})
_FILES: Final = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_DRIVERS: Final = frozenset(
    {*_FILES, "host", "port", "user", "password", "dbname", "database", "passfile", "service", "sslmode"}
    | {"sslpassword", "sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version"}
    | {"target_session_attrs", "krbsrvname", "gsslib"}
)
"""Options that the driver reads itself; it takes any other for a setting of the server, as work_mem."""
_PORTS: Final = re.compile(r"[0-9]{1,5}(,[0-9]{1,5})*")
_ALLOWED: Final = (
    "postgresql://user@host:port/database?schema=fairlane&pool=2&pgbouncer=transaction, "
    "and what libpq knows, as sslmode=verify-full"
)


class Location:
    """Where a store is, from `postgresql://…?schema=name&pool=number&pgbouncer=transaction`.

    The password may be in the URL, in PGPASSWORD or in a .pgpass file; nothing here shows it.
    """

    def __init__(self, url: str) -> None:
        """Parse the URL; `ConfigError` if it is not valid."""
        parts = split_server_url(url, _ALLOWED)
        options = options_of(parts, _OWN | _DRIVERS, _ALLOWED, others=True)
        own = {name: options.pop(name) for name in _OWN & options.keys()}
        _check_files(options)
        _check_hosts(options)
        # The driver reads the rest itself: hosts, TLS, target_session_attrs, its own settings.
        self.dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options), fragment=""))
        self.schema = _schema(own.get("schema", DEFAULT_SCHEMA))
        self.pool = _pool(own.get("pool"))
        """Connections of each event loop; None: as many as it needs."""
        self.is_pooled = _is_pooled(own.get("pgbouncer"))
        hosts = unquote(parts.netloc.rpartition("@")[2]) or options.get("host", "localhost")
        self.place = f"PostgreSQL at {hosts}, schema {quoted(self.schema)}"
        """For people; without user and password."""


def _check_files(options: dict[str, str]) -> None:
    """Check here that the files for TLS exist: the driver would say that the server does not answer."""
    for name in _FILES:
        if name in options and not Path(options[name]).is_file():
            message = f"{name} names no file of this machine."
            raise ConfigError(message, key="url", allowed=_ALLOWED)


def _check_hosts(options: dict[str, str]) -> None:
    """Check hosts and ports here: the driver would fail on them without a clear error."""
    host = options.get("host", "")
    if not host.startswith("/") and not has_hosts(host):
        raise ConfigError("host cannot be read.", key="url", allowed=_ALLOWED)
    if "port" in options and not _PORTS.fullmatch(options["port"]):
        raise ConfigError("port is not a port number.", key="url", allowed=_ALLOWED)


def _schema(name: str) -> str:
    size = len(name.encode())
    if not 0 < size <= _MAX_NAME_BYTES or "\0" in name or name.startswith("pg_"):
        message = f"{name!r} cannot be a schema: 1 to {_MAX_NAME_BYTES} bytes, not beginning with pg_."
        raise ConfigError(message, key="url", allowed=_ALLOWED)
    return name


def _pool(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) <= _MAX_CONNECTIONS:
        message = f"pool={text!r} is not a number of connections from 1 to {_MAX_CONNECTIONS}."
        raise ConfigError(message, key="url", allowed=_ALLOWED)
    return int(text)


def _is_pooled(mode: str | None) -> bool:
    if mode not in (None, "transaction", "session"):
        raise ConfigError(f"pgbouncer={mode!r} is not known.", key="url", allowed=_ALLOWED)
    return mode == "transaction"
