"""Count what a Redis server loses: acknowledged jobs, by an outside ledger, for each way that it can end.

``python -m tests.servers.redis_losses`` measures, prints the table and writes docs/proofs/redis-losses;
with ``--render`` it writes the page of what was measured before.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

import msgspec
from redis import Redis

from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.opening import open_store
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.servers.losses_page import PAGE, Loss, Losses
from tests.servers.power import PoweredServer
from tests.servers.proxy import proxied
from tests.servers.valkey import MEMORY, ValkeyServer, free_port

LINK: Final = 0.05
"""How many seconds a write takes to the replica, as if it were in another town."""
_PATIENCE: Final = 60
FSYNC: Final = ("always", "everysec", "no")


class Ledger(msgspec.Struct):
    """What was acknowledged, recorded outside the store."""

    enqueued: set[UUID] = msgspec.field(default_factory=set[UUID])
    settled: set[UUID] = msgspec.field(default_factory=set[UUID])
    claims: dict[UUID, Claim] = msgspec.field(default_factory=dict[UUID, Claim])


def _world(url: str) -> World:
    return World(open_store(url), DrivenClock())  # the clock names jobs only; the store has the server's


# ── load, and the look afterwards ────────────────────────────────────────────


async def load(url: str, seconds: float, end: Callable[[], object]) -> Ledger:
    """Enqueue, claim and settle from several sides for a while; then end the server under them."""
    world, ledger = _world(url), Ledger()
    until = time.monotonic() + seconds
    is_ended = False

    async def produce() -> None:
        nonlocal is_ended
        while not is_ended:
            new = world.new(f"t{len(ledger.enqueued) % 5}")
            await world.store.jobs.enqueue(EnqueueRequest(scope=ALL, jobs=(new,)))
            ledger.enqueued.add(new.id)
            if time.monotonic() > until and not is_ended:
                is_ended = True
                end()

    async def work(worker: str) -> None:
        while not is_ended:
            for claim in await world.claim(3, worker=worker, lease=SECOND):
                ledger.claims[claim.job.id] = claim
                if len(ledger.claims) % 3:
                    await world.settle(claim, worker=worker)
                    ledger.settled.add(claim.job.id)

    await asyncio.gather(*map(_until_cut, (produce(), produce(), produce(), work("w1"), work("w2"))))
    await world.store.upkeep.aclose()
    return ledger


async def _until_cut(one: Coroutine[Any, Any, None]) -> None:
    with suppress(StoreError):
        await one


async def audit(url: str, ledger: Ledger, ends: str, setting: str) -> Loss:
    """Compare what the server has with what was acknowledged, and try every old fence (S36)."""
    world = _world(url)
    there = {job.id: job for job in await world.find_all()}
    held = {
        one: claim
        for one, claim in ledger.claims.items()
        if one in there and not is_finished(there[one].state)
    }
    loss = Loss(
        ends=ends,
        setting=setting,
        enqueued=len(ledger.enqueued),
        lost=len(ledger.enqueued - there.keys()),
        settled=len(ledger.settled),
        forgotten=len(ledger.settled & held.keys()),
        fences=len(held),
        fences_broken=await _broken(world, held),
    )
    await world.check_invariants()
    await world.store.upkeep.aclose()
    return loss


async def _broken(world: World, held: dict[UUID, Claim]) -> int:
    """Count the old claims of unfinished jobs that still open something, or that no newer one outranks."""
    until = time.monotonic() + _PATIENCE
    while any(job.state is State.RUNNING for job in await world.find_all()):
        assert time.monotonic() < until, "leases do not end"
        await world.reclaim()
        await asyncio.sleep(0.1)
    for one in held:
        await world.run_now(one)
    late = [world.verdict(claim) for claim in held.values()]
    stale = [one for verdict in late for one in (await world.settle_reply(verdict)).stale]
    claims = {claim.job.id: claim for claim in await world.claim(10 * len(held) + 1_000)}
    lower = [one for one, claim in held.items() if one in claims and claims[one].fence <= claim.fence]
    return len(held) - len(stale) + len(lower)


# ── the ways to end ──────────────────────────────────────────────────────────


async def killed(setting: str, seconds: float) -> Loss:
    """Kill the process alone: what it had written is the system's by then."""
    how = (
        ("--appendonly", "no")
        if setting == "appendonly no"
        else ("--appendonly", "yes", "--appendfsync", setting)
    )
    server = ValkeyServer(*how)
    try:
        server.start()
        ledger = await load(server.url, seconds, server.kill)
        server.start()
        return await audit(server.url, ledger, "killed", setting)
    finally:
        server.remove()


async def without_power(setting: str, seconds: float) -> Loss:
    """Cut the power: what it had not synced is gone."""
    server = PoweredServer("--appendfsync", setting)
    try:
        server.start()
        ledger = await load(server.url, seconds, server.kill)
        server.cut_power()
        server.start()
        return await audit(server.url, ledger, "power cut", setting)
    finally:
        server.remove()


async def failed_over(replicas: int, seconds: float) -> Loss:
    """Kill the primary and promote its replica, which is LINK seconds away."""
    primary, replica = (
        ValkeyServer("--appendonly", "yes", folder=MEMORY, port=free_port()) for _ in range(2)
    )
    try:
        primary.start()
        replica.start()
        async with proxied(primary.port) as link:
            with Redis.from_url(replica.url) as client:
                client.replicaof("127.0.0.1", str(link.port))
                await _linked(client)
                link.delay = LINK
                ledger = await load(f"{primary.url}?replicas={replicas}", seconds, primary.kill)
                client.replicaof("NO", "ONE")
                await asyncio.sleep(LINK)  # asyncio loses a connection that it accepts as it stops to listen
        setting = f"?replicas={replicas}" if replicas else "no WAIT"
        return await audit(replica.url, ledger, "failover", setting)
    finally:
        primary.remove()
        replica.remove()


async def _linked(client: Redis) -> None:
    until = time.monotonic() + _PATIENCE
    while client.info("replication")["master_link_status"] != "up":
        assert time.monotonic() < until, "the replica does not follow"
        await asyncio.sleep(0.05)


async def measure(seconds: float) -> Losses:
    """Try every way once."""
    rows = [await killed(setting, seconds) for setting in (*FSYNC, "appendonly no")]
    rows += [await without_power(setting, seconds) for setting in FSYNC]
    rows += [await failed_over(replicas, seconds) for replicas in (0, 1)]
    return Losses(server=_server(), seconds=seconds, link=LINK, rows=rows)


def _server() -> str:
    server = ValkeyServer()
    server.start()
    try:
        return server.version()
    finally:
        server.remove()


if __name__ == "__main__":
    if "--render" not in sys.argv:
        PAGE.keep(asyncio.run(measure(3.5)))
    PAGE.write()
    sys.stdout.write(PAGE.render())
