"""How long finished jobs are stored (S52, S103), and how much of their history. Knows ages, not clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from fairlane.model.instants import DAY, Instant, Micros
from fairlane.model.job import ATTEMPTS_KEPT, JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.model.review import ReviewRecord

MOST_NEWEST: Final = 100_000
"""The most jobs that a limit by number may keep: a pass looks for the last of them."""


class CountCuts(msgspec.Struct, frozen=True):
    """The settlement of the last job that a limit by number keeps; what ended before goes, with 0 nothing.

    A store that is nearly full may move the cut of what is `finished` further (S126).
    """

    finished: Instant = 0
    dead: Instant = 0


NO_CUTS: Final = CountCuts()


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long to store finished jobs: by state, or by queue, tenant or task. Counted from the settlement.

    `results` may be shorter than the time of their job; `keys` is how long idempotency keys are stored after
    the settlement. `attempts` is how many ended attempts a job's record keeps (S24).

    `dead` is for dead letters that await a decision, or whose job runs again; `dead_reviewed` for those that
    were resolved, ignored or discarded, counted from that decision, or from the death unless
    `is_from_review`.

    `newest_finished` and `newest_dead` bound how many are kept in the whole store. A job with a time of its
    own, by queue, tenant or task, is counted, and kept for that time.

    `store_limit` is how many bytes the store may take; close to it history goes before its time (S126).
    """

    succeeded: Micros = 7 * DAY
    cancelled: Micros = 7 * DAY
    dead: Micros = 30 * DAY
    dead_reviewed: Micros = 7 * DAY
    is_from_review: bool = True
    results: Micros = 7 * DAY
    keys: Micros = 7 * DAY
    attempts: int = ATTEMPTS_KEPT
    newest_finished: int | None = None
    newest_dead: int | None = None
    store_limit: int | None = None
    queues: Mapping[str, Micros] = {}
    tenants: Mapping[str, Micros] = {}
    tasks: Mapping[str, Micros] = {}

    def own(self, queue: str, tenant: str, task: str) -> Micros | None:
        """Return the time that was given for a task, else for a tenant, else for a queue; None without one.

        >>> Retention(queues={"bulk": 5}, tasks={"report": 9}).own("bulk", "acme", "report")
        9
        """
        return self.tasks.get(task, self.tenants.get(tenant, self.queues.get(queue)))

    def keep(self, state: State, queue: str, tenant: str, task: str) -> Micros:
        """Return the most specific time for a finished job: by task, then tenant, then queue, then state.

        >>> Retention(queues={"bulk": 5}).keep(State.SUCCEEDED, "bulk", "acme", "report")
        5
        """
        by_state = {
            State.SUCCEEDED: self.succeeded,
            State.CANCELLED: self.cancelled,
            State.DEAD: self.dead,
        }[state]
        own = self.own(queue, tenant, task)
        return by_state if own is None else own

    def dead_until(self, job: JobRecord, record: ReviewRecord) -> Instant:
        """Return until when a dead letter is stored. A time of its own counts from the death."""
        died_at = job.settled_at or 0
        own = self.own(job.queue, job.tenant, job.task)
        if own is not None:
            return died_at + own
        if record.review in {"pending", "reprocessed"} or record.decided is None:
            return died_at + self.dead
        return (record.decided.at if self.is_from_review else died_at) + self.dead_reviewed

    def is_over(self, job: JobRecord, record: ReviewRecord, now: Instant, cuts: CountCuts) -> bool:
        """Whether a finished job is no longer stored, by its age or by how many ended after it."""
        settled_at = job.settled_at or 0
        is_dead = job.state is State.DEAD
        cut = cuts.dead if is_dead else cuts.finished
        if settled_at < cut and self.own(job.queue, job.tenant, job.task) is None:
            return True
        if is_dead:
            return now >= self.dead_until(job, record)
        return now - settled_at >= self.keep(job.state, job.queue, job.tenant, job.task)

    @property
    def has_own(self) -> bool:
        """Whether any queue, tenant or task has a time of its own."""
        return any(True for _ in self._own_times())

    @property
    def ages(self) -> tuple[Micros, ...]:
        """Return every age at which something of a succeeded or cancelled job may go, shortest first."""
        return tuple(sorted({self.succeeded, self.cancelled, self.results, *self._own_times()}))

    @property
    def longest(self) -> Micros:
        """Return how old a succeeded or cancelled job is when no setting keeps it any longer."""
        return max(self.succeeded, self.cancelled, *self._own_times())

    @property
    def shortest_dead(self) -> Micros:
        """Return how old a dead letter must be at least before any age removes it."""
        return min(self.dead, self.dead_reviewed, *self._own_times())

    def _own_times(self) -> Iterator[Micros]:
        for times in (self.queues, self.tenants, self.tasks):
            yield from times.values()
