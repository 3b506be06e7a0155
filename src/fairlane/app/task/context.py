"""What a handler sees of its attempt, and how the worker controls it. Knows no store and no event loop."""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import cached_property
from logging import Logger, LoggerAdapter
from typing import Any, Final, TypeAlias

from fairlane.app.ambient import Ambient
from fairlane.app.job import Job
from fairlane.app.portal import run_here
from fairlane.app.task.attempt_log import AttemptLog, LogTail
from fairlane.model.errors import Unsupported
from fairlane.model.failure import bounded
from fairlane.model.job import Progress
from fairlane.model.retry.outcome import Cancel

Succeed: TypeAlias = Callable[[Any, Any], Coroutine[Any, Any, None]]
"""Settles the attempt as succeeded in the transaction of a connection, with a result."""

NOTE_CHARS: Final = 500
"""Longest stored note on progress."""


class SoftTimeout(CancelledError):  # noqa: N818 (a cancellation is no error)
    """The attempt has run for its `soft_timeout`: finish what matters before the hard timeout (S31).

    Raised once: at an `await` of an async handler, or by `Context.check` in a plain one. It is a subclass of
    `CancelledError`, so libraries clean up as after a cancellation and `except Exception` does not catch it.
    """


class AttemptControl:
    """The worker's side of a `Context`: asks the handler to stop, and collects its progress for renewals."""

    __slots__ = (
        "_is_soft_timeout_raised",
        "_progress",
        "has_succeeded",
        "is_soft_timeout_due",
        "stop_reason",
        "tail",
    )

    def __init__(self) -> None:
        self.has_succeeded = False  # through `succeed_in`, if the handler's transaction commits
        self.stop_reason: str | None = None
        self.is_soft_timeout_due = False
        self.tail: LogTail | None = None
        self._is_soft_timeout_raised = False
        self._progress: Progress | None = None

    def stop(self, reason: str) -> None:
        """Ask the handler to stop; the first reason wins."""
        if self.stop_reason is None:
            self.stop_reason = reason

    def take_soft_timeout(self) -> bool:
        """Return True once after the soft timeout is due, so that it is raised once."""
        is_due = self.is_soft_timeout_due and not self._is_soft_timeout_raised
        self._is_soft_timeout_raised = self.is_soft_timeout_due
        return is_due

    def set_progress(self, progress: Progress) -> None:
        """Replace the progress to report."""
        self._progress = progress

    def put_back(self, progress: Progress) -> None:
        """Restore progress whose renewal failed, unless there is newer progress."""
        if self._progress is None:
            self._progress = progress

    def take_progress(self) -> Progress | None:
        """Return the latest progress that was not taken yet, or None (S62)."""
        newest, self._progress = self._progress, None
        return newest


class Context:
    """The running attempt, as its handler sees it: tenant, job, deadline, and whether to stop.

    `fence` grows with every claim of the job: pass it to external systems so that they can reject a worker
    that lost its claim. It has up to 53 bits (microseconds of the store's clock): store it as `bigint`.
    `version` is the task version with which the job was enqueued; the arguments are already converted to
    the handler's version.
    """

    tenant: str
    attempt: int
    version: int
    fence: int
    deadline: datetime | None

    def __init__(
        self,
        *,
        tenant: str,
        attempt: int,
        show: Callable[[], Job[Any]],
        fence: int,
        control: AttemptControl,
        succeed: Succeed | None = None,
        deadline: datetime | None = None,
        version: int = 1,
        worker: str | None = None,
    ) -> None:
        self.tenant = tenant
        self.attempt = attempt
        self.version = version
        self.fence = fence
        self.deadline = deadline
        self._show = show
        self._worker = worker
        self._control = control
        self._succeed = succeed or _belongs_to_nobody

    @cached_property
    def job(self) -> Job[Any]:
        """The job as it was when this attempt started."""
        return self._show()  # built at the first access: most handlers never ask

    @cached_property
    def log(self) -> LoggerAdapter[Logger]:
        """A logger whose records name the attempt; its last lines are stored with the attempt."""
        job = self.job
        about = {
            "tenant": job.tenant,
            "job": str(job.id),
            "task": job.task,
            "queue": job.queue,
            "attempt": job.attempt,
            "worker": self._worker,
            "correlation": job.correlation_id,
        }
        self._control.tail = LogTail()
        return AttemptLog(about, self._control.tail)

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: the job was cancelled, the claim was lost, or a timeout is due."""
        return self._control.stop_reason is not None or self._control.is_soft_timeout_due

    def check(self) -> None:
        """Raise if the handler should stop: call it in loops of plain handlers, which nothing can interrupt.

        Raises `Cancel` if the attempt must stop, and `SoftTimeout` once when the soft timeout is due.
        """
        if self._control.stop_reason is not None:
            raise Cancel(self._control.stop_reason)
        if self._control.take_soft_timeout():
            raise SoftTimeout

    def progress(self, fraction: float, note: str = "") -> None:
        """Report how far the work is, from 0 to 1; values outside are clamped.

        Only the latest report is stored, with the next renewal of the lease: calling it often costs nothing.
        """
        if math.isnan(fraction):
            message = "progress is a fraction from 0 to 1, not NaN"
            raise ValueError(message)
        self._control.set_progress(Progress(min(1.0, max(0.0, float(fraction))), bounded(note, NOTE_CHARS)))

    def succeed_in(self, connection: Any, result: Any = None) -> None:
        """Settle the attempt as succeeded when the transaction open on this connection commits (S63).

        The handler's effects and its success then commit together, or neither does. If the transaction is
        rolled back, the handler's return value or exception counts as usual. `ClaimLost` if the claim is
        another worker's by now: roll back. Takes the connections of `using(connection=)`; for an async one
        await `asucceed_in`.
        """
        run_here(self._succeed(connection, result))

    async def asucceed_in(self, connection: Any, result: Any = None) -> None:
        """Settle the attempt as succeeded when this connection's transaction commits; see `succeed_in`."""
        await self._succeed(connection, result)


async def _belongs_to_nobody(connection: Any, result: Any) -> None:  # noqa: ARG001 (see Succeed)
    raise Unsupported("this context was not created by a worker: there is no attempt to settle")


def ambient_of(context: Context, *, is_system: bool = False) -> Ambient:
    """Return the ambient tenant of a handler; a handler of a `system` task may act for every tenant."""
    return Ambient(context.tenant, lambda: context.job, is_system)
