"""The parts of a running worker, connected. Starts and ends none of them: `worker` does."""

from __future__ import annotations

from fairlane.app.fairlane import Fairlane
from fairlane.app.resources import OpenResources
from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.instants import Micros
from fairlane.runtime.clock import Clock, ClockOffset
from fairlane.runtime.loops import WakeUp
from fairlane.worker.attempts.live_attempts import LiveAttempts
from fairlane.worker.breaker_outcomes import learn_breakers
from fairlane.worker.dispatch import Dispatcher
from fairlane.worker.execute import Executor
from fairlane.worker.hints import HintListener
from fairlane.worker.lane_state import LaneState
from fairlane.worker.overload import OverloadMonitor
from fairlane.worker.settle import Settler
from fairlane.worker.shutdown import Shutdown
from fairlane.worker.timeouts import Timeouts


class WorkerParts:
    """The parts of a running worker, connected. All of them live in the worker's loop."""

    def __init__(
        self,
        worker: str,
        app: Fairlane,
        settings: WorkerSettings,
        clock: Clock,
        lanes: list[LaneState],
        resources: OpenResources,
        *,
        is_burst: bool,
    ) -> None:
        client = app.client
        learn_breakers(client)
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
            app=app,
            settings=settings,
            clock=clock,
            clock_offset=self.clock_offset,
            attempts=self.attempts,
            shutdown=self.shutdown,
            slots=sum(lane.policy.slots for lane in lanes),
            resources=resources,
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
