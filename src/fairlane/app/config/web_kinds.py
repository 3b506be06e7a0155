"""The kinds of values that only the web has: hosts, addresses, prefixes, headers."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any, Final

from fairlane.app.config.value_kinds import ValueKind, safe_url
from fairlane.model.access import Role

_HOST: Final = re.compile(r"\*|(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]", re.IGNORECASE)
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9_~.-]+)+")
_HEADER: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?")
_BROWSERS_OWN: Final = frozenset({"authorization", "cookie", "host", "origin", "referer", "user-agent"})
"""Headers in which a client speaks for itself."""


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError
    return value


def _host(value: Any) -> str:
    return _matching(_HOST, value).lower()


def _prefix(value: Any) -> str:
    prefix = _matching(_PREFIX, value)
    if {".", ".."} & set(prefix.split("/")):
        raise ValueError
    return prefix


def _header(value: Any) -> str:
    header = _matching(_HEADER, value)
    if header.lower() in _BROWSERS_OWN:
        message = "a client sets this header itself"
        raise ValueError(message)
    return header


def _address(value: Any) -> str:
    """Read an address or a network; one that holds every address trusts everybody."""
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 (as all kinds do)
    try:
        network = ip_network(value)
    except ValueError:
        raise ValueError from None
    if network.prefixlen == 0:
        message = "it covers every address"
        raise ValueError(message)
    return value


def _role(value: Any) -> Role:
    if not isinstance(value, str) or value not in set(Role):
        raise ValueError
    return Role(value)


def _replica(value: Any) -> str:
    if not isinstance(value, str) or value.partition("://")[0] not in {"postgresql", "postgres"}:
        message = "it is not a PostgreSQL URL"
        raise ValueError(message)
    return value


HOST: Final = ValueKind(_host, "a host name, *.example.org for all below it, or * for any", is_text=True)
PREFIX: Final = ValueKind(_prefix, "a path as /jobs, without a slash at its end", is_text=True)
HEADER: Final = ValueKind(_header, "a header that the proxy sets, as X-Forwarded-User", is_text=True)
ADDRESS: Final = ValueKind(_address, "an address or a network, as 10.0.0.7 or 10.0.0.0/24", is_text=True)
ROLE: Final = ValueKind(_role, ", ".join(Role), is_text=True)
REPLICA: Final = ValueKind(
    _replica, "the postgresql:// URL of a replica", is_text=True, is_secret=True, show=safe_url
)
