"""Count the handlers that were abandoned and still run. Ends none of them: nothing can."""

from __future__ import annotations

import asyncio

from fairlane.runtime.thread_pool import ThreadCall
from fairlane.worker.attempts.live_attempts import LiveAttempt


class AbandonedHandlers:
    """Handlers that ignored their end. Added in the worker's loop, counted from any thread."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._threads: list[ThreadCall] = []

    def add(self, attempt: LiveAttempt) -> None:
        """Note that a handler was abandoned; a plain one counts by its thread."""
        if attempt.thread_call is not None:
            self._threads = [call for call in (*self._threads, attempt.thread_call) if not call.is_done]
        elif attempt.task is not None:
            self._tasks = [task for task in (*self._tasks, attempt.task) if not task.done()]

    @property
    def has_tasks(self) -> bool:
        """Whether an async handler still runs."""
        return any(not task.done() for task in self._tasks)

    @property
    def count(self) -> int:
        """How many still run."""
        return sum(not task.done() for task in self._tasks) + sum(not call.is_done for call in self._threads)
