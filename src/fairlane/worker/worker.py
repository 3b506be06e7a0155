"""One worker: starts its parts, connects them, and ends them in order. Each part works in its own module.

The worker's loop runs handlers, which may block it. So it waits for no server itself: the portal thread calls
the store, through `portal.call`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from fairlane.app.ambient import refuse_in_handler
from fairlane.app.client import Client
from fairlane.app.fairlane import Fairlane
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.checking import flag, instance
from fairlane.model.errors import StoreError
from fairlane.model.instants import Micros
from fairlane.model.policy.declared import Lane
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock, ClockOffset, MachineClock
from fairlane.runtime.identity import new_process_name
from fairlane.runtime.loops import WakeUp, repeat, run_with_background
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract.registry import LeaveRequest, RegisterRequest, StoreStatus, WorkerRecord
from fairlane.store.contract.request import Request
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts, StopCause
from fairlane.worker.dispatch import Dispatcher
from fairlane.worker.execute import Executor
from fairlane.worker.hints import HintListener
from fairlane.worker.keepalive import KeepAlive
from fairlane.worker.lane_state import LaneState
from fairlane.worker.overload import OverloadMonitor
from fairlane.worker.round_trip import RoundTrip
from fairlane.worker.settle import Settler
from fairlane.worker.shutdown import Shutdown
from fairlane.worker.startup.declare import declare_policies, refuse_conflicting_apps
from fairlane.worker.startup.lanes import choose_lanes
from fairlane.worker.startup.version_check import refuse_unreadable_versions
from fairlane.worker.startup.worker_record import describe_worker
from fairlane.worker.timeouts import Timeouts


class _Parts:
    """The parts of a running worker, connected. All of them live in the worker's loop."""

    def __init__(
        self,
        worker: str,
        client: Client,
        settings: WorkerSettings,
        clock: Clock,
        lanes: list[LaneState],
        *,
        is_burst: bool,
    ) -> None:
        self.lanes = lanes
        self.attempts = LiveAttempts()
        self.clock_offset = ClockOffset(0, 0)
        self.timeouts_wake_up = WakeUp()
        self.hints = HintListener(worker, client, lanes)
        self.shutdown = Shutdown(
            worker, lanes, self.attempts, clock, self.timeouts_wake_up, is_burst=is_burst
        )
        self.settler = Settler(self.attempts, self.shutdown)
        self.executor = Executor(
            worker=worker,
            client=client,
            settings=settings,
            clock=clock,
            clock_offset=self.clock_offset,
            attempts=self.attempts,
            shutdown=self.shutdown,
        )
        self.timeouts = Timeouts(
            self.attempts, clock, self.shutdown, self.executor.ended, self.executor.abandon
        )
        self.dispatcher = Dispatcher(
            lanes=lanes,
            worker=worker,
            client=client,
            settings=settings,
            clock=clock,
            clock_offset=self.clock_offset,
            attempts=self.attempts,
            executor=self.executor,
            timeouts=self.timeouts,
            shutdown=self.shutdown,
            timeouts_wake_up=self.timeouts_wake_up,
        )
        self.overload = OverloadMonitor(worker, lanes, client, clock, self.clock_offset)

    async def check_time(self) -> Micros:
        """Check the timeouts of handlers, and the worker's own deadline."""
        pause = self.timeouts.check()
        self.shutdown.check_deadline()
        return pause


