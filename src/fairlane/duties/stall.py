"""Tell when the loop of the duties stands still: with all stacks, in the log (S127).

The lead is lost by itself, because nothing renews it: another process takes it, and goes on.
"""

from __future__ import annotations

import asyncio
from logging import CRITICAL, getLogger
from typing import Final

from fairlane.model.instants import SECOND, Micros
from fairlane.model.payload.sensitive import redact_text
from fairlane.runtime.last_words import log_or_print
from fairlane.runtime.loop_guard import LoopGuard
from fairlane.runtime.stacks import render, task_stacks, thread_stacks

MAX_CHARS: Final = 200_000
"""The longest dump."""

_log: Final = getLogger("fairlane.duties")


def guard_of_duties(name: str, lease: Micros, loop: asyncio.AbstractEventLoop) -> LoopGuard:
    """Return the guard of the loop in which a process does duties: it may stand still for one lease."""

    def stalled() -> None:
        stacks = [*thread_stacks(), *task_stacks(loop, "the loop of the duties")]
        text = redact_text(render(stacks))[:MAX_CHARS]
        message = "%s stands still: the loop of its duties has not turned for %.0f s, so another one may lead"
        args = (name, lease / SECOND)
        extra = {"event": "duties_stalled", "worker": name, "stacks": text}
        record = _log.makeRecord(
            _log.name, CRITICAL, __file__, 0, message, args, None, "stalled", extra, text
        )
        log_or_print(lambda: _log.handle(record), f"{message % args}\n{text}\n")

    def resumed() -> None:
        text, extra = "%s goes on: the loop of its duties turns again", {"event": "duties_resumed"}
        _log.warning(text, name, extra={**extra, "worker": name})

    return LoopGuard(lease, stalled, resumed)
