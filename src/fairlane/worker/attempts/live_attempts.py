"""The attempts that this worker holds. Asks no store.

Each is held until the store has answered its settlement, or its claim is known to be lost.
The portal thread adds and reads attempts while the worker's loop takes and drops them. There is no lock: each
change is a single operation on one dictionary or set, and an attempt that moves is in its new place before it
leaves the old one.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from fairlane.app.task.context import AttemptControl
from fairlane.app.task.declaration import Declaration
from fairlane.model.instants import Micros, to_micros
from fairlane.model.job import Claim
from fairlane.runtime.thread_pool import ThreadCall

if TYPE_CHECKING:
    from fairlane.worker.lane_state import LaneState


class StopCause(Enum):
    """Why a worker stops a handler."""

    CANCEL = "its job was cancelled"
    LOST = "its lease could not be renewed"
    STALE = "its claim was lost"
    TIMEOUT = "it ran longer than its timeout"
    SHUTDOWN = "its worker is shutting down"

    @property
    def is_lost(self) -> bool:
        """Whether another worker may have the job, or soon will."""
        return self in {StopCause.LOST, StopCause.STALE}


class HandlerProcess(Protocol):
    """Where a handler runs that has a process of its own, or waits for one."""

    def stop(self, attempt: LiveAttempt) -> None:
        """Ask the handler to stop: for the attempt's cause or, if it has none, its soft timeout."""
        ...

    def terminate(self, attempt: LiveAttempt) -> None:
        """Ask the handler, and every process that it has started, to end."""
        ...

    def kill(self, attempt: LiveAttempt) -> None:
        """End the handler, and every process that it has started, now."""
        ...


class StoppableAttempt(Protocol):
    """An attempt whose handler runs in this process: the worker's, or that of a child."""

    @property
    def claim(self) -> Claim:
        """The claim."""
        ...

    @property
    def declared(self) -> Declaration:
        """What is declared for its task."""
        ...

    @property
    def control(self) -> AttemptControl:
        """How the handler is told to stop."""
        ...

    @property
    def cause(self) -> StopCause | None:
        """Why it is stopped."""
        ...

    @property
    def task(self) -> asyncio.Task[Any] | None:
        """The task of an async handler."""
        ...


class LiveAttempt:
    """A claim held by this worker. All instants are of the worker's monotonic clock.

    `claimed_at` is when its claim arrived, `started_at` when it got a slot, `began_at` when its handler
    began; 0 until then. `ended_at` is when a plain handler ended, which the loop learns later. `leased_at` is
    when the lease was last known to be good; `hard_at` and `soft_at` are the timeouts. Until it `has_begun`,
    none of the handler's code has run. Once it `is_over`, the handler counts as ended: whatever it still does
    changes nothing. If it `is_abandoned_next`, it is not cancelled again. If it `is_counted_out`, its lane no
    longer counts it against its queue's `max_slots`. `hold_error` was raised before the worker's loop knew of
    it. `child` is the process of its handler. With `has_permit` it passes a breaker that is not closed;
    `outcomes` is how it has ended for its breaker, once that is known and until it is told.
    """

    __slots__ = (
        "began_at",
        "cause",
        "child",
        "claim",
        "claimed_at",
        "control",
        "declared",
        "ended_at",
        "give_up_at",
        "hard_at",
        "has_begun",
        "has_permit",
        "hold_error",
        "is_abandoned_next",
        "is_counted_out",
        "is_over",
        "lane",
        "leased_at",
        "outcomes",
        "soft_at",
        "started_at",
        "task",
        "thread_call",
    )

    def __init__(self, claim: Claim, declared: Declaration, lane: LaneState, leased_at: Micros) -> None:
        self.claim = claim
        self.declared = declared
        self.lane = lane
        self.leased_at = leased_at
        self.claimed_at: Micros = 0
        self.started_at: Micros = 0
        self.began_at: Micros = 0
        self.ended_at: Micros = 0
        self.control = AttemptControl()
        self.hard_at: Micros | None = None
        self.soft_at: Micros | None = None
        self.cause: StopCause | None = None
        self.give_up_at: Micros = 0
        self.has_begun = False
        self.has_permit = False
        self.outcomes: tuple[bool | None, ...] = ()
        self.is_abandoned_next = False
        self.is_counted_out = False
        self.is_over = False
        self.task: asyncio.Task[None] | None = None
        self.thread_call: ThreadCall | None = None
        self.child: HandlerProcess | None = None
        self.hold_error: BaseException | None = None

    def begin(self, now: Micros) -> None:
        """Set the timeouts: they count from the start of the handler (S31).

        Not from the start of its task: another handler may block the loop between the two.
        """
        self.has_begun = True
        self.began_at = now
        timeout = self.claim.job.timeout
        self.hard_at = None if timeout is None else now + timeout
        soft = self.declared.soft_timeout
        self.soft_at = None if soft is None else now + to_micros(soft)

    def log_fields(self) -> dict[str, object]:
        """Return the fields that every log record about this attempt carries."""
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


