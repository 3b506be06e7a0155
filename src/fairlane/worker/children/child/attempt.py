"""One attempt inside a child process: its context, its handler, its result. Sends no result itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from contextvars import Context as Variables
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fairlane.app.ambient import set_ambient
from fairlane.app.client import Client
from fairlane.app.resources import OpenResources
from fairlane.app.task.budgets import budget_of
from fairlane.app.task.context import AttemptControl, Context, ambient_of
from fairlane.app.task.declaration import Declaration
from fairlane.app.task.job_metadata import room_of
from fairlane.model.instants import SECOND, Instant, to_datetime
from fairlane.model.job import Claim, Progress
from fairlane.model.policy.amounts import Millionths
from fairlane.model.scope import SYSTEM
from fairlane.worker.attempts.live_attempts import StopCause
from fairlane.worker.attempts.run_handler import in_tenant_context
from fairlane.worker.attempts.soft_timeout import with_soft_timeout
from fairlane.worker.attempts.succeed_in import succeed_in
from fairlane.worker.children.connection import ConnectionLost, WorkerConnection
from fairlane.worker.children.protocol import MetadataWritten, Reported, Spent, Start, SucceededIn

if TYPE_CHECKING:
    from fairlane.worker.children.child.stops import ChildStops

REPORT_EVERY: Final = 0.1
"""Seconds between two reports that are sent: a handler may report in every iteration."""


class ChildControl(AttemptControl):
    """The control of an attempt in a child: sends progress and metadata to the worker, which renews."""

    __slots__ = ("_connection", "_sent_at", "_timer")

    def __init__(self, connection: WorkerConnection) -> None:
        super().__init__()
        self._connection = connection
        self._sent_at = 0.0
        self._timer: threading.Timer | None = None

    def set_progress(self, progress: Progress) -> None:
        """Send progress now, or soon if something was sent a moment ago."""
        super().set_progress(progress)
        self._send_soon()

    def set_metadata(self, metadata: bytes) -> None:
        """Send metadata now, or soon; the end of the attempt has it in any case."""
        super().set_metadata(metadata)
        self._send_soon()

    def spend(self, amount: Millionths) -> None:
        """Send what was spent at once: money is not lost with the child."""
        super().spend(amount)
        with suppress(ConnectionLost):  # the end of the attempt finds out why
            self._connection.send(Spent(self.spent))

    def _send_soon(self) -> None:
        if self._timer is not None:
            return
        wait = self._sent_at + REPORT_EVERY - time.monotonic()
        if wait <= 0:
            self._send()
            return
        self._timer = threading.Timer(wait, self._send_late)
        self._timer.name, self._timer.daemon = "fairlane-progress", True
        self._timer.start()

    def _send_late(self) -> None:
        self._timer = None
        self._send()

    def _send(self) -> None:
        progress, metadata = self.take_progress(), self.take_metadata()
        try:
            if progress is not None:
                self._sent_at = time.monotonic()
                self._connection.send(Reported(progress))
            if metadata is not None:
                self._sent_at = time.monotonic()
                self._connection.send(MetadataWritten(metadata))
        except ConnectionLost:
            self._sent_at = float("inf")  # the end of the attempt finds out why

    def end(self) -> None:
        """Send nothing any more: progress of an attempt that is over is of no use."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


class ChildAttempt:
    """An attempt as a child sees it. `cause` is why the worker stops it."""

    def __init__(self, start: Start, declared: Declaration, connection: WorkerConnection) -> None:
        self.claim = Claim(start.job, start.fence, start.lease_until)
        self.declared = declared
        self.control = ChildControl(connection)
        self.cause: StopCause | None = None
        self.task: asyncio.Task[Any] | None = None
        self._connection = connection
        self._store_ahead = start.store_now - _elapsed()

    def store_now(self) -> Instant:
        """Return the store's time, as far as the worker knows it."""
        return self._store_ahead + _elapsed()

    def context(self, client: Client, worker: str, resources: OpenResources) -> Context:
        """Return what the handler sees."""
        job = self.claim.job
        wall = time.time_ns() // 1_000
        return Context(
            tenant=job.tenant,
            attempt=job.attempt,
            version=job.version,
            worker=worker,
            show=partial(client.show, job),
            fence=self.claim.fence,
            control=self.control,
            succeed=partial(self._succeed, client, worker),
            resources=resources,
            deadline=None if job.timeout is None else to_datetime(wall + job.timeout),
            metadata_room=room_of(job, client.settings.payload.max_size),
            budget=budget_of(self.declared, client.settings),
        )

    async def _succeed(self, client: Client, worker: str, connection: Any, result: Any) -> None:
        await succeed_in(client, worker, self, connection, result)
        self._connection.send(SucceededIn())  # before the commit: a renewal must not take it for a lost claim


