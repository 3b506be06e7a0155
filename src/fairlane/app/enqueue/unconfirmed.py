"""The jobs of an enqueue that was not confirmed, so that its error can send them again (S15).

Sends nothing itself: the client does. Shows nothing of the jobs' arguments.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from fairlane.app.job import Job
from fairlane.app.portal import Portal
from fairlane.model.errors import EnqueueUnknown
from fairlane.model.job import NewJob

_IDS_SHOWN: Final = 10


class JobSender(Protocol):
    """What can send jobs again: a client."""

    @property
    def portal(self) -> Portal:
        """The portal that runs blocking calls."""
        ...

    async def arepeat(self, jobs: tuple[NewJob, ...], *, is_batch: bool) -> list[Job[Any]]:
        """Send jobs again whose enqueue was not confirmed."""
        ...


class UnconfirmedJobs:
    """The jobs of one enqueue, as sent. Sending them again is safe: no id is stored twice."""

    __slots__ = ("_is_batch", "_jobs", "_sender")

    def __init__(self, sender: JobSender, jobs: tuple[NewJob, ...], *, is_batch: bool) -> None:
        self._sender = sender
        self._jobs = jobs
        self._is_batch = is_batch

    def __repr__(self) -> str:
        return f"<Unconfirmed: {len(self._jobs)} job(s)>"

    def repeat(self) -> Any:
        """Send them again, and return what the enqueue would have returned."""
        return self._sender.portal.run(self.arepeat())

    async def arepeat(self) -> Any:
        """Send them again, and return what the enqueue would have returned."""
        jobs = await self._sender.arepeat(self._jobs, is_batch=self._is_batch)
        return jobs if self._is_batch else jobs[0]


def unknown(sender: JobSender, jobs: tuple[NewJob, ...], *, is_batch: bool) -> EnqueueUnknown:
    """Return the error of an enqueue whose outcome is unknown."""
    shown = ", ".join(str(job.id) for job in jobs[:_IDS_SHOWN])
    more = f" and {len(jobs) - _IDS_SHOWN} more" if len(jobs) > _IDS_SHOWN else ""
    has_keys = all(job.idempotency_key is not None for job in jobs)
    advice = "" if has_keys else " (repeating the call itself would create other jobs)"
    message = (
        f"sent and not confirmed, so the jobs may or may not be stored: {shown}{more}; "
        f"send them again under the same ids with error.repeat(){advice}, or look for them with app.jobs.get"
    )
    sent = UnconfirmedJobs(sender, jobs, is_batch=is_batch)
    return EnqueueUnknown(message, retry_safe=has_keys, ids=[job.id for job in jobs], sent=sent)