class LiveAttempts:
    """All live attempts by job, and orphans: attempts that lost their claim while their handler still runs.

    The portal thread holds a claim, and renews it, before the worker's loop takes it. Until it is started,
    either thread may hand it back: whoever removes it from the unstarted ones decides (`take_unstarted`).
    Jobs are keyed by the integer of their id: a UUID is hashed in Python code, four times as slowly.
    """

    def __init__(self) -> None:
        self._held: set[LiveAttempt] = set()
        self._unstarted: dict[LiveAttempt, bool] = {}
        self._by_job: dict[int, LiveAttempt] = {}
        self._orphans: set[LiveAttempt] = set()

    def __len__(self) -> int:
        return len(self._by_job) + len(self._orphans)

    def hold(self, attempt: LiveAttempt) -> None:
        """Hold an attempt from the moment its claim is here. Called in the portal thread."""
        self._unstarted[attempt] = True
        self._held.add(attempt)

    def take_unstarted(self, attempt: LiveAttempt) -> bool:
        """Take an attempt to start it or to hand it back; False if the other thread has. From any thread."""
        return self._unstarted.pop(attempt, False)

    def put_back_unstarted(self, attempt: LiveAttempt) -> None:
        """Let an attempt count as unstarted again: it could not be handed back. From any thread."""
        self._unstarted[attempt] = True

    def unstarted(self) -> list[LiveAttempt]:
        """Return the claims that were neither started nor handed back. May be called from any thread."""
        return list(self._unstarted)

    def take(self, attempt: LiveAttempt) -> LiveAttempt | None:
        """Let the worker's loop have an attempt that was held.

        Return the older attempt of the same job, if there is one: it has lost its claim.
        """
        key = attempt.claim.job.id.int
        older = self._by_job.get(key)
        if older is not None:
            self.orphan(older)
        self._by_job[key] = attempt
        self._held.discard(attempt)
        return older

    def orphan(self, attempt: LiveAttempt) -> None:
        """Note that an attempt has lost its claim while its handler still runs."""
        key = attempt.claim.job.id.int
        if self._by_job.get(key) is attempt:
            self._orphans.add(attempt)  # before it leaves the other place: see above
            del self._by_job[key]

    def release(self, attempt: LiveAttempt) -> None:
        """Forget an attempt and free its slot."""
        self._orphans.discard(attempt)
        self._held.discard(attempt)
        key = attempt.claim.job.id.int
        if self._by_job.get(key) is attempt:
            del self._by_job[key]
        attempt.lane.release(attempt)

    def claimed(self) -> list[LiveAttempt]:
        """Return the attempts whose claims are ours, at most one a job. May be called from any thread."""
        held = list(self._held)  # before the others: attempts move from here to there
        newest = {**self._by_job, **{attempt.claim.job.id.int: attempt for attempt in held}}
        return list(newest.values())

    def running(self) -> list[LiveAttempt]:
        """Return the attempts whose handlers run, orphans included. May be called from any thread."""
        known = list(self._by_job.values())
        return [one for one in (*known, *self._orphans) if one.started_at and not one.is_over]
