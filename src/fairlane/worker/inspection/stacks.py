"""The stacks of a worker: of its threads and of its tasks, with tenant and job. Runs in any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from traceback import walk_stack
from types import FrameType
from typing import Any

from fairlane.runtime.stacks import Stack, task_stacks, thread_stacks
from fairlane.worker.attempts.live_attempts import LiveAttempt


def worker_stacks(loop: asyncio.AbstractEventLoop, attempts: Iterable[LiveAttempt]) -> Iterator[Stack]:
    """Return the stack of each thread and of each task of the worker's loop; of a handler's, its attempt."""
    by_task: Mapping[Any, LiveAttempt] = {one.task: one for one in attempts if one.task is not None}

    def of_task(task: asyncio.Task[Any]) -> str | None:
        attempt = by_task.get(task)
        return None if attempt is None else describe_attempt(attempt)

    yield from thread_stacks(_of_thread)
    yield from task_stacks(loop, "the worker's loop", of_task)


def _of_thread(frame: FrameType) -> str | None:
    attempt = _attempt_of(frame)
    return None if attempt is None else describe_attempt(attempt)


def describe_attempt(attempt: LiveAttempt) -> str:
    """Name an attempt: tenant, job, task and number; and whether it was abandoned."""
    job = attempt.claim.job
    over = ", abandoned" if attempt.is_over else ""
    return f"tenant {job.tenant}, job {job.id}, task {job.task}, attempt {job.attempt}{over}"


def _attempt_of(frame: FrameType) -> LiveAttempt | None:
    """Return the attempt whose handler runs in a thread: the innermost one in a frame of the worker."""
    for one, _ in walk_stack(frame):
        if str(one.f_globals.get("__name__", "")).startswith("fairlane.worker."):
            for value in one.f_locals.values():
                if isinstance(value, LiveAttempt):
                    return value
    return None
