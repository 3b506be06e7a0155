"""One worker: starts its parts, connects them, and ends them in order. Each part works in its own module.

The worker's loop runs handlers, which may block it. So it waits for no server itself: the portal thread calls
the store, through `portal.call`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any

from fairlane.app.ambient import refuse_in_handler
from fairlane.app.fairlane import Fairlane
from fairlane.app.resources import OpenResources
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.checking import flag, instance
from fairlane.model.errors import StoreError
from fairlane.model.instants import Micros
from fairlane.model.policy.declared import Lane
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock, MachineClock
from fairlane.runtime.identity import new_process_name
from fairlane.runtime.loops import Pass, repeat, run_with_background, wait_for
from fairlane.runtime.outage import StoreOutage, retry_on_outage
from fairlane.store.contract.registry import LeaveRequest, RegisterRequest, StoreStatus, WorkerRecord
from fairlane.store.contract.request import Request
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, StopCause
from fairlane.worker.inspection.dump_signal import write_dump
from fairlane.worker.inspection.inspector import Inspector
from fairlane.worker.inspection.questions import Questions
from fairlane.worker.inspection.stall import StallWatchdog
from fairlane.worker.keepalive import KeepAlive, fail_if_ended
from fairlane.worker.lane_state import LaneState
from fairlane.worker.observer import NoObserver, WorkerObserver
from fairlane.worker.parts import WorkerParts
from fairlane.worker.round_trip import RoundTrip
from fairlane.worker.startup.declare import declare_policies, refuse_conflicting_apps
from fairlane.worker.startup.lanes import choose_lanes
from fairlane.worker.startup.settings_check import refuse_impossible_settings
from fairlane.worker.startup.version_check import refuse_unreadable_versions
from fairlane.worker.startup.worker_record import describe_worker


class WorkerRuntime:
    """Runs an application's jobs until it is stopped or, with `burst`, until nothing is claimable now.

    It opens the application's resources before it claims anything and closes them at the end, unless it is
    given `resources` that are open. Each instance runs once. `stop` may be called from any thread: the first
    call lets running jobs go on until the shutdown deadline, a second one ends them at once; `stops` counts.
    One that starts `paused` registers, sends heartbeats and takes part in the duties, but claims nothing
    before `serve`. The `observer` hears of it, and of the other steps in the worker's life.
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
        resources: OpenResources | None = None,
        paused: bool = False,
        observer: WorkerObserver | None = None,
    ) -> None:
        instance("app", app, Fairlane, "a Fairlane(...)")
        flag("burst", burst)
        flag("paused", paused)
        instance("duties", duties, bool, "True or False", is_optional=True)
        instance("settings", settings, WorkerSettings, "WorkerSettings(...)", is_optional=True)
        instance("resources", resources, OpenResources, "OpenResources(...)", is_optional=True)
        self.id = new_process_name("worker")
        self.settings = settings or app.settings.worker
        self.is_loop_blocked = False
        self.on_loop_blocked: Callable[[], None] = lambda: report.loop_blocked(self.id)
        self.on_stalled: Callable[[], None] | None = None
        self._app = app
        self._client = app.client
        self._clock = clock or MachineClock()
        self._is_burst = burst
        self._has_duties = self.settings.duties if duties is None else duties
        self._lanes = choose_lanes(app, lanes)
        self._resources = resources or OpenResources(app.client.resources)
        self._has_own_resources = resources is None
        self._opening: asyncio.Task[Any] | None = None
        self._inspector: Inspector | None = None
        refuse_impossible_settings(app.settings, self.settings, has_duties=self._has_duties)
        self._observer = observer or NoObserver()
        self._may_serve = asyncio.Event()
        if not paused:
            self._may_serve.set()
        self._outage = StoreOutage(report.log, self.id, self.stop_now)
        self._parts: WorkerParts | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stops = 0
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

    @property
    def wants_replacement(self) -> bool:
        """Whether the worker drains by itself, so that another takes its place; nobody told it to stop."""
        return self._parts is not None and self._parts.shutdown.wants_replacement and not self.stops

    # ── life ──────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Open the resources, register, work, leave, close them.

        `StoreError` if the store cannot be reached at the start, `StartupFailed` if a resource or a start-up
        function of the application raises: nothing is claimed then. A later outage of the store is waited
        out; if the store is gone for good, this ends (`has_lost_its_store`). `InsideTenant` from inside a
        handler: a worker claims jobs of all tenants.
        """
        refuse_in_handler("a worker runs the jobs of all tenants")
        self._loop = asyncio.get_running_loop()
        try:
            if await self._open_resources():
                await self._run()
        finally:
            if self._has_own_resources:
                await self._resources.close()

    async def _open_resources(self) -> bool:
        """Open what the application declares; False if the worker was stopped meanwhile."""
        if not self._has_own_resources:
            return True
        # In this task, not in one of its own: some resources must be closed by the task that opened them.
        opening = self._opening = asyncio.current_task()
        try:
            await self._resources.open()
        except asyncio.CancelledError:
            if opening is None or not self.stops or opening.uncancel():
                raise
            return False
        finally:
            self._opening = None
        return True

    async def _run(self) -> None:
        client = self._client
        own_store = client.store  # handlers call it; the worker only reserves a connection here
        await own_store.registry.expect(1, waits=False)
        lanes = [LaneState(lane, own_store.claims.concurrent_calls) for lane in self._lanes]
        parts = WorkerParts(
            self.id, self._app, self.settings, self._clock, lanes, self._resources, is_burst=self._is_burst
        )
        parts.executor.children.refuse_impossible()
        record = describe_worker(self._app, self.id, self._lanes)
        status = await client.portal.call(self._register(record))
        parts.clock_offset.update(status.now, self._clock.elapsed())
        parts.shutdown.on_claims_ended = self._observer.claims_ended
        parts.shutdown.on_replacement_wanted = self._replacement_wanted
        self._parts = parts
        client.has_worker = True
        report.started(record)
        self._handle_stops()
        keepalive = self._keepalive(parts, record)
        renewing = client.portal.submit(keepalive.run(has_duties=self._has_duties))
        self._observer.ready(self.settings.shutdown_deadline)
        try:
            await run_with_background(wait_for(self._may_serve), fail_if_ended(renewing))
            parts.executor.children.warm_up()
            await run_with_background(parts.shutdown.wait(), *self._passes(parts), fail_if_ended(renewing))
            await client.portal.call(keepalive.stop())
            await asyncio.wrap_future(renewing)
        finally:
            renewing.cancel()  # without effect if it has ended
            client.has_worker = False
            await parts.executor.aclose()
        if not self.has_lost_its_store:
            await self._leave()

    def pause(self) -> None:
        """Claim nothing until `resume`; running jobs go on. May be called from any thread."""
        self._set_paused(is_paused=True)

    def resume(self) -> None:
        """Claim again. May be called from any thread."""
        self._set_paused(is_paused=False)

    def _set_paused(self, *, is_paused: bool) -> None:
        if self._loop is not None and self._parts is not None:
            self._parts.shutdown.is_paused = is_paused
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._parts.shutdown.wake_lanes)

    def serve(self) -> None:
        """Let a worker that started `paused` claim from now on. Call it in the worker's loop."""
        self._may_serve.set()

    def quarantine(self) -> None:
        """Run every handler in a child process for a while (S39). Call it in the worker's loop."""
        if self._parts is not None:
            self._parts.executor.children.quarantine.add_all()

    def drain(self) -> None:
        """Stop and let running jobs finish, unless it was told so before. May be called from any thread."""
        if not self.stops:
            self.stop()

    def replace(self) -> None:
        """Let running jobs finish and ask for another worker in this one's place. From any thread."""
        if self._loop is not None and self._parts is not None:
            deadline = self.settings.shutdown_deadline
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._parts.shutdown.replace, deadline)

    def stop(self) -> None:
        """Stop and let running jobs finish; called again, stop at once. May be called from any thread."""
        self.stops += 1
        if self._loop is not None:  # else `run` will see it
            self._loop.call_soon_threadsafe(self._handle_stops)

    def _replacement_wanted(self) -> None:
        self._may_serve.set()  # so that it ends, if it never began
        self._observer.replacement_wanted()

    def stop_now(self) -> None:
        """Stop at once. May be called from any thread."""
        while self.stops < 2:  # noqa: PLR2004 (the first lets jobs finish, the second stops them)
            self.stop()

    def _handle_stops(self) -> None:
        """Handle each `stop` once, however often this is called; during the start-up, cancel that."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        while self._parts is not None and self._stops_handled < self.stops:
            self._stops_handled += 1
            self._may_serve.set()  # only so that it ends: it drains, so nothing is claimed
            is_fast = self._stops_handled > 1
            report.stopping(self.id, self.running, is_fast=is_fast)
            self._parts.shutdown.begin(0 if is_fast else self.settings.shutdown_deadline, is_fast=is_fast)

    # ── parts ─────────────────────────────────────────────────────────────────

    def _passes(self, parts: WorkerParts) -> Iterator[Coroutine[Any, Any, None]]:
        """Return what is repeated in the worker's loop until it shuts down."""
        for lane in parts.lanes:
            for _ in range(lane.max_calls):
                yield repeat(self._round_trip(parts, lane), lane.wake_up)
        yield repeat(parts.check_time, parts.timeouts_wake_up)
        yield repeat(parts.executor.children.check)
        yield repeat(retry_on_outage(parts.hints.listen, self._outage), parts.hints.work_wanted)
        yield repeat(retry_on_outage(parts.overload.check, self._outage))

    def _round_trip(self, parts: WorkerParts, lane: LaneState) -> RoundTrip:
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

    def _keepalive(self, parts: WorkerParts, record: WorkerRecord) -> KeepAlive:
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
            inspecting=self._inspecting(parts),
        )

    def _inspecting(self, parts: WorkerParts) -> tuple[Pass, ...]:
        """Return the passes of the portal thread that look inside this worker (S31, S70)."""
        loop = asyncio.get_running_loop()
        inspector = self._inspector = Inspector(self.id, parts, loop, self._clock)
        watchdog = StallWatchdog(
            worker=self.id,
            parts=parts,
            loop=loop,
            clock=self._clock,
            store=lambda: self._client.store,
            stalled_after=self.settings.stalled_after,
            on_stalled=self._report_stall,
            attempts_kept=self._client.settings.retention.attempts,
        )
        watchdog.end_process = self.on_stalled
        questions = Questions(self.id, lambda: self._client.store, inspector, self)
        return questions.look, watchdog.check

    def dump(self) -> str:
        """Return the stacks of all threads and tasks, with tenant and job. Not in the worker's loop."""
        return "the worker has not started\n" if self._inspector is None else self._inspector.dump()

    def _report_stall(self, seconds: float) -> None:
        report.stalled(self.id, seconds)
        write_dump(self.id, "stalled", self.dump)

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
        attempt.control.stop(cause.value, is_lost=cause.is_lost)
        if self._loop is not None and self._parts is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._parts.dispatcher.stop, attempt, cause)

    def handed_back(self, attempts: list[LiveAttempt]) -> None:
        """Forget attempts that the keep-alive has handed back, as soon as the loop turns again."""
        if self._loop is not None and self._parts is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._parts.dispatcher.forget, attempts)

    def leases_renewed(self, at: Micros) -> None:
        """Let the children live: their leases were good at this moment."""
        if self._parts is not None:
            good_for = self.settings.lease - (self._clock.elapsed() - at)
            self._parts.executor.children.leases_renewed(good_for)

    def loop_blocked(self) -> None:
        """Called when a handler blocks the worker's event loop (S31)."""
        if not self.is_loop_blocked:
            self.is_loop_blocked = True
            self.on_loop_blocked()

    def memory_exceeded(self, used: int) -> None:
        """Called when the process takes more memory than `max_memory`."""
        report.max_memory_reached(self.id, used)
        self.replace()

    def alive(self) -> None:
        """Called about once a second, as long as the portal thread runs."""
        self._observer.alive()