class HandlerRunner:
    """Runs handlers in the main thread, one after the other: plain ones directly, async ones in one loop."""

    def __init__(self, client: Client, worker: str, stops: ChildStops) -> None:
        self._client = client
        self._worker = worker
        self._stops = stops
        self._resources = OpenResources(client.resources)
        self._runner: asyncio.Runner | None = None

    def open(self) -> None:
        """Open the application's resources in the loop of async handlers; `StartupFailed` if one cannot."""
        if self._client.resources.is_declared:
            self._loop().run(self._resources.open())

    def run(self, attempt: ChildAttempt, arguments: dict[str, Any], variables: Variables) -> Any:
        """Call the handler in its tenant's context, and whatever the application wraps around it."""
        handler, hook = attempt.declared.handler, self._client.tenant_context
        spans_tenants = attempt.declared.system and attempt.claim.job.tenant == SYSTEM
        context = attempt.context(self._client, self._worker, self._resources)
        journals = self._client.journals
        variables.run(set_ambient, ambient_of(context, is_system=spans_tenants, journals=journals))
        given = (context,) if handler.takes_context else ()
        call = partial(handler.func, *given, **arguments)
        around = None if hook is None else variables.run(hook, context)
        if handler.is_async:
            return self._run_async(attempt, call, around, variables)
        if isinstance(around, AbstractAsyncContextManager):
            return self._run_inside_async(call, around, variables)
        if around is not None:
            call = partial(_inside, around, call)
        return self._stops.call(variables, call)

    def close(self) -> None:
        """Close the resources and the loop, and with it the store that it has opened."""
        if self._resources.is_open:
            self._loop().run(self._resources.close())
        if self._runner is not None:
            self._runner.close()

    def _run_async(
        self,
        attempt: ChildAttempt,
        call: Callable[[], Any],
        around: AbstractContextManager[Any] | AbstractAsyncContextManager[Any] | None,
        variables: Variables,
    ) -> Any:
        async def work() -> Any:
            attempt.task = asyncio.current_task()
            if attempt.control.stop_reason is not None and attempt.task is not None:
                attempt.task.cancel()  # stopped before there was a task
            has_soft_timeout = attempt.declared.soft_timeout is not None

            def call_handler(call: Callable[[], Any]) -> Any:
                return with_soft_timeout(call(), attempt) if has_soft_timeout else call()

            try:
                return await in_tenant_context(around, call_handler, call, is_async=True)
            finally:
                attempt.task = None

        runner = self._loop()
        self._stops.watch(runner.get_loop())
        return runner.run(work(), context=variables)

    def _run_inside_async(
        self, call: Callable[[], Any], around: AbstractAsyncContextManager[Any], variables: Variables
    ) -> Any:
        """Call a plain handler inside an async context manager, which is entered and left in the loop."""
        runner = self._loop()
        runner.run(_enter(around), context=variables)
        try:
            result = self._stops.call(variables, call)
        except BaseException as error:
            leaving = _leave(around, type(error), error, error.__traceback__)
            if runner.run(leaving, context=variables):
                return None
            raise
        runner.run(_leave(around, None, None, None), context=variables)
        return result

    def _loop(self) -> asyncio.Runner:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner


async def _enter(around: AbstractAsyncContextManager[Any]) -> None:
    await around.__aenter__()


async def _leave(around: AbstractAsyncContextManager[Any], *why: Any) -> bool | None:
    return await around.__aexit__(*why)


def _inside(around: AbstractContextManager[Any], call: Callable[[], Any]) -> Any:
    with around:
        return call()


def _elapsed() -> int:
    return time.monotonic_ns() * SECOND // 10**9
