"""What doctor hears of a server: version, role, eviction, durability."""

from __future__ import annotations

import pytest
from redis import Redis

from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.redis.diagnosis import remarks
from tests.contract.world import ALL, World

GOOD = {
    "redis_version": "7.2.4",
    "valkey_version": "9.1.2",
    "role": "master",
    "maxmemory": "0",
    "used_memory": "1000000",
    "total_system_memory": "1000000000",
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
    "appendfsync": "always",
}


def judged(**changes: str) -> dict[str, str]:
    """Return the level of each check, with some settings changed."""
    return {one.check: one.level for one in remarks({**GOOD, **changes})}


@pytest.mark.parametrize(
    ("changes", "check", "level"),
    [
        ({}, "server", "ok"),
        ({"redis_version": "6.2.14"}, "server", "bad"),
        ({"redis_version": "10.0.1"}, "server", "ok"),
        ({"role": "slave"}, "role", "bad"),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": "100000000"}, "eviction", "bad"),
        ({"maxmemory_policy": "allkeys-lru"}, "eviction", "warn"),
        ({"maxmemory_policy": "volatile-ttl", "maxmemory": "100000000"}, "eviction", "warn"),
        ({}, "durability", "ok"),
        ({"appendfsync": "everysec"}, "durability", "ok"),
        ({"appendfsync": "no"}, "durability", "warn"),
        ({"aof_enabled": "0"}, "durability", "warn"),
        ({"aof_last_write_status": "err"}, "disk", "bad"),
        ({"rdb_last_bgsave_status": "err"}, "disk", "bad"),
        ({}, "memory", "ok"),
        ({"used_memory": "91000000", "maxmemory": "100000000"}, "memory", "warn"),
        ({"used_memory": "950000000"}, "memory", "warn"),
        ({"cluster_state": "ok"}, "cluster", "ok"),
        ({"cluster_state": "fail"}, "cluster", "bad"),
        ({"connected_slaves": "1"}, "replicas", "ok"),
        ({"connected_slaves": "1", "replicas_awaited": "1"}, "replicas", "ok"),
        ({"connected_slaves": "1", "replicas_awaited": "2"}, "replicas", "bad"),
    ],
    ids=str,
)
def test_each_setting_is_judged(changes: dict[str, str], check: str, level: str) -> None:
    """Settings that may lose jobs are reported, with how bad they are."""
    assert judged(**changes)[check] == level


def test_without_snapshots_nothing_at_all_is_kept() -> None:
    """What could be lost is reported in plain words."""
    for save, words in (("3600 1", "since the last snapshot"), ("", "it writes nothing to a disk")):
        (one,) = [one for one in remarks({"aof_enabled": "0", "save": save}) if one.check == "durability"]
        assert words in one.what


def test_of_what_a_server_does_not_tell_nothing_is_said() -> None:
    """A hosted server may hide its configuration."""
    assert remarks({}) == ()


async def test_a_real_server_is_asked(world: World, client: Redis) -> None:
    """By INFO, and by CONFIG where that is allowed."""
    client.config_set("maxmemory-policy", "allkeys-lru")
    found = await world.store.upkeep.inspect(InspectRequest(scope=ALL))
    assert {one.check: one.level for one in found.remarks} == {
        "server": "ok",
        "eviction": "warn",
        "memory": "ok",
        "durability": "ok",
    }
    assert found.settings["appendfsync"] == "always"
