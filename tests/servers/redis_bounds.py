"""Measure how long each script holds a Redis server that is full: no run may take more than 5 ms.

``python -m tests.servers.redis_bounds [--tenants N --jobs N]`` fills a private server, asks every verb for as
much as it may, prints the table, and exits with 1 if any script took longer. With ``--keep`` it writes
docs/proofs/redis-bounds; with ``--render`` it writes the page of what was measured before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

from redis import Redis

from fairlane.model.journal.entries import NewEntry
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, QueueRules, SubjectKind, TaskRules
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import PassRequest
from fairlane.store.contract.dead import DeadRequest, DeadTallyRequest
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.jobs import CountRequest, FindRequest, GetRequest
from fairlane.store.contract.journal import MAX_ENTRIES, TrimRequest
from fairlane.store.contract.policies import ListRequest
from fairlane.store.contract.upkeep import CensusRequest, ForgetRequest
from fairlane.store.opening import open_store
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.script_loader import load
from tests.contract.world import ALL, SUCCEEDED, UNSTARTED, World, ruined
from tests.oracle.clock import DrivenClock
from tests.redis.rendering import VERBS
from tests.servers.bounds_page import MOST, PAGE, Bound, Bounds, page
from tests.servers.one_by_one import OneByOne
from tests.servers.valkey import HASTY, MEMORY, ValkeyServer

ROUNDS: Final = 5
BATCH: Final = 1_000
_DAY: Final = 86_400


class Meter(OneByOne):
    """How much of the processor the server took for each run of each script."""

    def __init__(self, store_client: RedisClient, pid: int) -> None:
        """Stand between the store and its client."""
        super().__init__(store_client)
        self.runs: list[tuple[str, str, list[float]]] = []
        """What was asked, the script, and what each of its runs took for that, in milliseconds."""
        self._now: dict[str, list[float]] = {}
        self._stat = Path(f"/proc/{pid}/schedstat")
        self._ask = store_client.ask
        store_client.ask = self.ask  # type: ignore[method-assign]

    async def watch(self, verb: str, ask: Callable[[], Awaitable[object]]) -> None:
        """Ask something."""
        self._now = defaultdict(list)
        await ask()
        self.runs += ((verb, script, spent) for script, spent in self._now.items())

    async def run(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Run a script."""
        return await self._metered(name, super().run(name, *arguments, **options))

    async def ask(self, *command: Any) -> Any:
        """Send a command."""
        return await self._metered(command[0], self._ask(*command))

    async def _metered(self, name: str, call: Awaitable[Any]) -> Any:
        before = self._spent()
        answer = await call
        self._now[name].append(self._spent() - before)
        return answer

    def _spent(self) -> float:
        """Return the milliseconds that the server's main thread has had."""
        return int(self._stat.read_text().split()[0]) / 1e6


