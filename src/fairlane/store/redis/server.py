"""Check a server before its first job: refuse one that would evict jobs, warn of other risks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from logging import getLogger
from typing import Any, Final, TypeAlias

from fairlane.model.errors import StoreError
from fairlane.store.redis.diagnosis import REFUSED, remarks

Ask: TypeAlias = Callable[..., Awaitable[Any]]

_log: Final = getLogger("fairlane.store")
_SETTINGS: Final = (
    "redis_version",
    "valkey_version",
    "redis_mode",
    "role",
    "used_memory",
    "connected_clients",
    "total_system_memory",
    "maxmemory",
    "maxmemory_policy",
    "aof_enabled",
    "aof_last_write_status",
    "rdb_last_bgsave_status",
    "connected_slaves",
    "cluster_enabled",
)
_CONFIGURED: Final = ("appendfsync", "save")
_warned: Final[set[tuple[str, str]]] = set()
"""Warnings of this process: each event loop has its own store, and one warning is enough."""


async def read_settings(ask: Ask, replicas: int) -> dict[str, str]:
    """Return the settings that a server shows, and how many replicas an enqueue waits for."""
    known = _lines(await ask("INFO"))
    settings: dict[str, str] = {name: known[name] for name in _SETTINGS if name in known}
    for name in _CONFIGURED:
        with suppress(StoreError):  # a hosted server may not show its configuration
            found = await ask("CONFIG", "GET", name)
            settings[name] = _text(found[name.encode()])
    if settings.get("cluster_enabled") == "1":
        with suppress(StoreError):
            settings["cluster_state"] = _lines(await ask("CLUSTER", "INFO")).get("cluster_state", "")
    if replicas:
        settings["replicas_awaited"] = str(replicas)
    return settings


async def read_info(ask: Ask, section: str) -> dict[str, str]:
    """Return what a server says of one part of itself."""
    return _lines(await ask("INFO", section))


async def check_server(ask: Ask, place: str, replicas: int) -> None:
    """Raise for a server on which jobs are not safe; log everything else that is wrong once."""
    try:
        settings = await read_settings(ask, replicas)
    except StoreError as error:
        if error.retry_safe:
            raise
        return  # this user may not read its settings
    for one in remarks(settings):
        if one.level == "bad" and one.check in REFUSED:
            message = f"{place}: {one.what} {one.advice}"
            raise StoreError(message)
        if one.level != "ok" and (place, one.what) not in _warned:
            _warned.add((place, one.what))
            _log.warning("%s: %s %s", place, one.what, one.advice)


def _lines(info: Any) -> dict[str, str]:
    pairs = (line.partition(":") for line in _text(info).splitlines())
    return {name: value for name, colon, value in pairs if colon}


def _text(answer: Any) -> str:
    return answer.decode() if isinstance(answer, bytes) else str(answer)
