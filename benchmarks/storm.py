"""Measure a storm of failures: many jobs of one tenant fail with one cause, beside others' jobs (S26, S76).

Twice the same work: first the jobs succeed, then each fails, is retried and dies. Small tenants enqueue a job
now and then; how soon it is claimed is compared between the two.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from benchmarks.measured_store import MeasuredStore, quantiles
from fairlane.app.settings import settings_of
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.lab.bench.driver import ALL, SUCCEEDED
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.journal.kinds import EventKind
from fairlane.model.policy.declared import Queue
from fairlane.model.retry.backoff import Backoff
from fairlane.model.retry.decision import AttemptResult, Failed, decide_settlement
from fairlane.runtime.loops import repeat
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.contract.journal import EntriesRequest

CLAIMERS: Final = 2
CLAIMED: Final = 50
PROBE_EVERY: Final = 0.05
"""Seconds between two jobs of small tenants."""

SMALL: Final = 10
"""How many small tenants there are."""

ATTEMPTS: Final = 2
"""The first one fails, and so does its only retry."""

POLICIES: Final = {
    "30 s, jitter 0.25": (Backoff.exponential(30, jitter=0.25), 1),
    "the default, fourth failure": (Backoff.exponential(2, cap=300, jitter=0.2), 4),
    "the default, at its cap": (Backoff.exponential(2, cap=300, jitter=0.2), 12),
}
"""Policies and numbers of failures, for jobs that all fail at the same instant."""

FAILED: Final = Failed(Failure(ErrorClass.RETRYABLE, "ConnectionError", "mail.example.org refused"))


class _Run:
    """One time through all jobs."""

    def __init__(self, bench: MeasuredStore, jobs: int, ending: AttemptResult) -> None:
        self._bench = bench
        self._ending = ending
        self._left = jobs
        self._policy = Queue("default").retry
        self._random = random.Random(7)
        self.claims: list[float] = []
        self.waits: list[float] = []
        self.retries: list[float] = []
        self.deaths = 0

    async def go(self, tell: Coroutine[Any, Any, None]) -> float:
        """Claim and settle until the noisy tenant's jobs are over; return the seconds it took."""
        before = time.perf_counter()
        beside = [asyncio.ensure_future(work) for work in (self._probe(), tell)]
        await asyncio.gather(*(self._claim() for _ in range(CLAIMERS)))
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        return time.perf_counter() - before

    async def _probe(self) -> None:
        number = 0
        while True:
            number += 1
            await self._bench.enqueue(self._bench.new(f"small{number % SMALL}"))
            await asyncio.sleep(PROBE_EVERY)

    async def _claim(self) -> None:
        while self._left:
            before = time.perf_counter()
            claims = await self._bench.claim(CLAIMED)
            self.claims.append(time.perf_counter() - before)
            if claims:
                await self._settle(claims)
            else:
                await asyncio.sleep(PROBE_EVERY)

    async def _settle(self, claims: tuple[Claim, ...]) -> None:
        noisy = [claim for claim in claims if claim.job.tenant == "noisy"]
        small = [claim for claim in claims if claim.job.tenant != "noisy"]
        self.waits += [((one.job.started_at or 0) - one.job.enqueued_at) / SECOND for one in small]
        endings = [*((one, self._ending) for one in noisy), *((one, SUCCEEDED) for one in small)]
        settlements = [
            decide_settlement(claim, ending, self._policy, draw=self._random.random())
            for claim, ending in endings
        ]
        request = SettleRequest(scope=ALL, worker="bench", settlements=tuple(settlements))
        reply = await self._bench.store.claims.settle(request)
        now = time.time()
        delays = {one.id: one.delay for one in settlements}
        ended = {one.id: one.state.value for one in reply.settled}
        for claim in noisy:
            if ended[claim.job.id] == "delayed":
                self.retries.append(now + delays[claim.job.id] / SECOND)
            else:
                self._left -= 1
                self.deaths += ended[claim.job.id] == "dead"


def per_second(instants: list[float]) -> dict[str, float]:
    """Count by whole second, the first and the last one left out: they are not whole.

    >>> per_second([0.5, 1.1, 1.2, 2.9, 3.1])
    {'mean': 1.5, 'most': 2, 'most_by_mean': 1.3333333333333333}
    """
    counts = Counter(math.floor(at) for at in instants)
    first, last = min(counts), max(counts)
    whole = [counts[second] for second in range(first + 1, last)] or [max(counts.values())]
    mean = sum(whole) / len(whole)
    return {"mean": mean, "most": max(whole), "most_by_mean": max(whole) / mean}


def at_one_instant(jobs: int) -> dict[str, dict[str, float]]:
    """Return how the retries of so many jobs spread that all fail at the same instant, by policy."""
    draws = random.Random(7)
    return {
        name: per_second([policy.micros(failures, draws.random()) / SECOND for _ in range(jobs)])
        for name, (policy, failures) in POLICIES.items()
    }


async def measure(place: str, jobs: int, number: int = 0) -> dict[str, Any]:
    """Run the jobs that succeed, then those that fail."""
    found: dict[str, Any] = {"jobs": jobs, "at_one_instant": at_one_instant(jobs)}
    for name, ending in (("calm", SUCCEEDED), ("storm", FAILED)):
        bench = MeasuredStore(place, f"{name}{number}")
        await bench.store.upkeep.migrate()
        for start in range(0, jobs, 1_000):
            batch = range(start, min(start + 1_000, jobs))
            await bench.enqueue(*(bench.new("noisy", max_attempts=ATTEMPTS) for _ in batch))
        tell = TellEvents(settings_of())

        run = _Run(bench, jobs, ending)
        took = await run.go(repeat(partial(tell, bench.store)))
        found[name] = {
            "seconds": took,
            "claim": quantiles(run.claims),
            "small_tenants_wait": quantiles(run.waits),
            "deaths": run.deaths,
        }
        if run.retries:
            found[name]["retries"] = per_second(run.retries)
            found[name]["told"] = await _told(bench, tell, run.deaths)
        await bench.store.upkeep.aclose()
    return found


async def _told(bench: MeasuredStore, tell: TellEvents, deaths: int) -> dict[str, int]:
    """Let every fold end; return how many events have told how many deaths."""
    kinds = frozenset({EventKind.DEAD_LETTER.value})
    while True:
        await asyncio.sleep(await tell(bench.store) / SECOND)
        request = EntriesRequest(scope=ALL, journal="events", kinds=kinds, limit=1_000)
        entries = (await bench.store.journal.entries(request)).entries
        told = sum(one.entry.count for one in entries)
        if told >= deaths:
            return {"events": len(entries), "deaths": told}
