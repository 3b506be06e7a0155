"""Judge the settings of a server: what it may lose, evict or refuse. Pure: asks no server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlane.store.contract.inspection import Remark

OLDEST: Final = (7, 0)
"""The first version of Redis that can run the scripts; Valkey calls itself 7.2 to Redis clients."""

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


REFUSED: Final = frozenset({"server", "eviction"})
"""Checks that must not be bad: else the server gets no job and no worker."""

_FULL: Final = 0.9


def remarks(settings: Mapping[str, str]) -> tuple[Remark, ...]:
    """Return what is right and wrong with the settings; nothing about settings that are not shown."""
    return (
        *_version(settings),
        *_role(settings),
        *_cluster(settings),
        *_eviction(settings),
        *_memory(settings),
        *_durability(settings),
        *_disk(settings),
        *_replicas(settings),
    )


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


def _cluster(settings: Mapping[str, str]) -> Iterator[Remark]:
    state = settings.get("cluster_state")
    if state == "ok":
        yield Remark("cluster", "ok", "this installation lives on one shard of it")
    elif state is not None:
        what = "the cluster is not whole and refuses every call."
        yield Remark(
            "cluster", "bad", what, "See CLUSTER INFO: a shard has no primary, or slots have no home."
        )


def _eviction(settings: Mapping[str, str]) -> Iterator[Remark]:
    policy = settings.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return
    is_bounded = settings.get("maxmemory", "0") != "0"
    takes_all = policy.startswith("allkeys")
    lost = "all jobs, at once" if takes_all else "what has a time to live: a batch on its way in"
    yield Remark(
        "eviction",
        "bad" if is_bounded and takes_all else "warn",
        f"maxmemory-policy is {policy}: a full server may throw away {lost}.",
        "Set maxmemory-policy noeviction; a full server then refuses new jobs.",
    )


def _memory(settings: Mapping[str, str]) -> Iterator[Remark]:
    if "used_memory" not in settings:
        return
    used, limit = int(settings["used_memory"]), int(settings.get("maxmemory", "0"))
    whole = limit or int(settings.get("total_system_memory", "0"))
    bound = "maxmemory" if limit else "the machine's memory; there is no maxmemory"
    if not whole or used < _FULL * whole:
        yield Remark("memory", "ok", f"there is room in {_megabytes(whole)}, {bound}")
    else:
        what = f"{_megabytes(used)} of {_megabytes(whole)} are used, {bound}"
        happens = "soon new jobs are refused" if limit else "the system may end the server"
        advice = "Raise maxmemory, or keep finished jobs for a shorter time."
        yield Remark("memory", "warn", f"{what}: {happens}.", advice)


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"


def _durability(settings: Mapping[str, str]) -> Iterator[Remark]:
    if settings.get("aof_enabled") == "0":
        has_snapshots = settings.get("save") != ""
        since = "since the last snapshot" if has_snapshots else "there is: it writes nothing to a disk"
        yield Remark(
            "durability",
            "warn",
            f"appendonly is off: a crash or restart loses everything {since}.",
            "Set appendonly yes.",
        )
    elif "appendfsync" in settings and settings["appendfsync"] in _LOSSES:
        yield _LOSSES[settings["appendfsync"]]


def _disk(settings: Mapping[str, str]) -> Iterator[Remark]:
    for name, file in (("aof_last_write_status", "append-only file"), ("rdb_last_bgsave_status", "snapshot")):
        if settings.get(name, "ok") != "ok":
            what = f"the server could not write its last {file}, and may refuse every change."
            yield Remark("disk", "bad", what, "See its log; the disk may be full.")


def _replicas(settings: Mapping[str, str]) -> Iterator[Remark]:
    there, awaited = (int(settings.get(name, "0")) for name in ("connected_slaves", "replicas_awaited"))
    if there < awaited:
        what = f"the URL lets an enqueue wait for {awaited} replicas, and there are {there}."
        advice = "Attach replicas; until then every enqueue stores its job and raises EnqueueUnknown."
        yield Remark("replicas", "bad", what, advice)
    elif there and not awaited:
        what = (
            "a failover may lose the last acknowledged jobs; ?replicas=1 lets an enqueue wait for a replica"
        )
        yield Remark("replicas", "ok", what)
    elif there:
        yield Remark("replicas", "ok", f"an enqueue waits for {awaited} of {there}")
