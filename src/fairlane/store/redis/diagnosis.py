"""Judge a server by what it says of itself: what it may lose, throw away or refuse. Pure: asks nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlane.store.contract.inspection import Remark

OLDEST: Final = (7, 0)
"""The first version of Redis with all that scripts use here; Valkey calls itself 7.2 to Redis clients."""

_LOSSES: Final = {
    "always": Remark("durability", "ok", "an acknowledged job survives a crash (appendfsync always)"),
    "everysec": Remark(
        "durability",
        "ok",
        "a crash of the machine may lose about the last second (appendfsync everysec)",
    ),
    "no": Remark(
        "durability",
        "warn",
        "appendfsync is no: a crash of the machine may lose what the system had not written yet.",
        "Set appendfsync everysec, or always if no acknowledged job may be lost.",
    ),
}


def remarks(settings: Mapping[str, str]) -> tuple[Remark, ...]:
    """Say what is right and wrong with a server's settings; of what it does not tell, nothing."""
    return (*_version(settings), *_role(settings), *_eviction(settings), *_durability(settings))


def _version(settings: Mapping[str, str]) -> Iterator[Remark]:
    version = settings.get("redis_version", "")
    name = f"Valkey {settings['valkey_version']}" if "valkey_version" in settings else f"Redis {version}"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers and numbers < OLDEST:
        yield Remark("server", "bad", f"{name} is too old.", "Use Redis 7.0 or Valkey 8, or newer.")
    elif numbers:
        yield Remark("server", "ok", name)


def _role(settings: Mapping[str, str]) -> Iterator[Remark]:
    if settings.get("role", "master") != "master":
        yield Remark(
            "role",
            "bad",
            "the server is a replica, which refuses every change.",
            "Let the URL name the primary.",
        )


def _eviction(settings: Mapping[str, str]) -> Iterator[Remark]:
    policy = settings.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return
    is_bounded = settings.get("maxmemory", "0") != "0"
    yield Remark(
        "eviction",
        "bad" if is_bounded else "warn",
        f"maxmemory-policy is {policy}: a full server throws jobs away.",
        "Set maxmemory-policy noeviction; a full server then refuses new jobs.",
    )


def _durability(settings: Mapping[str, str]) -> Iterator[Remark]:
    if settings.get("aof_enabled") == "0":
        yield Remark(
            "durability",
            "warn",
            "appendonly is off: a crash loses everything since the last snapshot.",
            "Set appendonly yes.",
        )
    elif "appendfsync" in settings and settings["appendfsync"] in _LOSSES:
        yield _LOSSES[settings["appendfsync"]]
