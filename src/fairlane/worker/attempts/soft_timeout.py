"""Deliver a soft timeout to an async handler as `SoftTimeout`. When it is due, `timeouts` decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any

from fairlane.app.task.context import SoftTimeout
from fairlane.worker.attempts.live_attempts import StoppableAttempt


@coroutine
def with_soft_timeout(work: Coroutine[Any, Any, Any], attempt: StoppableAttempt) -> Generator[Any, Any, Any]:
    """Run a handler's coroutine, and turn the cancellation that means its soft timeout into `SoftTimeout`.

    `timeouts` cancels the task. This is the handler's outermost frame, so whatever the handler awaits has
    been cancelled properly by the time the cancellation is replaced, which happens once. Everything else
    passes unchanged between the event loop and the handler.
    """
    step: Callable[[], Any] = partial(work.send, None)
    while True:
        try:
            awaited = step()
        except StopIteration as end:
            return end.value
        try:
            step = partial(work.send, (yield awaited))
        except asyncio.CancelledError as cancelled:
            is_soft_timeout_due = attempt.cause is None and attempt.control.take_soft_timeout()
            step = partial(work.throw, SoftTimeout() if is_soft_timeout_due else cancelled)
            if is_soft_timeout_due and attempt.task is not None:
                attempt.task.uncancel()
        except BaseException as error:  # noqa: BLE001 (passed on to the handler)
            step = partial(work.throw, error)
