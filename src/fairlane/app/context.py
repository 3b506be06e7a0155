"""What a handler sees of its attempt, and the worker's end of the same line. Knows no store and no loop."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from datetime import datetime
from logging import Logger, LoggerAdapter, getLogger
from typing import Any, Final

from fairlane.app.ambient import Ambient, inside
from fairlane.app.job import Job
from fairlane.model.job import Progress
from fairlane.model.outcome import Cancel

NOTE_CHARS: Final = 500
"""How much of a note on progress is kept."""


class Rein:
    """The worker's end: tells the handler to stop, and takes its progress along with the next renewal."""

    __slots__ = ("_progress", "stop_reason")

    def __init__(self) -> None:
        self.stop_reason: str | None = None
        self._progress: Progress | None = None

    def stop(self, reason: str) -> None:
        """Ask the handler to stop; the first reason stays."""
        if self.stop_reason is None:
            self.stop_reason = reason

    def note(self, progress: Progress) -> None:
        """Keep the newest progress."""
        self._progress = progress

    def take_progress(self) -> Progress | None:
        """Give the newest progress that was not taken yet, if there is any (S62)."""
        newest, self._progress = self._progress, None
        return newest


class Context:
    """One attempt, from inside its handler: whose it is, how long it may take, whether it should stop.

    `fence` grows with every claim of the job: show it to outside systems that must refuse the late.
    """

    job: Job[Any]
    tenant: str
    attempt: int
    fence: int
    deadline: datetime | None
    log: LoggerAdapter[Logger]

    def __init__(self, *, job: Job[Any], fence: int, rein: Rein, deadline: datetime | None = None) -> None:
        self.job = job
        self.tenant = job.tenant
        self.attempt = job.attempt
        self.fence = fence
        self.deadline = deadline
        about = {"tenant": job.tenant, "job": str(job.id), "task": job.task, "attempt": job.attempt}
        self.log = LoggerAdapter(getLogger("fairlane.task"), about)
        self._rein = rein

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: its job was cancelled, or its claim was lost."""
        return self._rein.stop_reason is not None

    def check(self) -> None:
        """Do nothing, or raise `Cancel` if the handler should stop: for loops that nobody can interrupt."""
        if self._rein.stop_reason is not None:
            raise Cancel(self._rein.stop_reason)

    def progress(self, fraction: float, note: str = "") -> None:
        """Say how far the work is, from 0 to 1; what lies outside is bounded.

        Only the newest word is kept; it is written with the next renewal of the lease, not now.
        """
        if math.isnan(fraction):
            message = "progress is a fraction from 0 to 1, not NaN"
            raise ValueError(message)
        self._rein.note(Progress(min(1.0, max(0.0, float(fraction))), note[:NOTE_CHARS]))


def handling(context: Context, *, is_system: bool = False) -> AbstractContextManager[None]:
    """Surround a handler with its tenant and its job; a task declared `system` may act for any tenant."""
    return inside(Ambient(context.tenant, context.job, is_system))
