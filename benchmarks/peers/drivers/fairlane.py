"""Fairlane itself, through its public face: an ordinary `fairlane worker` with everything on.

Knows nothing of any store: a URL whose scheme Fairlane cannot open is unsupported, in Fairlane's own words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from benchmarks.peers.protocol import Job, PeerDriver, in_batches, url, work, work_async
from fairlane import Fairlane, Lane, Queue
from fairlane.model.errors import ConfigError
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.opening import open_store

_BATCH: Final = 1_000
_SLOTS: Final = os.environ.get("PEER_SLOTS")
_QUEUES: Final = [f"q{number}" for number in range(int(os.environ.get("PEER_QUEUES", "1")))]
_IS_PLAIN: Final = os.environ.get("PEER_HANDLER") == "plain"
_DURABILITY: Final = ("journal_mode", "synchronous")
"""What a store that has them is to be told of; of servers the harness tells it."""

_lanes = [Lane("main", int(_SLOTS), _QUEUES)] if _SLOTS else []
app = Fairlane(url(), name="peers", config={}, queues=[Queue(name) for name in _QUEUES], lanes=_lanes)

if _IS_PLAIN:

    @app.task(name="job", queue="q0")
    def job(number: int, millis: int) -> None:
        """Leave a mark."""
        work(number, millis)

else:

    @app.task(name="job", queue="q0")
    async def job(number: int, millis: int) -> None:
        """Leave a mark."""
        await work_async(number, millis)


class Peer(PeerDriver):
    """As it comes, or with more slots; jobs go in by the thousand."""

    packages = ("fairlane",)
    _durable = ""

    def settings(self) -> str:
        """Say how many slots; nothing else differs from what a user gets."""
        slots = f"{_SLOTS} slots" if _SLOTS else "default settings"
        handler, queues = "plain" if _IS_PLAIN else "async", f", {len(_QUEUES)} queues" * (len(_QUEUES) > 1)
        return f"{slots}, {handler} handler{queues}, fair turns, fenced leases, history{self._durable}"

    def worker(self) -> Sequence[str]:
        """Be what a user starts."""
        return ["fairlane", "worker", "benchmarks.peers.drivers.fairlane:app"]

    async def prepare(self) -> str | None:
        """Migrate the store, if there is one for this URL."""
        try:
            store = open_store(url())
        except ConfigError as error:
            return str(error)
        await store.upkeep.migrate()
        found = (await store.upkeep.inspect(InspectRequest(scope=Scope.all(), at_most=0))).settings
        self._durable = "".join(f", {name}={found[name]}" for name in _DURABILITY if name in found)
        await store.upkeep.aclose()
        return None

    async def open(self) -> None:
        """Open the store, which would else be loaded, connected and looked at by the first enqueue."""
        await app.jobs.acount()

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue a thousand at a time, which is the most that one call takes, and two calls at once."""
        await in_batches(jobs, _BATCH, self._many, self._many)

    async def _many(self, jobs: Sequence[Job]) -> None:
        await app.aenqueue_many(
            job.using(tenant=one.tenant, queue=_queue(one)).bind(number=one.number, millis=one.millis)
            for one in jobs
        )

    async def one(self, job_: Job) -> None:
        """Enqueue one; it is durable when this returns."""
        call = job.using(tenant=job_.tenant, queue=_queue(job_))
        await call.aenqueue(number=job_.number, millis=job_.millis)

    async def finished(self) -> int | None:
        """Count the rows of history."""
        counts = await app.jobs.acount()
        return counts[State.SUCCEEDED]


def _queue(job: Job) -> str:
    return _QUEUES[job.number % len(_QUEUES)]
