"""List the keys of an installation with entries, bytes and expiry, for people who look into it."""

from __future__ import annotations

from typing import Final

from fairlane.model.instants import SECOND
from fairlane.store.contract.inspection import StoredPart
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.keys import NAMES

_STEP: Final = 1_000
"""Keys of the server that one step looks at."""

_MAX_STEPS: Final = 10
_PER_SCRIPT: Final = 100
"""Keys that one script measures: other clients wait meanwhile."""

_LONG: Final = {short: name for name, short in NAMES.items()}


async def read_parts(client: RedisClient) -> tuple[list[StoredPart], bool]:
    """Return keys of the installation, and whether these are all.

    A bounded number of the server's keys is looked at, whosever they are, in steps that hold nobody up.
    """
    found: set[str] = set()
    cursor, base = b"0", client.keys.base
    for _ in range(_MAX_STEPS):
        cursor, keys = await client.ask("SCAN", cursor, "MATCH", _literal(base) + "*", "COUNT", _STEP)
        found.update(key.decode()[len(base) :] for key in keys)
        if cursor == b"0":
            break
    names = sorted(found)
    parts: list[StoredPart] = []
    for begin in range(0, len(names), _PER_SCRIPT):
        some = names[begin : begin + _PER_SCRIPT]
        reply = await client.run("upkeep/key_sizes", *some)
        for position, kind, entries, size, ttl in zip(*(reply[index::5] for index in range(5)), strict=True):
            parts.append(_part(some[position - 1], kind.decode(), entries, size, ttl))
    return parts, cursor == b"0"


def _part(key: str, kind: str, entries: int, size: int, ttl: int) -> StoredPart:
    expires_in = None if ttl < 0 else ttl * SECOND // 1_000
    return StoredPart(name=key_name(key), kind=kind, entries=entries, size=size, expires_in=expires_in)


def key_name(key: str) -> str:
    """Return the name of a key as the code spells it, with what callers chose behind it.

    >>> key_name("h"), key_name("s:mail" + chr(0) + "acme"), key_name("later")
    ('heads', 'strand mail acme', 'later')
    """
    if key in _LONG:
        return _LONG[key]
    head, colon, rest = key.partition(":")
    name = _LONG.get(head + colon)
    return key if name is None else f"{name} {rest}".replace("\0", " ").strip()


def _literal(text: str) -> str:
    """Return a pattern that matches only this text."""
    return "".join(f"\\{one}" if one in "*?[]^\\" else one for one in text)
