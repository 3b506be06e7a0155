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
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
    "appendfsync": "always",
}


def judged(**changes: str) -> dict[str, str]:
    """Give the level of each check, with some settings changed."""
    return {one.check: one.level for one in remarks({**GOOD, **changes})}


@pytest.mark.parametrize(
    ("changes", "check", "level"),
    [
        ({}, "server", "ok"),
        ({"redis_version": "6.2.14"}, "server", "bad"),
        ({"redis_version": "10.0.1"}, "server", "ok"),
        ({"role": "slave"}, "role", "bad"),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": "100000000"}, "eviction", "bad"),
        ({"maxmemory_policy": "volatile-ttl"}, "eviction", "warn"),
        ({}, "durability", "ok"),
        ({"appendfsync": "everysec"}, "durability", "ok"),
        ({"appendfsync": "no"}, "durability", "warn"),
        ({"aof_enabled": "0"}, "durability", "warn"),
    ],
    ids=str,
)
def test_each_setting_is_judged(changes: dict[str, str], check: str, level: str) -> None:
    """What may throw away or lose jobs is said, and how bad it is."""
    assert judged(**changes)[check] == level


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
        "durability": "ok",
    }
    assert found.settings["appendfsync"] == "always"
