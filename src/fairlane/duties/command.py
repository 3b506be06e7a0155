"""Run the duties alone, as a process. The command line calls this."""

from __future__ import annotations

import asyncio

from fairlane.app.fairlane import Fairlane
from fairlane.duties.duties import Duties, log
from fairlane.runtime.exits import OK, STORE_GONE
from fairlane.runtime.identity import new_process_name
from fairlane.runtime.loops import run_with_background, wait_for
from fairlane.runtime.outage import StoreOutage
from fairlane.runtime.signals import on_stop


def run_scheduler(app: Fairlane) -> int:
    """Do the duties until SIGTERM, SIGINT or the loss of the store; return the exit code of the process."""
    return asyncio.run(_serve(app))


async def _serve(app: Fairlane) -> int:
    client, settings = app.client, app.settings
    name = new_process_name("scheduler")
    stop = asyncio.Event()
    outage = StoreOutage(log, name, stop.set)
    duties = Duties(name, lambda: client.store, client.clock, settings.retention, settings.worker, outage)
    with on_stop(stop.set):
        await run_with_background(wait_for(stop), duties.run())
    await duties.leave()
    await app.aclose()
    return STORE_GONE if outage.is_permanent else OK
