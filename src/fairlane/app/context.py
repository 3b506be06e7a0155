"""What a handler sees of its attempt, and the worker's end of the same line. Knows no store and no loop."""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import cached_property
from logging import Logger, LoggerAdapter
from typing import Any, Final, TypeAlias

from fairlane.app.ambient import Ambient
from fairlane.app.attempt_log import AttemptLog, Tail
from fairlane.app.job import Job
from fairlane.app.sync import run_here
from fairlane.model.errors import Unsupported
from fairlane.model.failure import bounded
from fairlane.model.job import Progress
from fairlane.model.outcome import Cancel

Succeed: TypeAlias = Callable[[Any, Any], Coroutine[Any, Any, None]]
"""Settles the attempt as succeeded on a connection, with a result."""

NOTE_CHARS: Final = 500
"""How much of a note on progress is kept."""


class SoftTimeout(CancelledError):  # noqa: N818 (a cancellation is no error)
    """The attempt has run for its `soft_timeout`: finish what matters, the hard limit comes next (S31).

    Raised once, where an `async` handler awaits, or by `Context.check` in a plain one. It is a cancellation
    to everything between: what would tidy up after being cancelled does, and `except Exception` lets it pass.
    """


class Rein:
    """The worker's end: tells the handler to stop, and takes its progress along with the next renewal."""

    __slots__ = ("_is_soft_told", "_progress", "has_succeeded", "is_soft", "stop_reason", "tail")

    def __init__(self) -> None:
        self.has_succeeded = False  # in a transaction of the handler's own, if that commits
        self.stop_reason: str | None = None
        self.is_soft = False
        self.tail: Tail | None = None
        self._is_soft_told = False
        self._progress: Progress | None = None

    def stop(self, reason: str) -> None:
        """Ask the handler to stop; the first reason stays."""
        if self.stop_reason is None:
            self.stop_reason = reason

    def take_soft(self) -> bool:
        """Whether the soft timeout is reached and the handler is to hear of it now: True once."""
        is_due = self.is_soft and not self._is_soft_told
        self._is_soft_told = self.is_soft
        return is_due

    def note(self, progress: Progress) -> None:
        """Keep the newest progress."""
        self._progress = progress

    def put_back(self, progress: Progress) -> None:
        """Keep what was taken but could not be told, unless there is something newer."""
        if self._progress is None:
            self._progress = progress

    def take_progress(self) -> Progress | None:
        """Give the newest progress that was not taken yet, if there is any (S62)."""
        newest, self._progress = self._progress, None
        return newest


class Context:
    """One attempt, from inside its handler: whose it is, how long it may take, whether it should stop.

    `fence` grows with every claim of the job: show it to outside systems that must refuse the late. It has up
    to 53 bits, microseconds of the store's clock: keep it in a `bigint`. `version` is the one that the job
    was enqueued with; its arguments are those of the handler's own.
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
        rein: Rein,
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
        self._rein = rein
        self._succeed = succeed or _belongs_to_nobody

    @cached_property
    def job(self) -> Job[Any]:
        """The job as it was when this attempt began."""
        return self._show()  # made when somebody looks: most handlers never do

    @cached_property
    def log(self) -> LoggerAdapter[Logger]:
        """A logger that names the attempt in every record; its last lines are kept with the attempt."""
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
        self._rein.tail = Tail()
        return AttemptLog(about, self._rein.tail)

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: its job was cancelled, its claim was lost, or its time is over."""
        return self._rein.stop_reason is not None or self._rein.is_soft

    def check(self) -> None:
        """Do nothing, or raise if the handler should stop: for loops that nobody can interrupt.

        `Cancel` if it must stop, `SoftTimeout` once when its soft timeout is reached.
        """
        if self._rein.stop_reason is not None:
            raise Cancel(self._rein.stop_reason)
        if self._rein.take_soft():
            raise SoftTimeout

    def progress(self, fraction: float, note: str = "") -> None:
        """Say how far the work is, from 0 to 1; what lies outside is bounded.

        Only the newest word is kept; it is written with the next renewal of the lease, not now.
        """
        if math.isnan(fraction):
            message = "progress is a fraction from 0 to 1, not NaN"
            raise ValueError(message)
        self._rein.note(Progress(min(1.0, max(0.0, float(fraction))), bounded(note, NOTE_CHARS)))

    def succeed_in(self, connection: Any, result: Any = None) -> None:
        """Let the attempt succeed with the commit of the transaction that is open on this connection (S63).

        Its effects and its success are one step then: both happen, or neither. If the transaction is rolled
        back, what the handler returns or raises counts, as ever. `ClaimLost` if another has the job by now:
        roll back. Connections as those of `using(connection=)`; for an asynchronous one await `asucceed_in`.
        """
        run_here(self._succeed(connection, result))

    async def asucceed_in(self, connection: Any, result: Any = None) -> None:
        """Let the attempt succeed with the commit of the transaction on this connection; see `succeed_in`."""
        await self._succeed(connection, result)


async def _belongs_to_nobody(connection: Any, result: Any) -> None:  # noqa: ARG001 (see Succeed)
    raise Unsupported("this context was made by hand: there is no attempt that could succeed")


def ambient_of(context: Context, *, is_system: bool = False) -> Ambient:
    """Say on whose behalf a handler acts; that of a task declared `system` may act for any tenant."""
    return Ambient(context.tenant, lambda: context.job, is_system)