class WorkerRuntime:
    """Runs an application's jobs until it is stopped or, with `burst`, until nothing is claimable now.

    Each instance runs once. `stop` may be called from any thread: the first call lets running jobs go on
    until the shutdown deadline, a second one ends them at once.
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
        self.id = new_process_name("worker")
        self.settings = settings or app.settings.worker
        self.is_loop_blocked = False
        self.on_loop_blocked: Callable[[], None] = lambda: report.loop_blocked(self.id)
        self._app = app
        self._client = app.client
        self._clock = clock or MachineClock()
        self._is_burst = burst
        self._has_duties = self.settings.duties if duties is None else duties
        self._lanes = choose_lanes(app, lanes)
        self._outage = StoreOutage(report.log, self.id, self._stop_now)
        self._parts: _Parts | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stops = 0
        self._stops_handled = 0

    # ── facts ─────────────────────────────────────────────────────────────────

    @property
    def is_ready(self) -> bool:
        """Whether the worker is registered and looks for work."""
        return self._parts is not None

    @property
    def running(self) -> int:
        """How many handlers run now."""
        return 0 if self._parts is None else len(self._parts.attempts.running())

    @property
    def settled(self) -> int:
        """How many attempts were settled so far, successful or not; jobs handed back do not count."""
        return 0 if self._parts is None else self._parts.settler.settled_count

    @property
    def failed(self) -> int:
        """How many settled attempts failed."""
        return 0 if self._parts is None else self._parts.settler.failed_count

    @property
    def has_abandoned(self) -> bool:
        """Whether an async handler was abandoned and still has not ended."""
        return self._parts is not None and self._parts.executor.has_abandoned

    @property
    def has_lost_its_store(self) -> bool:
        """Whether the worker has ended, or will, because its store was deleted or replaced."""
        return self._outage.is_permanent

    # ── life ──────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Register, work, leave. `StoreError` if the store cannot be reached at the start.

        A later outage of the store is waited out; if the store is gone for good, this ends
        (`has_lost_its_store`). `InsideTenant` from inside a handler: a worker claims jobs of all tenants.
        """
        refuse_in_handler("a worker runs the jobs of all tenants")
        self._loop = asyncio.get_running_loop()
        client = self._client
        own_store = client.store  # handlers call it; the worker only reserves a connection here
        await own_store.registry.expect(1, waits=False)
        lanes = [LaneState(lane, own_store.claims.concurrent_calls) for lane in self._lanes]
        parts = _Parts(self.id, client, self.settings, self._clock, lanes, is_burst=self._is_burst)
        record = describe_worker(self._app, self.id, self._lanes)
        status = await client.portal.call(self._register(record))
        parts.clock_offset.update(status.now, self._clock.elapsed())
        self._parts = parts
        client.has_worker = True
        report.started(record)
        self._handle_stops()
        keepalive = self._keepalive(parts, record)
        keeping_alive = client.portal.submit(keepalive.run(has_duties=self._has_duties))
        try:
            passes = (*self._passes(parts), _fail_if_ended(keeping_alive))
            await run_with_background(parts.shutdown.wait(), *passes)
            await client.portal.call(keepalive.stop())
            await asyncio.wrap_future(keeping_alive)
        finally:
            keeping_alive.cancel()  # without effect if it has ended
            client.has_worker = False
            parts.executor.close()
        if not self.has_lost_its_store:
            await self._leave()

    def stop(self) -> None:
        """Stop and let running jobs finish; called again, stop at once. May be called from any thread."""
        self._stops += 1
        if self._loop is not None and self._parts is not None:  # else `run` will see it
            self._loop.call_soon_threadsafe(self._handle_stops)

    def _stop_now(self) -> None:
        """Stop at once: nothing that runs can be settled any more."""
        self.stop()
        self.stop()

    def _handle_stops(self) -> None:
        """Handle each `stop` once, however often this is called."""
        while self._parts is not None and self._stops_handled < self._stops:
            self._stops_handled += 1
            is_fast = self._stops_handled > 1
            report.stopping(self.id, self.running, is_fast=is_fast)
            self._parts.shutdown.begin(0 if is_fast else self.settings.shutdown_deadline, is_fast=is_fast)

    # ── parts ─────────────────────────────────────────────────────────────────

    def _passes(self, parts: _Parts) -> Iterator[Coroutine[Any, Any, None]]:
        """Return what is repeated in the worker's loop until it shuts down."""
        for lane in parts.lanes:
            for _ in range(lane.max_calls):
                yield repeat(self._round_trip(parts, lane), lane.wake_up)
        yield repeat(parts.check_time, parts.timeouts_wake_up)
        yield repeat(retry_on_outage(parts.hints.listen, self._outage), parts.hints.work_wanted)
        yield repeat(retry_on_outage(parts.overload.check, self._outage))

    def _round_trip(self, parts: _Parts, lane: LaneState) -> RoundTrip:
        return RoundTrip(
            lane,
            worker=self.id,
            lease=self.settings.lease,
            client=self._client,
            clock=self._clock,
            clock_offset=parts.clock_offset,
            dispatcher=parts.dispatcher,
            settler=parts.settler,
            shutdown=parts.shutdown,
            hints=parts.hints,
            outage=self._outage,
        )

    def _keepalive(self, parts: _Parts, record: WorkerRecord) -> KeepAlive:
        return KeepAlive(
            app=self._app,
            record=record,
            attempts=parts.attempts,
            settler=parts.settler,
            shutdown=parts.shutdown,
            settings=self.settings,
            clock=self._clock,
            listener=self,
            outage=self._outage,
            loop_turned_at=lambda: parts.timeouts.checked_at,
        )

    # ── the first and the last call to the store ──────────────────────────────

    async def _register(self, record: WorkerRecord) -> StoreStatus:
        """Check that this worker may start, declare its policies, register it, and read the store's clock.

        Runs in the portal thread, as `_deregister` does.
        """
        store = self._client.store
        await store.registry.expect(len(self._lanes) + 1, waits=True)
        await refuse_unreadable_versions(self._app, store)
        await refuse_conflicting_apps(record, store)
        await declare_policies(self._app, store)
        status = await store.registry.status(Request(scope=Scope.all()))
        request = RegisterRequest(scope=Scope.all(), record=record, renew_every=self.settings.renew_every)
        await store.registry.register(request)
        return status

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(1):
                await self._client.portal.call(self._deregister())
        except (StoreError, TimeoutError) as error:
            report.leaving_failed(error)
        report.left(self.id, self.settled, self.failed)

    async def _deregister(self) -> None:
        await self._client.store.registry.leave(LeaveRequest(scope=Scope.all(), worker=self.id))

    # ── what the keep-alive tells ─────────────────────────────────────────────

    def stop_attempt(self, attempt: LiveAttempt, cause: StopCause) -> None:
        """Stop a handler: set its own flag at once, and do the rest in the worker's loop."""
        attempt.control.stop(cause.value)
        if self._loop is not None and self._parts is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._parts.dispatcher.stop, attempt, cause)

    def handed_back(self, attempts: list[LiveAttempt]) -> None:
        """Forget attempts that the keep-alive has handed back, as soon as the loop turns again."""
        if self._loop is not None and self._parts is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._parts.dispatcher.forget, attempts)

    def loop_blocked(self) -> None:
        """Hear that a handler blocks the worker's event loop (S31)."""
        if not self.is_loop_blocked:
            self.is_loop_blocked = True
            self.on_loop_blocked()


async def _fail_if_ended(keeping_alive: Future[None]) -> None:
    """Fail if the keep-alive ends before its worker: without it every lease would expire."""
    ended = asyncio.wrap_future(keeping_alive)
    await asyncio.wait([ended])
    cause = None if ended.cancelled() else ended.exception()
    message = "the worker's portal thread has ended; was the application closed under it?"
    raise RuntimeError(message) from cause
