"""Run the duties alone, as a process. The command line calls this."""

from __future__ import annotations

import asyncio

from fairlane.app.fairlane import Fairlane
from fairlane.duties.duties import Duties
from fairlane.runtime.identity import new_name
from fairlane.runtime.loops import beside
from fairlane.runtime.signals import on_stop


def run_scheduler(app: Fairlane) -> int:
    """Do the duties until SIGTERM or SIGINT; give the exit code of the process."""
    asyncio.run(_serve(app))
    return 0


async def _serve(app: Fairlane) -> None:
    client, settings = app.client, app.settings
    name = new_name("scheduler")
    duties = Duties(name, lambda: client.store, client.clock, settings.retention, settings.worker)
    told = asyncio.Event()
    with on_stop(told.set):
        await beside(_until(told), duties.run())
    await duties.leave()
    await app.aclose()


async def _until(told: asyncio.Event) -> None:
    await told.wait()
