"""Believe what a proxy says of its client, if the proxy's address is one that was named. Knows no user."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

_PROXIED: Final = "fairlane.is_proxied"
_SCHEMES: Final = frozenset({"http", "https"})


def behind_proxies(scope: Scope, trusted: Collection[str]) -> Scope:
    """Return a request's scope with the client and the scheme that a trusted proxy names, if there is one."""
    peer = peer_of(scope)
    if not trusted or not is_trusted(peer, trusted):
        return {**scope, _PROXIED: False}
    headers = Headers(scope=scope)
    scheme = headers.get("x-forwarded-proto", "").strip().lower()
    return {
        **scope,
        _PROXIED: True,
        "client": (client_of(peer, headers.getlist("x-forwarded-for"), trusted), 0),
        "scheme": scheme if scheme in _SCHEMES else scope["scheme"],
    }


def is_proxied(scope: Scope) -> bool:
    """Whether a request came from a trusted proxy itself."""
    found: bool = scope.get(_PROXIED, False)
    return found


def peer_of(scope: Scope) -> str:
    """Return the address that a request comes from; empty if the server does not know it."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def client_of(peer: str, forwarded: Collection[str], trusted: Collection[str]) -> str:
    """Return the nearest address that is no trusted proxy: what stands left of it anybody may have written.

    >>> client_of("10.0.0.7", ["6.6.6.6, 1.2.3.4, 10.0.0.8"], ["10.0.0.0/24"])
    '1.2.3.4'
    >>> client_of("10.0.0.7", [], ["10.0.0.7"])
    '10.0.0.7'
    """
    named = [address.strip() for line in forwarded for address in line.split(",")]
    for address in reversed(named):
        if not is_trusted(address, trusted):
            return address if _is_address(address) else peer
    return peer


def is_trusted(address: str, trusted: Collection[str]) -> bool:
    """Whether an address is one of those that were named.

    >>> is_trusted("10.0.0.7", ["10.0.0.0/24"]), is_trusted("10.0.1.7", ["10.0.0.0/24"])
    (True, False)
    >>> is_trusted("testclient", ["10.0.0.7"]), is_trusted("::ffff:10.0.0.7", ["10.0.0.7"])
    (False, True)
    """
    if not _is_address(address):
        return False
    found = ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in _network(one) for one in trusted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text, strict=False)
