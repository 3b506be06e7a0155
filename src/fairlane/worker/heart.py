"""What goes on in the renewing thread: leases, heartbeats, a guard, and the duties. Runs no handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlane.app.fairlane import Fairlane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.duties import Duties
from fairlane.model.instants import Micros
from fairlane.model.scope import Scope
from fairlane.runtime.absence import Absence, enduring
from fairlane.runtime.clock import Clock
from fairlane.runtime.loops import beside, repeat
from fairlane.store.contract.registry import HeartbeatRequest, RegisterRequest, WorkerCard
from fairlane.worker.floor import Floor
from fairlane.worker.renew import Alarm, Renew


class Heart:
    """Beats while its worker lives, whatever handlers do."""

    def __init__(
        self,
        *,
        app: Fairlane,
        card: WorkerCard,
        floor: Floor,
        settings: WorkerSettings,
        clock: Clock,
        alarm: Alarm,
        absence: Absence,
    ) -> None:
        self._told: asyncio.Event | None = None
        self._card = card
        self._floor = floor
        self._every = settings.renew_every
        self._client = app.client
        self._absence = absence
        self._renew = Renew(
            worker=card.id,
            lease=settings.lease,
            renew_every=settings.renew_every,
            holdings=floor.holdings,
            clock=clock,
            store=lambda: app.client.store,
            alarm=alarm,
        )
        self._make_duties: Callable[[], Duties] = lambda: Duties(
            card.id, lambda: app.client.store, clock, app.settings.retention, settings, absence
        )

    async def beat(self, *, has_duties: bool) -> None:
        """Beat until told to end."""
        self._told = asyncio.Event()
        works = [
            # Several tries for each lease: two short outages in a row must not use it up.
            repeat(enduring(self._renew.leases, self._absence, at_most=self._every // 4)),
            repeat(enduring(self._renew.cancels, self._absence)),
            repeat(enduring(self._say, self._absence, is_witness=True)),
            repeat(self._renew.guard),
        ]
        if has_duties:
            works.append(self._make_duties().run())
        await beside(self._until(self._told), *works)

    async def end(self) -> None:
        """Let the heart end: no heartbeat may follow the worker's leave, or it would be introduced again."""
        if self._told is not None:
            self._told.set()

    async def _until(self, told: asyncio.Event) -> None:
        await told.wait()

    async def _say(self) -> Micros:
        """Say that the worker lives; introduce it again if it was forgotten."""
        floor = self._floor
        running = len(floor.holdings.running())
        request = HeartbeatRequest(
            scope=Scope.all(),
            worker=self._card.id,
            state="draining" if floor.is_closing else "busy" if running else "idle",
            renew_every=self._every,
            running=running,
            settled=floor.settled_count,
            failed=floor.failed_count,
        )
        if not await self._client.store.registry.heartbeat(request):
            again = RegisterRequest(scope=Scope.all(), card=self._card, renew_every=self._every)
            await self._client.store.registry.register(again)
        return self._every
