"""What a worker does in the portal thread while handlers run: lease renewals, heartbeats, duties.

No handler runs there, so none can keep a lease from being renewed. Also runs the guard that notices a blocked
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final

from fairlane.app.fairlane import Fairlane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.duties import Duties
from fairlane.duties.stall import guard_of_duties
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.cpu import CpuMeter
from fairlane.runtime.loops import Pass, repeat, run_with_background, wait_for
from fairlane.runtime.memory import is_memory_known, resident_memory
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract.registry import HeartbeatRequest, RegisterRequest, WorkerRecord
from fairlane.worker.attempts.live_attempts import LiveAttempts
from fairlane.worker.renew import KeepAliveListener, LeaseRenewer
from fairlane.worker.settle import Settler
from fairlane.worker.shutdown import Shutdown

ALIVE_EVERY: Final[Micros] = SECOND
"""How often the process that watches the worker hears of it."""


class KeepAlive:
    """Keeps a worker and its claims alive in the store, whatever its handlers do."""

    def __init__(
        self,
        *,
        app: Fairlane,
        record: WorkerRecord,
        attempts: LiveAttempts,
        settler: Settler,
        shutdown: Shutdown,
        settings: WorkerSettings,
        clock: Clock,
        listener: KeepAliveListener,
        outage: StoreOutage,
        loop_turned_at: Callable[[], Micros],
        inspecting: Iterable[Pass] = (),
    ) -> None:
        self._inspecting = tuple(inspecting)
        self._stop: asyncio.Event | None = None
        self._record = record
        self._listener = listener
        self._attempts = attempts
        self._settler = settler
        self._shutdown = shutdown
        self._settings = settings
        self._every = settings.renew_every
        self._cpu = CpuMeter()
        self._clock = clock
        self._client = app.client
        self._outage = outage
        self._renewer = LeaseRenewer(
            worker=record.id,
            lease=settings.lease,
            renew_every=settings.renew_every,
            attempts=attempts,
            clock=clock,
            store=lambda: app.client.store,
            listener=listener,
            loop_turned_at=loop_turned_at,
            attempts_kept=app.client.settings.retention.attempts,
        )

    async def run(self, *, has_duties: bool) -> None:
        """Run until `stop`."""
        stop = self._stop = asyncio.Event()
        passes = [
            # Try several times within a lease: it must survive two short outages.
            repeat(retry_on_outage(self._renewer.renew, self._outage, max_pause=self._every // 4)),
            repeat(retry_on_outage(self._renewer.poll_cancels, self._outage)),
            repeat(retry_on_outage(self.send_heartbeat, self._outage, ends_outage=True)),
            repeat(self._renewer.guard),
            repeat(self._report_alive),
            *(repeat(retry_on_outage(one, self._outage)) for one in self._inspecting),
        ]
        if has_duties:
            duties = Duties(
                self._record.id,
                lambda: self._client.store,
                self._clock,
                self._client.settings,
                self._settings,
                self._outage,
            )
            guard = guard_of_duties(self._record.id, self._settings.lease, asyncio.get_running_loop())
            with guard.watching():
                await run_with_background(wait_for(stop), *passes, duties.run(), repeat(guard.turn))
            return
        await run_with_background(wait_for(stop), *passes)

    async def stop(self) -> None:
        """End all passes. A heartbeat after the worker has left would register it again."""
        if self._stop is not None:
            self._stop.set()

    async def _report_alive(self) -> Micros:
        """Tell the process that watches this one; no store is asked, so an outage does not silence it."""
        self._listener.alive()
        return ALIVE_EVERY

    async def send_heartbeat(self) -> Micros:
        """Tell the store that the worker lives; register it again if the store has forgotten it."""
        memory = resident_memory() if is_memory_known() else None
        self._check_memory(memory)
        running = len(self._attempts.running())
        request = HeartbeatRequest(
            scope=Scope.all(),
            worker=self._record.id,
            state=self._shutdown.state_with(running),
            renew_every=self._every,
            running=running,
            settled=self._settler.settled_count,
            failed=self._settler.failed_count,
            memory=memory,
            cpu=self._cpu.read(),
        )
        if not await self._client.store.registry.heartbeat(request):
            again = RegisterRequest(scope=Scope.all(), record=self._record, renew_every=self._every)
            await self._client.store.registry.register(again)
        await self._client.asend_journals()
        return self._every

    def _check_memory(self, used: int | None) -> None:
        limit = self._settings.max_memory
        if used is not None and limit is not None and used > limit and not self._shutdown.is_draining:
            self._listener.memory_exceeded(used)


async def fail_if_ended(keeping_alive: Future[None]) -> None:
    """Fail if the keep-alive ends before its worker: without it every lease would expire."""
    ended = asyncio.wrap_future(keeping_alive)
    await asyncio.wait([ended])
    cause = None if ended.cancelled() else ended.exception()
    message = "the worker's portal thread has ended; was the application closed under it?"
    raise RuntimeError(message) from cause
