"""The scripts themselves: what they may say, how much they may do, how far their numbers reach."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest
from redis import Redis

from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import Event, State
from fairlane.model.policy.overrides import SubjectKind, TenantRules
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.script_loader import load
from tests.contract.world import World
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore
from tests.redis.rendering import SCRIPTS, VERBS


def lines() -> Iterator[tuple[str, str]]:
    """Return every line of code of every script and part, without its comment."""
    for path in SCRIPTS.rglob("*.lua"):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.name, line.partition("--")[0]


@pytest.mark.parametrize("verb", VERBS)
def test_a_server_takes_every_script(client: Redis, verb: str) -> None:
    """It compiles, and is known by the name that the store asks for."""
    assert client.script_load(load(verb).text) == load(verb).sha


def test_no_script_spells_a_state_or_an_event() -> None:
    """S23: they are rendered in from the model. `fail` is also a word of the rules of a budget."""
    others = {"'claim'", "'succeeded'", "'due'", "'fail'"}
    words = {f"'{word.value}'" for word in (*State, *Event)} - others
    assert [found for found in lines() for word in words if word in found[1]] == []


def test_no_script_reads_what_grows_without_bound() -> None:
    """Not by KEYS, not by SCAN, not a whole sorted set."""
    unbounded = re.compile(r"'(KEYS|H?S?Z?SCAN|SMEMBERS|HVALS|SORT)'|'Z(REV)?RANGE'[^)]*, 0, -1")
    assert [found for found in lines() if unbounded.search(found[1])] == []


async def test_claim_and_settle_make_about_ten_calls_a_job(world: World, client: Redis) -> None:
    """Ten tenants with three tasks each, 30 claimed at a time, settled with the next claim."""
    for number in range(120):
        await world.enqueue(f"t{number % 10}", task=f"task{number % 3}")
    await world.claim(1)  # so that the server has the scripts
    before = calls(client)
    claims = await world.claim(30)
    for claim in claims:
        assert await world.settle(claim) is State.SUCCEEDED
    per_job = (calls(client) - before) / 30
    assert per_job < 25  # one settlement a script is the dearest way there is


def calls(client: Redis) -> int:
    """Count the commands that the server has run, those of scripts included."""
    return sum(one["calls"] for one in client.info("commandstats").values())


@pytest.mark.parametrize("upper", [2**20, 2**25, 2**29])
async def test_clocks_stay_exact_far_beyond_what_a_lua_number_holds(world: World, upper: int) -> None:
    """S41: a queue whose floor is far beyond 2^53 serves in the same order as a new one."""
    store_client: RedisClient = world.store.jobs._client  # type: ignore[attr-defined]
    zero = 2**30
    await store_client.ask(
        "HSET",
        store_client.keys("queues"),
        "default",
        msgspec.msgpack.encode((zero + upper, 7, 0, 0, [], {})),
    )
    clock = DrivenClock()
    oracle = World(OracleStore(clock), clock)
    served = []
    for one in (world, oracle):
        for tenant, weight in (("acme", 1000.0), ("globex", 900.0), ("initech", 700.0)):
            await one.declare(SubjectKind.TENANT, tenant, TenantRules(weight=weight))
            await one.enqueue_many(40, tenant)
        order = []
        for most in (1, 7, 20, 3, 30):
            order += [claim.job.tenant for claim in await one.claim(most)]
        served.append(order)
    assert served[0] == served[1]


@pytest.mark.parametrize("jobs", [2, 3, 7])
async def test_a_strand_that_empties_in_one_script_leaves_nothing_behind(
    world: World, client: Redis, jobs: int
) -> None:
    """What expired or was purged together is in no set when the next jobs of its strand come."""
    for number in range(jobs):
        await world.enqueue(expires_in=(1 + number) * SECOND)
    world.clock.advance(60)
    assert await world.claim(1) == []
    assert list(client.scan_iter(match="*:s:*")) == []
    await world.enqueue_many(jobs)
    await world.purge()
    assert list(client.scan_iter(match="*:s:*")) == []
    await world.enqueue_many(jobs)
    assert len(await world.peek(jobs + 1)) == len(await world.claim(jobs + 1)) == jobs
