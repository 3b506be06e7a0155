"""A worker, whole: starts fetching, running, renewing and watching, and ends them in order.

Each part does its own work in its own module; this one only joins them. The worker's loop runs handlers,
which may block it; so it asks no store itself: the renewing thread does, through `portal.aside`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from fairlane.app.ambient import refuse_in_handler
from fairlane.app.fairlane import Fairlane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.checking import flag, instance
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.model.policy import Lane
from fairlane.model.scope import Scope
from fairlane.runtime.absence import Absence, enduring
from fairlane.runtime.clock import Clock, MachineClock
from fairlane.runtime.identity import new_name
from fairlane.runtime.loops import beside, repeat
from fairlane.store.contract.registry import LeaveRequest, Pulse, RegisterRequest, WaitRequest, WorkerCard
from fairlane.store.contract.request import Request
from fairlane.worker import report
from fairlane.worker.attempt import Attempt, Cause
from fairlane.worker.card import card_of
from fairlane.worker.declare import declare_policies, refuse_others
from fairlane.worker.fetch import Fetch
from fairlane.worker.floor import Floor
from fairlane.worker.heart import Heart
from fairlane.worker.lane import Desk, lanes_of
from fairlane.worker.older import refuse_unreadable
from fairlane.worker.overload import OverloadWatch

LISTEN: Final[Micros] = 30 * SECOND
BREATH: Final[Micros] = SECOND // 200
"""Hints that come so close together are one."""


class Worker:
    """Runs an application's jobs until it is stopped or, with `burst`, until nothing is claimable now.

    One `run` each. `stop` may be called from any thread: the first call lets running jobs go on until the
    shutdown deadline, a second one ends them at once.
    """

    def __init__(
        self,
        app: Fairlane,
        *,
        lanes: Sequence[Lane | str] | None = None,
        burst: bool = False,
        duties: bool | None = None,
        settings: WorkerSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        instance("app", app, Fairlane, "a Fairlane(...)")
        flag("burst", burst)
        instance("duties", duties, bool, "True or False", is_optional=True)
        instance("settings", settings, WorkerSettings, "WorkerSettings(...)", is_optional=True)
        self.id = new_name("worker")
        self.settings = settings or app.settings.worker
        self.is_standing_still = False
        self.on_standstill: Callable[[], None] = lambda: report.standstill(self.id)
        self._app = app
        self._clock = clock or MachineClock()
        self._is_burst = burst
        self._has_duties = self.settings.duties if duties is None else duties
        self._lanes = lanes_of(app, lanes)
        self._absence = Absence(report.log, self.id, self._end_in_haste)
        self._floor: Floor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stops = 0
        self._obeyed = 0

    # ── facts ─────────────────────────────────────────────────────────────────

    @property
    def is_ready(self) -> bool:
        """Whether the worker is registered and looks for work."""
        return self._floor is not None

    @property
    def running(self) -> int:
        """How many handlers run now."""
        return 0 if self._floor is None else len(self._floor.holdings.running())

    @property
    def settled(self) -> int:
        """How many attempts were settled so far, well or badly; what was handed back does not count."""
        return 0 if self._floor is None else self._floor.settled_count

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return 0 if self._floor is None else self._floor.failed_count

    @property
    def has_abandoned(self) -> bool:
        """Whether an async handler was given up that has not ended since."""
        return self._floor is not None and self._floor.runner.has_abandoned

    # ── life ──────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Declare, register, work, leave. `StoreError` if the store cannot be reached at the start.

        A store that is away later is waited for; if it is gone for good, this ends (`has_lost_its_store`).
        `InsideTenant` from inside a handler: a worker claims everybody's jobs.
        """
        refuse_in_handler("a worker runs the jobs of all tenants")
        self._loop = asyncio.get_running_loop()
        client = self._app.client
        spare = client.store  # of this loop: handlers may call it, the worker does not
        await spare.registry.expect(1, waits=False)
        desks = [Desk(lane, spare.claims.turns_at_once) for lane in self._lanes]
        floor = Floor(self.id, client, self.settings, self._clock, desks)
        floor.is_burst = self._is_burst
        card = card_of(self._app, self.id, self._lanes)
        pulse = await client.portal.aside(self._introduce(card))
        floor.times.learn(pulse.now, self._clock.elapsed())
        self._floor = floor
        client.is_at_work = True
        report.started(card)
        for _ in range(self._stops):
            self._obey()
        heart = Heart(
            app=self._app,
            card=card,
            floor=floor,
            settings=self.settings,
            clock=self._clock,
            alarm=self,
            absence=self._absence,
        )
        overload = OverloadWatch(floor, client, self._clock)
        beating = client.portal.submit(heart.beat(has_duties=self._has_duties))
        try:
            await beside(
                _until_gone(floor),
                *(self._serve(floor, desk) for desk in desks for _ in range(desk.turns)),
                repeat(floor.keep_time, floor.watch.bell),
                repeat(enduring(self._listen, self._absence), floor.thirst),
                repeat(enduring(overload.look, self._absence)),
                _hold(beating),
            )
            await client.portal.aside(heart.end())
            await asyncio.wrap_future(beating)
        finally:
            beating.cancel()  # without effect on what has ended
            self._let_go(floor)
        if not self.has_lost_its_store:
            await self._leave()

    @property
    def has_lost_its_store(self) -> bool:
        """Whether the worker has ended, or will, because its store was deleted or replaced."""
        return self._absence.is_for_good

    def _end_in_haste(self) -> None:
        """End what runs at once: nothing of it can be settled any more."""
        self.stop()
        self.stop()

    def stop(self) -> None:
        """Stop in good order; called again, at once."""
        self._stops += 1
        if self._loop is not None and self._floor is not None:  # else `run` will look
            self._loop.call_soon_threadsafe(self._obey)

    def _obey(self) -> None:
        self._obeyed += 1
        in_haste = self._obeyed > 1
        report.stopping(self.id, self.running, in_haste=in_haste)
        if self._floor is not None:
            patience = 0 if in_haste else self.settings.shutdown_deadline
            self._floor.close(self._clock.elapsed() + patience, in_haste=in_haste)

    # ── parts ─────────────────────────────────────────────────────────────────

    async def _introduce(self, card: WorkerCard) -> Pulse:
        """Declare, register, and read the store's clock."""
        store = self._app.client.store
        await store.registry.expect(len(self._lanes) + 1, waits=True)
        await refuse_unreadable(self._app, store)
        await refuse_others(card, store)
        await declare_policies(self._app, store)
        pulse = await store.registry.pulse(Request(scope=Scope.all()))
        introduction = RegisterRequest(scope=Scope.all(), card=card, renew_every=self.settings.renew_every)
        await store.registry.register(introduction)
        return pulse

    async def _serve(self, floor: Floor, desk: Desk) -> None:
        turns = Fetch(desk, floor, self._app.client, self._clock, self._absence)
        await repeat(turns, desk.bell)

    async def _listen(self) -> Micros:
        """Wait for a hint while any lane has room and found nothing; look once in a while without one."""
        floor = self._floor
        if floor is None or not floor.is_dry():
            return LISTEN
        queues = tuple(dict.fromkeys(queue for desk in floor.desks for queue in desk.queues))
        request = WaitRequest(scope=Scope.all(), worker=self.id, queues=queues, at_most=LISTEN)
        await self._app.client.portal.aside(self._wait(request))
        floor.wake()
        return BREATH

    async def _wait(self, request: WaitRequest) -> None:
        await self._app.client.store.registry.wait(request)

    def _let_go(self, floor: Floor) -> None:
        """Leave nothing of this worker's own behind in the loop."""
        self._app.client.is_at_work = False
        for attempt in floor.holdings.running():
            if attempt.task is not None:
                attempt.task.cancel()
        floor.runner.close()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(1):
                await self._app.client.portal.aside(self._say_goodbye())
        except (StoreError, TimeoutError) as error:
            report.leaving_failed(error)
        report.left(self.id, self.settled, self.failed)

    async def _say_goodbye(self) -> None:
        await self._app.client.store.registry.leave(LeaveRequest(scope=Scope.all(), worker=self.id))

    # ── what the renewing thread tells ────────────────────────────────────────

    def alarm(self, attempt: Attempt, cause: Cause) -> None:
        """Stop a handler: its own flag at once, the rest in the worker's loop."""
        attempt.rein.stop(cause.value)
        if self._loop is not None and self._floor is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._floor.lose, attempt, cause)

    def stands_still(self) -> None:
        """Hear that the worker's loop does not turn any more (S31)."""
        if not self.is_standing_still:
            self.is_standing_still = True
            self.on_standstill()


async def _until_gone(floor: Floor) -> None:
    await floor.gone.wait()
    if floor.broken is not None:
        message = f"the worker's own code raised {type(floor.broken).__name__}"
        raise RuntimeError(message) from floor.broken


async def _hold(beating: Future[None]) -> None:
    """Fail if the renewing thread ends before its worker: without it every lease would run out."""
    ended = asyncio.wrap_future(beating)
    await asyncio.wait([ended])
    cause = None if ended.cancelled() else ended.exception()
    message = "the worker's renewing thread has ended; was the application closed under it?"
    raise RuntimeError(message) from cause
