"""Explain why a job is not running: the reason, until when, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlane.model.instants import to_datetime
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.origin import ScheduledSlot
from fairlane.store.contract.jobs import Reason, Why

_ADVICE: Final[Mapping[Reason, str]] = {
    "turn": "It waits for its turn. If that takes too long, add slots, or give its tenant a higher weight.",
    "time": "It was enqueued for a later time. `app.jobs.run_now(id)` makes it ready.",
    "retry": "Its last attempt failed; it will be tried again. `app.jobs.run_now(id)` skips the wait.",
    "snooze": "Its handler asked to come back. `app.jobs.run_now(id)` skips the wait.",
    "unknown_task": "The worker that claimed it does not know its task, and handed it back for another. If "
    "none has the task, start one: after an hour without any it is dead. "
    "`app.jobs.run_now(id)` skips the wait.",
    "unknown_version": "Its arguments are newer than the code of the worker that claimed it, which handed it "
    "back for another. If none has that code, deploy it: after an hour without any it is dead. "
    "`app.jobs.run_now(id)` skips the wait.",
    "paused": "Nothing of this is claimed until the pause ends. Resume it, or wait for its end.",
    "running_limit": "Its tenant runs as many jobs of the queue as it may. Raise the limit, or wait.",
    "rate": "Starts are spaced out by a rate. Raise the rate or its burst, or wait.",
    "gate": "Its gate is full. Raise the gate's limit, or wait for a job that holds it to end.",
    "breaker": "What its task calls has failed too often. Its breaker will let one job pass, then more; "
    "`app.breakers.reset(name)` lets all pass at once.",
    "budget": "Its budget has no room for another job. Raise the ceiling, or wait for what running jobs "
    "give back or for the next period.",
    "no_worker": "No live worker serves its queue. Start one, or add the queue to a lane.",
    "running": "It is running. Its attempts say where and since when.",
    "finished": "It has ended and will not run again.",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """The answer of `app.jobs.explain`: the first thing that keeps a job from running.

    `subject` names what holds it, `advice` says what to do. `ahead` counts the jobs of its tenant that go
    first, None where that is unknown. `schedule` and `slot` are what led to the job, None if no schedule did.
    """

    reason: Reason
    subject: str
    until: datetime | None
    ahead: int | None
    advice: str
    schedule: str | None = None
    slot: datetime | None = None


def waiting_of(why: Why, pause: Hold | None = None, origin: ScheduledSlot | None = None) -> Waiting:
    """Return a store's answer with advice, with who has paused it, and with the schedule that led to it.

    >>> waiting_of(Why("gate", "gate screenshots 3/3")).advice
    "Its gate is full. Raise the gate's limit, or wait for a job that holds it to end."
    """
    until = None if why.until is None else to_datetime(why.until)
    subject = why.subject if pause is None else f"{why.subject} paused by {pause.who}: {pause.reason}"
    schedule, slot = (None, None) if origin is None else (origin.schedule, to_datetime(origin.slot))
    return Waiting(why.reason, subject, until, why.ahead, _ADVICE[why.reason], schedule, slot)
