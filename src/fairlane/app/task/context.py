"""What a handler sees of its attempt, and how the worker controls it. Knows no store and no event loop."""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, MutableMapping
from datetime import datetime
from functools import cached_property
from logging import Logger, LoggerAdapter
from threading import Lock
from typing import Any, Final, TypeAlias

from fairlane.app.ambient import Ambient
from fairlane.app.job import Job, Json
from fairlane.app.journal_buffer import JournalBuffer
from fairlane.app.portal import run_here
from fairlane.app.resources import OpenResources, Resources, T
from fairlane.app.task.attempt_log import AttemptLog, LogTail
from fairlane.app.task.job_metadata import JobMetadata
from fairlane.model.errors import ClaimLost, ConfigError, Unsupported
from fairlane.model.failure import bounded
from fairlane.model.job import Progress
from fairlane.model.policy.amounts import LARGEST, Amount, Millionths, to_millionths
from fairlane.model.policy.declared import Budget
from fairlane.model.retry.outcome import Cancel

Succeed: TypeAlias = Callable[[Any, Any], Coroutine[Any, Any, None]]
"""Settles the attempt as succeeded in the transaction of a connection, with a result."""

_NOTHING_OPEN: Final = OpenResources(Resources())

_SPENDING: Final = Lock()

NOTE_CHARS: Final = 500
"""Longest stored note on progress."""


class SoftTimeout(CancelledError):  # noqa: N818 (a cancellation is no error)
    """The attempt has run for its `soft_timeout`: finish what matters before the hard timeout (S31).

    Raised once: at an `await` of an async handler, or by `Context.check` in a plain one. It is a subclass of
    `CancelledError`, so libraries clean up as after a cancellation and `except Exception` does not catch it.
    """


class AttemptControl:
    """The worker's side of a `Context`: asks the handler to stop, and collects what it reports and writes.

    `metadata` is the job's, encoded, as the handler wrote it last; None if it wrote none. `spent` is the sum
    that the handler has spent so far, in millionths.
    """

    __slots__ = (
        "_is_soft_timeout_raised",
        "_progress",
        "_sent_spend",
        "_unsent_metadata",
        "has_succeeded",
        "is_lost",
        "is_soft_timeout_due",
        "metadata",
        "spent",
        "stop_reason",
        "tail",
    )

    def __init__(self) -> None:
        self.has_succeeded = False  # through `succeed_in`, if the handler's transaction commits
        self.stop_reason: str | None = None
        self.is_soft_timeout_due = False
        self.tail: LogTail | None = None
        self.metadata: bytes | None = None
        self.is_lost = False
        self.spent: Millionths = 0
        self._sent_spend: Millionths = 0
        self._unsent_metadata: bytes | None = None
        self._is_soft_timeout_raised = False
        self._progress: Progress | None = None

    def stop(self, reason: str, *, is_lost: bool = False) -> None:
        """Ask the handler to stop; the first reason wins. `is_lost`: another worker may have the job."""
        if self.stop_reason is None:
            self.stop_reason, self.is_lost = reason, is_lost

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

    def set_metadata(self, metadata: bytes) -> None:
        """Replace the metadata to store, with the next renewal and with the settlement (S73)."""
        self.metadata = self._unsent_metadata = metadata

    def put_back_metadata(self, metadata: bytes) -> None:
        """Restore metadata whose renewal failed, unless there is newer."""
        if self._unsent_metadata is None:
            self._unsent_metadata = metadata

    def spend(self, amount: Millionths) -> None:
        """Add to what was spent. Threads of one handler may spend at the same time."""
        with _SPENDING:
            self.spent = min(self.spent + amount, LARGEST)

    def put_back_spend(self) -> None:
        """Send the sum again: its renewal failed."""
        self._sent_spend = 0

    def take_spend(self) -> Millionths:
        """Return the sum if it has grown since it was taken last, else 0 (S113)."""
        if self.spent == self._sent_spend:
            return 0
        self._sent_spend = self.spent
        return self._sent_spend

    def take_metadata(self) -> bytes | None:
        """Return the latest metadata that was not taken yet, or None."""
        newest, self._unsent_metadata = self._unsent_metadata, None
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
        resources: OpenResources | None = None,
        metadata_room: int | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._budget = budget
        self._metadata_room = metadata_room
        self.tenant = tenant
        self.attempt = attempt
        self.version = version
        self.fence = fence
        self.deadline = deadline
        self._show = show
        self._worker = worker
        self._resources = resources
        self._control = control
        self._succeed = succeed or _belongs_to_nobody

    @cached_property
    def job(self) -> Job[Any]:
        """The job as it was when this attempt started."""
        return self._show()  # built at the first access: most handlers never ask

    @property
    def schedule(self) -> str | None:
        """The schedule that led to the job; None if none did."""
        return self.job.schedule

    @property
    def slot(self) -> datetime | None:
        """The instant of its schedule that the job is for, in UTC: work for this one, not for now.

        It is the same in every attempt, however late the job runs; None if no schedule led to the job.
        """
        return self.job.slot

    @cached_property
    def metadata(self) -> MutableMapping[str, Json]:
        """The job's metadata. What is written here is kept for the next attempts, and jobs are found by it.

        It is stored when the lease is renewed and when the attempt ends, however it ends, so
        `ctx.metadata["page"] = 7` makes no call of its own. Assign to change: a list or dict that is read is
        a copy. ValueError for what is not JSON, or too large: `payload.max_size` bounds it together with the
        arguments.
        """
        return JobMetadata(self.job.metadata, self._control.set_metadata, self._metadata_room)

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

    def resource(self, kind: type[T], /) -> T:
        """Return the process's resource of this kind, which `@app.resource(kind)` has declared.

        All handlers of a process share it, in the event loop and in threads: whether it may be used by
        several at once is its own matter. `ConfigError` if none is declared.
        """
        return (self._resources or _NOTHING_OPEN).get(kind)

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

    def spend(self, amount: Amount, currency: str | None = None) -> None:
        """Report what the handler has just spent, such as the price of a call to an API (S113).

        It is counted against the budget of the task, with the next renewal of the lease and at the end of
        the attempt, however it ends: calling it often costs nothing. ValueError if the amount is negative,
        not finite, has more than 6 decimals, or is in another currency than the budget; ConfigError if the
        task has no budget. ClaimLost if the attempt has lost its job: the amount is still counted.
        """
        if self._budget is None:
            message = f"task {self.job.task} has no budget: declare it with budget=, or in [tasks]"
            raise ConfigError(message)
        if currency is not None and currency != self._budget.currency:
            message = (
                f"{currency!r:.20} is not the currency of budget {self._budget.name}, {self._budget.currency}"
            )
            raise ValueError(message)
        self._control.spend(to_millionths(amount))
        if self._control.is_lost:
            raise ClaimLost(self.job.id, self.attempt)

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


def ambient_of(
    context: Context, *, is_system: bool = False, journals: JournalBuffer | None = None
) -> Ambient:
    """Return the ambient tenant of a handler; a handler of a `system` task may act for every tenant."""
    return Ambient(context.tenant, lambda: context.job, is_system, journals)