class Trial:
    """A full store, and every verb that it must answer."""

    def __init__(self, world: World, tenants: int) -> None:
        """Know how many tenants there are."""
        self._world = world
        self._store = world.store
        self._tenants = tenants
        self._batches = 0

    def _tenant(self, number: int) -> str:
        return f"tenant{number % self._tenants}"

    def _names(self, number: int) -> Iterable[str]:
        self._batches += 1
        return (self._tenant(self._batches * number + i) for i in range(number))

    async def fill(self, jobs: int) -> None:
        """Bring in jobs of all tenants in turn."""
        for _ in range(0, jobs, BATCH):
            await self._send(self._names(BATCH))

    async def _send(self, tenants: Iterable[str], **values: Any) -> list[Any]:
        reply = await self._world.send(*(self._world.new(tenant, **values) for tenant in tenants))
        assert not reply.refused
        return [one.job.id for one in reply.enqueued]

    def verbs(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """Name what is asked, in this order."""
        return {
            "enqueue 1": lambda: self._world.enqueue(self._tenant(1)),
            "enqueue 1,000 of 1,000 tenants": lambda: self._send(self._names(BATCH)),
            "enqueue 1,000 of one": lambda: self._send(["tenant1"] * BATCH),
            "enqueue 1,000 with keys": self._enqueue_keyed,
            "enqueue 1,000 of 10 kB": lambda: self._send(self._names(BATCH), payload=b"x" * 10_000),
            "enqueue 1,000 refused at the end": self._refuse,
            "claim, settle, renew": self._work,
            "claim ahead, hand back": self._claim_ahead,
            "reclaim 1,000": self._reclaim,
            "promote 1,000": self._promote,
            "expire 1,000": self._expire,
            "cancel, condemn, edit, run now": self._stop,
            "get, find": self._find,
            "peek": self._peek,
            "count, census, inspect, policies": self._count,
            "pause, limit, lift": self._steer,
            "shut and open a gate": self._gate,
            "letters: find, tally": self._letters,
            "letters: review, run again, follow, delete": self._review,
            "number and trim 1,000 entries": self._number,
            "purge, forget": self._purge,
            "prune": self._prune,
        }

    async def _enqueue_keyed(self) -> None:
        jobs = [
            self._world.new(
                tenant,
                idempotency_key=f"key {self._batches} {i}",
                dedup_key=f"own {self._batches} {i}",
                correlation_id=f"of {self._batches} {i}",
                expires_in=_DAY * 1_000_000,
                delay=3_600_000_000,
            )
            for i, tenant in enumerate(self._names(BATCH))
        ]
        assert not (await self._world.send(*jobs)).refused

    async def _refuse(self) -> None:
        await self._world.close(SubjectKind.TENANT, "closed")
        jobs = [self._world.new(tenant) for tenant in (*self._names(BATCH - 1), "closed")]
        assert len((await self._world.send(*jobs)).refused) == 1

    async def _work(self) -> None:
        claims = await self._world.claim(100)
        for ending in (ruined(), None, None):
            await self._world.renew(*claims)
            verdicts = [self._world.verdict(one, *([ending] if ending else ())) for one in claims]
            reply = await self._world.settle_reply(*verdicts, claim=self._world.claim_request(100))
            assert reply.claimed is not None
            claims = list(reply.claimed.claims)
            assert len(claims) == 100

    async def _claim_ahead(self) -> None:
        claims = await self._world.claim(100, ahead=100)
        for ending in (UNSTARTED, SUCCEEDED):
            verdicts = [self._world.verdict(one, ending) for one in claims]
            request = self._world.claim_request(100, ahead=100)
            reply = await self._world.settle_reply(*verdicts, claim=request)
            assert reply.claimed is not None
            claims = list(reply.claimed.claims)
            assert len(claims) == 100

    async def _reclaim(self) -> None:
        for _ in range(10):
            await self._world.claim(100)
        self._world.advance(60)
        while (await self._world.reclaim(limit=1_000)).lost:
            pass

    async def _promote(self) -> None:
        await self._send(self._names(BATCH), delay=1_000_000)
        self._world.advance(60)
        while (await self._store.claims.promote(PassRequest(scope=ALL))).is_partial:
            pass

    async def _expire(self) -> None:
        await self._send(self._names(BATCH), expires_in=1_000_000)
        self._world.advance(60)
        while await self._world.expire():
            pass

    async def _stop(self) -> None:
        later = await self._send(self._names(300), delay=_DAY * 1_000_000)
        await self._world.run_now(*later[:100])
        await self._world.edit(later[0], priority=5)
        await self._world.cancel(*later[:200])
        await self._world.condemn(*later[200:])

    async def _find(self) -> None:
        for scope in (ALL, Scope("tenant1")):
            reply = await self._store.jobs.find(FindRequest(scope=scope, limit=100))
            await self._store.jobs.get(GetRequest(scope=scope, ids=tuple(job.id for job in reply.jobs)))
            for state in State:
                await self._store.jobs.find(FindRequest(scope=scope, limit=100, states=frozenset({state})))
        await self._store.jobs.find(FindRequest(scope=ALL, correlation_id="of 1 1"))
        await self._world.explain(reply.jobs[0].id)
        await self._world.letters(Scope("tenant1"))

    async def _peek(self) -> None:
        assert len(await self._world.peek(1_000)) == 1_000
        await self._world.peek(1_000, scope=Scope("tenant1"))

    async def _count(self) -> None:
        for scope in (ALL, Scope("tenant1")):
            await self._store.jobs.count(CountRequest(scope=scope))
            await self._store.upkeep.census(CensusRequest(scope=scope, limit=500))
        await self._store.upkeep.inspect(InspectRequest(scope=Scope("tenant1"), at_most=10))
        await self._store.policies.list(ListRequest(scope=ALL, kind=SubjectKind.QUEUE))

    async def _steer(self) -> None:
        await self._world.pause(SubjectKind.QUEUE, "default")
        await self._world.claim_reply(100)
        await self._world.resume(SubjectKind.QUEUE, "default")
        await self._world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(running=0)))
        for _ in range(5):
            await self._world.claim_reply(100)
        await self._world.declare(SubjectKind.QUEUE, "default", QueueRules())
        assert await self._world.claim(100)
        self._world.advance(60)
        await self._world.reclaim()

    async def _gate(self) -> None:
        await self._world.put_gate("door", "noop")
        await self._world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
        for _ in range(5):
            await self._world.claim_reply(100)
        await self._world.peek(1_000, scope=Scope("tenant1"))
        await self._world.declare(SubjectKind.GATE, "door", GateRules(limit=300))
        assert await self._world.claim(100)
        await self._world.declare(SubjectKind.TASK, "noop", TaskRules())
        self._world.advance(60)
        await self._world.reclaim()

    async def _letters(self) -> None:
        ids = await self._send(self._names(BATCH), delay=_DAY * 1_000_000)
        self._world.advance(1)
        since = self._world.now  # as many in each round
        await self._world.condemn(*ids)
        for scope in (ALL, Scope("tenant1")):
            await self._store.dead.tally(DeadTallyRequest(scope=scope, since=since))
            await self._store.dead.find(DeadRequest(scope=scope, limit=1_000, since=since))
            await self._store.dead.find(DeadRequest(scope=scope, fingerprint="0" * 16, since=since))

    async def _review(self) -> None:
        letters = (await self._store.dead.find(DeadRequest(scope=ALL, review="pending", limit=200))).letters
        dead = [letter.job for letter in letters]
        assert len(dead) == 200
        await self._world.review("resolve", *(job.id for job in dead[:100]))
        await self._world.reprocess(*map(self._world.again, dead[100:]))
        await self._world.follow()
        await self._world.delete(*(job.id for job in dead[:100]))

    async def _number(self) -> None:
        entries = [NewEntry(kind="tests", subject=str(number)) for number in range(MAX_ENTRIES)]
        await self._world.append("events", *entries)
        await self._world.number("events")
        end = (await self._world.pending("events", 0)).end
        trim = TrimRequest(
            scope=ALL, journal="events", revision=end.revision, up_to=end.last, memory=b"x" * 10_000
        )
        assert await self._store.journal.trim(trim)

    async def _purge(self) -> None:
        await self._world.purge(limit=500)
        tenant = f"gone{self._batches}"
        await self._send([tenant] * BATCH)
        await self._store.upkeep.forget(ForgetRequest(scope=Scope(tenant), reason="gone", who="ops"))

    async def _prune(self) -> None:
        self._world.advance(400 * _DAY)
        await self._world.prune(succeeded=0, results=0, keys=0)


