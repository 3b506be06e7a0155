"""A world for tests of the application side: a watched oracle store, and manual clocks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, cast

from fairlane import Context, Fairlane, Job
from fairlane.app.ambient import acting_as
from fairlane.app.task.context import ambient_of
from fairlane.model.errors import FairlaneError
from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import Claim, JobRecord
from fairlane.model.payload.encoding import encode_result
from fairlane.model.retry.decision import AttemptResult, Failed, Succeeded, decide_settlement
from fairlane.model.scope import Scope
from fairlane.store.contract import FACETS, Store
from fairlane.store.contract.claims import ClaimRequest, QueueRequest, SettleRequest
from fairlane.store.contract.request import Request
from fairlane.store.opening import StoreClock, register_scheme
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore

WORKER = "worker-1"


def note(text: Any = "", other: Any = None) -> None:
    """Take anything: the handler of tests that are not about handlers."""


def handling(context: Context, *, is_system: bool = False) -> AbstractContextManager[None]:
    """Surround a block with a handler's tenant and job, as a worker surrounds the handler."""
    return acting_as(ambient_of(context, is_system=is_system))


class Watched:
    """A facet that notes what it is asked, and can be told to fail before or after it has answered."""

    def __init__(self, facet: object, world: World) -> None:
        """Stand before the real facet."""
        self._facet = facet
        self._world = world

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        """Return a verb of the facet, watched."""
        real: Callable[..., Awaitable[Any]] = getattr(self._facet, verb)

        async def watched(*requests: Request) -> Any:
            self._world.asked.append((verb, *requests))
            before = self._world.fail_before.pop(0) if self._world.fail_before else None
            if before is not None:
                raise before
            answer = await real(*requests)
            after = self._world.fail_after.pop(0) if self._world.fail_after else None
            if after is not None:
                raise after
            return answer

        return watched


class WatchedStore:
    """The oracle behind watched facets."""

    def __init__(self, oracle: OracleStore, world: World) -> None:
        """Watch every facet."""
        for name in FACETS:
            setattr(self, name, Watched(getattr(oracle, name), world))


class RuntimeClock:
    """Stands in for the machine's clocks: waiting moves it, and lets something happen meanwhile."""

    def __init__(self) -> None:
        """Begin at some instant."""
        self.now: Micros = 1_800_000_000 * SECOND
        self.waits: list[Micros] = []
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []

    def wall(self) -> Instant:
        """Return the time."""
        return self.now

    def elapsed(self) -> Micros:
        """Return the time."""
        return self.now

    async def wait(self, duration: Micros) -> None:
        """Let time pass at once."""
        self.waits.append(duration)
        self.now += duration
        if self.meanwhile:
            await self.meanwhile.pop(0)()


class World:
    """One oracle store behind the scheme `oracle`, and what was asked of it."""

    def __init__(self) -> None:
        """Begin empty."""
        self.clock = DrivenClock()
        self.oracle = OracleStore(self.clock)
        self.asked: list[tuple[Any, ...]] = []
        self.fail_before: list[FairlaneError | None] = []
        self.fail_after: list[FairlaneError | None] = []
        self.opened = 0
        self.apps: list[Fairlane] = []
        register_scheme("oracle", self._open)

    def _open(self, url: str, clock: StoreClock | None) -> Store:
        assert (url, clock) == ("oracle://here", None)
        self.opened += 1
        return cast("Store", WatchedStore(self.oracle, self))

    def app(self, **settings: Any) -> Fairlane:
        """Make an application on this store."""
        made = Fairlane("oracle://here", **settings)
        self.apps.append(made)
        return made

    def verbs(self) -> list[str]:
        """Name what was asked, in order."""
        return [str(one[0]) for one in self.asked]

    def stored(self) -> list[JobRecord]:
        """Return all jobs in the order of their ids."""
        jobs = self.oracle.jobs._core.books.jobs
        return [jobs[id] for id in sorted(jobs)]

    def one(self) -> JobRecord:
        """Return the one job there is."""
        (job,) = self.stored()
        return job

    async def claim(self, queue: str = "default") -> Claim:
        """Claim the next job of a queue, as a worker does."""
        queue_requests = (QueueRequest(queue, 1),)
        request = ClaimRequest(
            scope=Scope.all(), worker=WORKER, lease=12 * SECOND, queue_requests=queue_requests, total=1
        )
        reply = await self.oracle.claims.claim(request)
        (claim,) = reply.claims
        return claim

    async def settle(self, claim: Claim, ending: AttemptResult) -> None:
        """End an attempt."""
        settlements = (decide_settlement(claim, ending, draw=0.5),)
        request = SettleRequest(scope=Scope.all(), worker=WORKER, settlements=settlements)
        assert (await self.oracle.claims.settle(request)).stale == ()

    async def succeed(self, result: object = None, queue: str = "default") -> None:
        """Run the next job of a queue to a good end."""
        await self.settle(await self.claim(queue), Succeeded(encode_result(result)))

    async def fail(
        self, message: str = "no line", kind: ErrorClass = ErrorClass.NON_RETRYABLE, queue: str = "default"
    ) -> None:
        """Run the next job of a queue to a bad end."""
        await self.settle(await self.claim(queue), Failed(Failure(kind, "FaxError", message, "trace")))

    def drive(self, app: Fairlane) -> RuntimeClock:
        """Take the machine's clocks away from an application."""
        clock = RuntimeClock()
        app.client.clock = clock
        return clock


def ids_of(jobs: list[Job[Any]]) -> list[object]:
    """Return the ids of jobs."""
    return [job.id for job in jobs]
