"""Harm the network: cut where an answer gets lost, at any byte; part workers from their store."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from fairlane import Fairlane
from fairlane.lab import ledger
from fairlane.model.errors import EnqueueUnknown, StoreUnavailable
from tests.campaigns.errand import Errand
from tests.campaigns.field import TENANTS, Field, Worker, staged
from tests.faults.campaign import moment
from tests.servers.proxy import Proxy

_CREW: Final = 8
_LONGEST: Final = 20.0
_SHORTEST: Final = 0.1
_BYTES: Final = 4_000
"""About as many as an enqueue sends and gets."""


async def cut_answers(errand: Errand) -> None:
    """Cut the line of an enqueue when the store has done it, or at any byte; there is exactly one job."""
    async with staged(errand) as field:
        proxy, url = await field.breakable_way()
        app = Fairlane(url, config={})

        @app.task(name="short")
        async def short(seconds: float) -> None: ...

        async with app:
            sent: set[str] = set()
            await short.using(tenant=TENANTS[0]).aenqueue(0)
            while errand.goes_on:
                number = f"cut-here-{errand.figures['enqueues']}-"
                errand.figures["enqueues"] += 1
                before = proxy.cuts_made
                _plan(errand.draw, proxy, number.encode())
                if await _enqueue_once(errand, short, number):
                    sent.add(number)
                if proxy.cuts_made > before:
                    errand.done()
        await field.hire_ready(1, slots=16)
        await _judge_numbers(errand, field, sent)


def _plan(draw: random.Random, proxy: Proxy, mark: bytes) -> None:
    """Choose where the next enqueue is cut."""
    match draw.choice(("after", "after", "part of the answer", "before", "byte", "byte")):
        case "after":
            proxy.cut_after(mark)
        case "part of the answer":
            proxy.cut_after(mark, draw.randrange(200))
        case "before":
            proxy.cut_before(mark, draw.randrange(400))
        case _:
            proxy.cut_at(draw.randint(1, _BYTES), draw.choice(("up", "down")))


async def _enqueue_once(errand: Errand, task: Any, number: str) -> bool:
    """Enqueue as an application does; False if it was told that nobody knows, and could not ask again.

    With a key it repeats whatever it was told. Without one it repeats only what it was told did not happen:
    if that was wrong, there are two jobs.
    """
    key = number if errand.draw.random() < 0.5 else None
    call = task.using(tenant=errand.draw.choice(TENANTS), idempotency_key=key, tags=[number])
    while True:
        try:
            await call.aenqueue(0)
        except EnqueueUnknown:
            errand.figures["unknown"] += 1
            if key is None:
                return False
        except StoreUnavailable:
            errand.figures["not_done"] += 1
        else:
            return True


async def _judge_numbers(errand: Errand, field: Field, sent: set[str]) -> None:
    """Count the jobs of each number in the store: exactly one, or at most one if nobody knows."""
    found: Counter[str] = Counter()
    for job in await field.actor.find_all(page=500):
        found.update(job.tags)
        line = ledger.Acknowledged(
            job=str(job.id), tenant=job.tenant, queue=job.queue, task=job.task, at=moment()
        )
        field.records.append(line)
    doubled = {number: n for number, n in found.items() if n > 1}
    assert not doubled, f"more than one job for {doubled}"
    missing = sent - found.keys()
    assert not missing, f"acknowledged, and not there: {missing}"


async def part_workers(errand: Errand) -> None:
    """Part workers from their store for 0.1 to 20 s: refused, half open, or slow; they go on alone.

    Each has a way of its own, and is parted when it is, whatever happens to the others.
    """
    async with staged(errand) as field:
        ways = [await field.breakable_way() for _ in range(_CREW)]
        crew = [(field.hire(url), proxy) for proxy, url in ways]
        await field.until_all_are_ready()
        async with field.fed((0.01, 0.1, 0.5), backlog=48), asyncio.TaskGroup() as group:
            for number, (worker, proxy) in enumerate(crew):
                draw = random.Random(f"{errand.seed} {number}")
                group.create_task(_part_again_and_again(field, worker, proxy, draw))


async def _part_again_and_again(field: Field, worker: Worker, proxy: Proxy, draw: random.Random) -> None:
    errand = field.errand
    while errand.goes_on:
        seconds = math.exp(draw.uniform(math.log(_SHORTEST), math.log(_LONGEST)))
        kind = draw.choice(tuple(_BREAKS))
        _BREAKS[kind](proxy)
        await asyncio.sleep(seconds)
        _heal(proxy)
        healed_at = moment()
        errand.figures[kind] += 1
        errand.done(await field.until_it_starts(worker, healed_at))


def _refuse(proxy: Proxy) -> None:
    proxy.is_refusing = True
    proxy.cut()


def _slow(proxy: Proxy) -> None:
    proxy.delay, proxy.rate = 0.1, 20_000


_BREAKS: Final[dict[str, Callable[[Proxy], None]]] = {
    "partitions": _refuse,
    "half_open": Proxy.freeze,
    "slow_links": _slow,
}


def _heal(proxy: Proxy) -> None:
    proxy.is_refusing, proxy.delay, proxy.rate = False, 0, None
    proxy.thaw()
