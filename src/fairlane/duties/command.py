"""Run the duties alone, as a process. The command line calls this."""

from __future__ import annotations

import asyncio

from fairlane.app.fairlane import Fairlane
from fairlane.duties.duties import Duties, log
from fairlane.runtime.absence import Absence
from fairlane.runtime.exits import OK, STORE_GONE
from fairlane.runtime.identity import new_name
from fairlane.runtime.loops import beside
from fairlane.runtime.signals import on_stop


def run_scheduler(app: Fairlane) -> int:
    """Do the duties until SIGTERM or SIGINT, or the store is gone; give the exit code of the process."""
    return asyncio.run(_serve(app))


async def _serve(app: Fairlane) -> int:
    client, settings = app.client, app.settings
    name = new_name("scheduler")
    told = asyncio.Event()
    absence = Absence(log, name, told.set)
    duties = Duties(name, lambda: client.store, client.clock, settings.retention, settings.worker, absence)
    with on_stop(told.set):
        await beside(_until(told), duties.run())
    await duties.leave()
    await app.aclose()
    return STORE_GONE if absence.is_for_good else OK


async def _until(told: asyncio.Event) -> None:
    await told.wait()
