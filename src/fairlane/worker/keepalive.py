"""What a worker does in the portal thread while handlers run: lease renewals, heartbeats, duties.

No handler runs there, so none can keep a lease from being renewed. Also runs the guard that notices a blocked
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlane.app.fairlane import Fairlane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.duties import Duties
from fairlane.model.instants import Micros
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import repeat, run_with_background, wait_for
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract.registry import HeartbeatRequest, RegisterRequest, WorkerRecord
from fairlane.worker.attempts.live_attempts import LiveAttempts
from fairlane.worker.renew import KeepAliveListener, LeaseRenewer
from fairlane.worker.settle import Settler
from fairlane.worker.shutdown import Shutdown


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
    ) -> None:
        self._stop: asyncio.Event | None = None
        self._record = record
        self._attempts = attempts
        self._settler = settler
        self._shutdown = shutdown
        self._settings = settings
        self._every = settings.renew_every
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
        ]
        if has_duties:
            retention = self._client.settings.retention
            duties = Duties(
                self._record.id,
                lambda: self._client.store,
                self._clock,
                retention,
                self._settings,
                self._outage,
            )
            passes.append(duties.run())
        await run_with_background(wait_for(stop), *passes)

    async def stop(self) -> None:
        """End all passes. A heartbeat after the worker has left would register it again."""
        if self._stop is not None:
            self._stop.set()

    async def send_heartbeat(self) -> Micros:
        """Tell the store that the worker lives; register it again if the store has forgotten it."""
        running = len(self._attempts.running())
        request = HeartbeatRequest(
            scope=Scope.all(),
            worker=self._record.id,
            state="draining" if self._shutdown.is_draining else "busy" if running else "idle",
            renew_every=self._every,
            running=running,
            settled=self._settler.settled_count,
            failed=self._settler.failed_count,
        )
        if not await self._client.store.registry.heartbeat(request):
            again = RegisterRequest(scope=Scope.all(), record=self._record, renew_every=self._every)
            await self._client.store.registry.register(again)
        return self._every