async def measure(tenants: int, jobs: int) -> Bounds:
    """Fill a server, ask everything, sum up."""
    server = ValkeyServer(*HASTY, "--slowlog-log-slower-than", "-1", folder=MEMORY)
    server.start()
    try:
        pid = int((server.home / "pid").read_text())
        with Redis.from_url(server.url) as client:
            clock = DrivenClock()
            world = World(open_store(server.url, clock=clock), clock)
            trial = Trial(world, tenants)
            await trial.fill(jobs)
            client.config_set("slowlog-max-len", 100_000)
            for name in VERBS:
                client.script_load(load(name).text)
            client.config_set(
                "slowlog-log-slower-than", 1_000
            )  # what is shorter would cost more than it tells
            meter = Meter(world.store.jobs._client, pid)  # type: ignore[attr-defined]
            for _ in range(ROUNDS):
                for verb, ask in trial.verbs().items():
                    await meter.watch(verb, ask)
            slow = _slowest(client)
            version = server.version()
            await world.store.upkeep.aclose()
    finally:
        server.remove()
    return Bounds(
        server=version,
        tenants=tenants,
        jobs=jobs,
        rounds=ROUNDS,
        load=os.getloadavg()[0],
        cores=os.cpu_count() or 1,
        rows=sorted(
            (_bound(name, meter.runs, slow) for name in {script for _, script, _ in meter.runs}),
            key=lambda one: -one.longest,
        ),
    )


def _slowest(client: Redis) -> dict[str, float]:
    """Return the longest run of each script and command in milliseconds, as SLOWLOG tells it."""
    names = {load(name).sha.encode(): name for name in VERBS}
    found: dict[str, float] = defaultdict(float)
    for entry in client.slowlog_get(100_000):
        command, *rest = entry["command"].split(b" ", 2)
        name = names.get(rest[0], "") if command == b"EVALSHA" else command.decode()
        found[name] = max(found[name], entry["duration"] / 1e3)
    return found


def _bound(name: str, asked: list[tuple[str, str, list[float]]], slow: dict[str, float]) -> Bound:
    """Sum up the runs of a script. Of each run for a verb the shortest of all rounds counts."""
    least: dict[tuple[str, int], float] = {}
    for verb, script, runs in asked:
        for number, spent in enumerate(runs if script == name else ()):
            least[verb, number] = min(spent, least.get((verb, number), spent))
    longest, verb = max((spent, verb) for (verb, _), spent in least.items())
    median, by_clock = statistics.median(least.values()), slow.get(name, 0)
    return Bound(name, len(least), round(median, 3), round(longest, 3), round(by_clock, 3), verb)


def main() -> int:
    """Read the arguments; 1 if any script was too long."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers.redis_bounds", description=__doc__)
    parser.add_argument("--tenants", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--keep", action="store_true", help="write docs/proofs/redis-bounds")
    parser.add_argument("--render", action="store_true", help="write the page of what was measured before")
    given = parser.parse_args()
    if given.render:
        PAGE.write()
        return 0
    bounds = asyncio.run(measure(given.tenants, given.jobs))
    if given.keep:
        PAGE.keep(bounds)
    sys.stdout.write(page(bounds))
    return int(any(row.longest > MOST for row in bounds.rows))


if __name__ == "__main__":
    sys.exit(main())
