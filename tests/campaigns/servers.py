"""Harm servers and the connections to them: kill them under load, end single connections, cut off a crowd."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from fairlane.lab import ledger
from fairlane.store.opening import open_store
from tests.campaigns.errand import Errand
from tests.campaigns.field import Field, staged
from tests.faults.campaign import Actor, moment

CREW: Final = 2
CROWD: Final = 200
HERD_LIMIT: Final = 10.0
"""Seconds in which a whole crowd must be served again."""

_VOLLEY: Final = 10
"""Connections ended in a row, before every worker must have begun something new."""
_SHORT: Final = (0.01, 0.03, 0.1, 0.2)


async def kill_server(errand: Errand) -> None:
    """SIGKILL the server while jobs are enqueued and run, and start it again; workers go on by themselves."""
    async with staged(errand) as field:
        await field.hire_ready(CREW, slots=8)
        async with field.fed(_SHORT):
            while errand.goes_on:
                await field.until_more_start(30)
                await asyncio.sleep(errand.draw.random() / 2)
                errand.done(*await _crash(field))


async def _crash(field: Field) -> list[float]:
    """Kill the server and start it again; return the seconds until each worker has begun something new."""
    killed_at = moment()
    await asyncio.to_thread(field.place.kill)
    await asyncio.sleep(field.errand.draw.random())
    await asyncio.to_thread(field.place.start)
    back_at = moment()
    field.records.append(ledger.Outage(at=killed_at, until=back_at, loses=field.place.loses))
    return [await field.until_it_starts(worker, back_at) for worker in field.workers]


async def kill_connections(errand: Errand) -> None:
    """Let the server end single connections under load, workers' and the enqueuer's; each is replaced."""
    async with staged(errand) as field:
        await field.hire_ready(CREW, slots=8)
        async with field.fed(_SHORT):
            while errand.goes_on:
                wanted = min(_VOLLEY, errand.wanted - errand.n)
                while wanted:
                    if await asyncio.to_thread(field.place.cut_one, errand.draw):
                        wanted -= 1
                        errand.done()
                    await asyncio.sleep(errand.draw.random() / 10)
                cut_at = moment()
                back = [await field.until_it_starts(worker, cut_at) for worker in field.workers]
                errand.recovery += (round(one, 3) for one in back)


async def cut_off_a_crowd(errand: Errand) -> None:
    """Cut 200 clients off at once, for a moment; all have enqueued again within ten seconds."""
    async with staged(errand) as field:
        await field.hire_ready(1, slots=16)
        proxy, url = await field.breakable_way()
        crowd = [Actor(open_store(url), field.records.append) for _ in range(CROWD)]
        for one in crowd:
            field.until_judged.push_async_callback(one.store.upkeep.aclose)
        for part in range(0, CROWD, 20):
            await asyncio.gather(*(one.insist(field.job("short", 0)) for one in crowd[part : part + 20]))
        while errand.goes_on:
            proxy.is_refusing = True
            proxy.cut()
            trying = asyncio.gather(*(one.insist(field.job("short", 0)) for one in crowd))
            await asyncio.sleep(errand.draw.random())
            proxy.is_refusing = False
            back = time.monotonic()
            await asyncio.wait_for(trying, 60)
            took = time.monotonic() - back
            connections = await asyncio.to_thread(field.place.connections)
            errand.figures["connections_at_most"] = max(errand.figures["connections_at_most"], connections)
            if took > HERD_LIMIT:
                errand.fail(f"{CROWD} clients needed {took:.1f} s to be served again")
            errand.done(took)
            field.look()
