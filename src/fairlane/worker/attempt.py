"""One claimed attempt, from its claim until its settlement is accepted. Facts only; others act on them."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING

from fairlane.app.context import Rein
from fairlane.app.declaration import Declaration
from fairlane.model.instants import Micros, to_micros
from fairlane.model.job import Claim
from fairlane.runtime.threads import Ticket

if TYPE_CHECKING:
    from fairlane.worker.lane import Desk


class Cause(Enum):
    """Why a worker stops a handler."""

    CANCEL = "its job was cancelled"
    LOST = "its lease could not be renewed"
    STALE = "its claim was lost"
    TIMEOUT = "it ran longer than its timeout"
    SHUTDOWN = "its worker is shutting down"


class Attempt:
    """A claim in the hands of this worker. All instants are of the worker's monotonic clock.

    `leased_at` is when the lease was last known to be good, `hard_at` and `soft_at` are its time limits.
    Until it `has_begun`, nothing of its handler was run. Once `is_over`, the handler counts as ended: what it
    still does changes nothing. `trouble` is what went wrong before the loop knew of it.
    """

    __slots__ = (
        "cause",
        "claim",
        "declared",
        "desk",
        "give_up_at",
        "hard_at",
        "has_begun",
        "is_over",
        "is_pressed",
        "leased_at",
        "rein",
        "soft_at",
        "task",
        "ticket",
        "trouble",
    )

    def __init__(self, claim: Claim, declared: Declaration, desk: Desk, leased_at: Micros) -> None:
        self.claim = claim
        self.declared = declared
        self.desk = desk
        self.leased_at = leased_at
        self.rein = Rein()
        self.hard_at: Micros | None = None
        self.soft_at: Micros | None = None
        self.cause: Cause | None = None
        self.give_up_at: Micros = 0
        self.has_begun = False
        self.is_pressed = False
        self.is_over = False
        self.task: asyncio.Task[None] | None = None
        self.ticket: Ticket | None = None
        self.trouble: BaseException | None = None

    def begin(self, now: Micros) -> None:
        """Set the time limits: they run from the start of the handler (S31).

        Not from the start of its task: another handler may block the loop between the two.
        """
        self.has_begun = True
        timeout = self.claim.job.timeout
        self.hard_at = None if timeout is None else now + timeout
        soft = self.declared.soft_timeout
        self.soft_at = None if soft is None else now + to_micros(soft)

    def about(self) -> dict[str, object]:
        """Give what every log record about this attempt carries."""
        job = self.claim.job
        return {
            "tenant": job.tenant,
            "job": str(job.id),
            "queue": job.queue,
            "task": job.task,
            "attempt": job.attempt,
            "worker": job.worker,
            "correlation": job.correlation_id,
        }
