"""Keep the jobs of an enqueue that was not confirmed, so that its error can send them again (S15).

Sends nothing itself: it asks the application that it came from. Shows nothing of what the jobs carry.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from fairlane.app.job import Job
from fairlane.app.sync import Portal
from fairlane.model.errors import EnqueueUnknown
from fairlane.model.job import NewJob

_IDS_SHOWN: Final = 10


class Sender(Protocol):
    """What sends jobs again."""

    @property
    def portal(self) -> Portal:
        """Where plain callers come in."""
        ...

    async def arepeat(self, jobs: tuple[NewJob, ...], *, is_batch: bool) -> list[Job[Any]]:
        """Send jobs whose first sending was not confirmed."""
        ...


class Unconfirmed:
    """The jobs of one call as they were sent. Sent again, each makes itself or answers for itself."""

    __slots__ = ("_is_batch", "_jobs", "_sender")

    def __init__(self, sender: Sender, jobs: tuple[NewJob, ...], *, is_batch: bool) -> None:
        self._sender = sender
        self._jobs = jobs
        self._is_batch = is_batch

    def __repr__(self) -> str:
        return f"<Unconfirmed: {len(self._jobs)} job(s)>"

    def repeat(self) -> Any:
        """Send them and give what the call would have given."""
        return self._sender.portal.run(self.arepeat())

    async def arepeat(self) -> Any:
        """Send them and give what the call would have given."""
        jobs = await self._sender.arepeat(self._jobs, is_batch=self._is_batch)
        return jobs if self._is_batch else jobs[0]


def unknown(sender: Sender, jobs: tuple[NewJob, ...], *, is_batch: bool) -> EnqueueUnknown:
    """Give the error of an enqueue whose outcome stays unknown."""
    shown = ", ".join(str(job.id) for job in jobs[:_IDS_SHOWN])
    more = f" and {len(jobs) - _IDS_SHOWN} more" if len(jobs) > _IDS_SHOWN else ""
    has_keys = all(job.idempotency_key is not None for job in jobs)
    advice = "" if has_keys else " (not the call itself, which would make other jobs)"
    message = (
        f"sent and not confirmed, so the jobs may or may not be stored: {shown}{more}; "
        f"repeat them under the same ids with error.repeat(){advice}, or look for them with app.jobs.get"
    )
    sent = Unconfirmed(sender, jobs, is_batch=is_batch)
    return EnqueueUnknown(message, retry_safe=has_keys, ids=[job.id for job in jobs], sent=sent)
