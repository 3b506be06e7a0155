"""The errors of changing policies."""

from __future__ import annotations

from fairlane.model.errors import Refused


class QueueNotEmpty(Refused):
    """A queue in which jobs wait or run cannot be removed. Nothing was changed."""

    def __init__(self, queue: str, jobs: int) -> None:
        """Name the queue and how many jobs are in it."""
        super().__init__(
            f"{jobs} job(s) wait or run in queue {queue}; close it, and remove it when they have ended"
        )
        self.queue = queue
        self.jobs = jobs
