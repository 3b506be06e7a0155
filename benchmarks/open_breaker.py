"""Measure an open breaker: what those behind it cost the others, and who passes then (S58, S110)."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.measured_store import MeasuredStore
from fairlane.lab.bench.driver import ALL, Driver
from fairlane.model.guards.breaker import phase
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.policy.overrides import BreakerRules, SubjectKind, TaskRules
from fairlane.model.retry.decision import HandedBack
from fairlane.store.contract.breakers import (
    BreakerKey,
    BreakersRequest,
    BreakerVerb,
    ChangeBreakerRequest,
)
from fairlane.store.contract.registry import StoreStatus
from fairlane.store.contract.request import Request

CLAIMANTS: Final = 16
CLAIMED: Final = 10
TENANTS: Final = 50
WAITING: Final = 500
"""Jobs behind the breaker that is tried."""

OPEN_FOR: Final = SECOND // 5
UNSTARTED: Final = HandedBack(is_unstarted=True)


async def guard(bench: Driver) -> None:
    """Declare a breaker, and a task behind it."""
    await bench.declare(SubjectKind.TASK, "send", TaskRules(breaker="mail"))
    await bench.declare(SubjectKind.BREAKER, "mail", BreakerRules())


async def operate(bench: Driver, verb: BreakerVerb, until: int | None = None) -> None:
    """Open or reset it, as an operator does."""
    request = ChangeBreakerRequest(
        scope=ALL, key=BreakerKey("mail"), verb=verb, until=until, who="bench", reason="bench"
    )
    await bench.store.breakers.change(request)


# ── what those behind it cost ────────────────────────────────────────────────


async def behind(place: str, jobs: int, claims: int, number: int = 0) -> dict[str, float]:
    """Time claims of others with and without so many jobs behind an open breaker, one after the other."""
    benches = [MeasuredStore(place, f"{name}{number}") for name in ("alone", "behind")]
    for bench in benches:
        await bench.store.upkeep.migrate()
        await guard(bench)
        await operate(bench, "open")
    alone, beside = benches
    await beside.fill(jobs, TENANTS, task="send")
    for bench in benches:
        await bench.fill(claims * CLAIMED, TENANTS)
    times: dict[MeasuredStore, list[float]] = {alone: [], beside: []}
    warm = max(1, claims // 10)
    for turn in range(claims):
        for bench in benches if turn % 2 else benches[::-1]:
            took = await _timed(bench)
            if turn >= warm:  # the first of them park what is behind the breaker
                times[bench].append(took)
    for bench in benches:
        await bench.store.upkeep.aclose()
    return {"alone": statistics.median(times[alone]), "beside": statistics.median(times[beside])}


async def _timed(bench: MeasuredStore) -> float:
    before = time.perf_counter()
    claims = await bench.claim(CLAIMED)
    took = time.perf_counter() - before
    if any(claim.job.task != "noop" for claim in claims):
        message = "a job has passed an open breaker"
        raise AssertionError(message)
    if claims:
        await bench.settle(claims)
    return 1e3 * took


# ── who passes ───────────────────────────────────────────────────────────────


async def tried(place: str, turns: int, number: int = 0) -> dict[str, Any]:
    """Let 16 claimants ask at once, again and again: while it is open, and once it may be tried."""
    bench = MeasuredStore(place, f"tried{number}")
    await bench.store.upkeep.migrate()
    await guard(bench)
    await bench.fill(WAITING, TENANTS, task="send")
    others = [Driver(bench.url) for _ in range(CLAIMANTS)]
    passed, while_open = [], 0
    try:
        for _ in range(turns):
            now = (await _status(bench)).now
            await operate(bench, "open", now + OPEN_FOR)
            before, asked_at = await _all_claim(others), (await _status(bench)).now
            if asked_at < now + OPEN_FOR:  # else the machine was too slow to ask while it was open
                while_open += len(before)
            await _give_back(bench, before)
            await _half_open(bench)
            claims = [claim for _ in range(2) for claim in await _all_claim(others)]
            passed.append(len(claims))
            await _give_back(bench, claims)
    finally:
        for one in (bench, *others):
            await one.store.upkeep.aclose()
    return {"turns": turns, "while_open": while_open, "most": max(passed), "least": min(passed)}


async def _all_claim(drivers: Sequence[Driver]) -> list[Claim]:
    found = await asyncio.gather(*(one.claim(CLAIMED) for one in drivers))
    return [claim for claims in found for claim in claims]


async def _give_back(bench: Driver, claims: Sequence[Claim]) -> None:
    if claims:
        await bench.settle(tuple(claims), UNSTARTED)


async def _status(bench: Driver) -> StoreStatus:
    return await bench.store.registry.status(Request(scope=ALL))


async def _half_open(bench: Driver) -> None:
    """Wait until it may be tried."""
    while True:
        reply = await bench.store.breakers.list(BreakersRequest(scope=ALL, name="mail"))
        if phase(reply.breakers[0].state, reply.now) != "open":
            return
        await asyncio.sleep(0.01)
