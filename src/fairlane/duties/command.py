"""Run the duties alone, as a process. The command line calls this."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fairlane.app.client import Client
from fairlane.app.fairlane import Fairlane
from fairlane.app.schedules.declaring import declare_schedules
from fairlane.diagnosis.probe_port import probe_port
from fairlane.duties.archive.contents import check_archive
from fairlane.duties.duties import Duties, log
from fairlane.duties.stall import guard_of_duties
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.exits import OK, STORE_GONE
from fairlane.runtime.identity import new_process_name
from fairlane.runtime.loops import Pass, repeat, run_with_background, wait_for
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.runtime.signals import on_stop
from fairlane.supervisor.control import SupervisorConnection
from fairlane.supervisor.supervised import supervised

_STOP_WITHIN: Micros = 5 * SECOND
"""A pass that is under way may still wait for the store."""


def run_scheduler(app: Fairlane, *, supervisor: SupervisorConnection | None = None) -> int:
    """Do the duties until SIGTERM, SIGINT or the loss of the store; return the exit code of the process.

    With a `supervisor`, also until that says so.
    """
    return asyncio.run(_serve(app, supervisor))


async def _serve(app: Fairlane, supervisor: SupervisorConnection | None) -> int:
    client, settings = app.client, app.settings
    check_archive(settings.archive)
    name = new_process_name("scheduler")
    stop = asyncio.Event()
    outage = StoreOutage(log, name, stop.set)
    duties = Duties(name, lambda: client.store, client.clock, settings, settings.worker, outage)
    guard = guard_of_duties(name, settings.worker.lease, asyncio.get_running_loop())
    with on_stop(stop.set):
        async with supervised(supervisor, stop.set):
            declaring = await _declare(app.client, outage)
            if supervisor is not None:
                supervisor.ready(_STOP_WITHIN)
            async with probe_port(app):
                with guard.watching():
                    await run_with_background(
                        wait_for(stop), duties.run(), repeat(guard.turn), repeat(declaring)
                    )
    await duties.leave()
    await app.aclose()
    return STORE_GONE if outage.is_permanent else OK


async def _declare(client: Client, outage: StoreOutage) -> Pass:
    """Write the declared schedules to the store; return what does so as soon as the store answers again."""

    async def one_pass() -> None:
        if not done:
            await declare_schedules(client, client.store)
            done.append(True)

    done: list[bool] = []
    with suppress(StoreError):  # wrong schedules are refused at once, whether or not the store answers
        await one_pass()
    return retry_on_outage(one_pass, outage)
