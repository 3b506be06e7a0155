"""All that a worker holds: the renewing thread adds and reads while the loop takes and drops. Asks no store.

Nothing is guarded: a change is one step of one dictionary, and what moves is in its new place before it has
left the old.
"""

from __future__ import annotations

from uuid import UUID

from fairlane.worker.attempt import Attempt


class Holdings:
    """Attempts by job, from claim to accepted settlement; and those that lost their claim but still run.

    An attempt that has arrived is held, but the loop does not know of it yet.
    """

    def __init__(self) -> None:
        self._arrived: dict[tuple[UUID, int], Attempt] = {}
        self._by_job: dict[UUID, Attempt] = {}
        self._strays: set[Attempt] = set()

    def __len__(self) -> int:
        return len(self._by_job) + len(self._strays)

    def arrive(self, attempt: Attempt) -> None:
        """Hold an attempt from the moment its claim is here. Called in the renewing thread."""
        self._arrived[attempt.claim.job.id, attempt.claim.fence] = attempt

    def take(self, attempt: Attempt) -> Attempt | None:
        """Let the loop have what has arrived; an older attempt of the job has lost its claim and is given."""
        older = self._by_job.get(attempt.claim.job.id)
        if older is not None:
            self.stray(older)
        self._by_job[attempt.claim.job.id] = attempt
        self._arrived.pop((attempt.claim.job.id, attempt.claim.fence), None)
        return older

    def stray(self, attempt: Attempt) -> None:
        """Note that an attempt has lost its claim while its handler still runs."""
        if self._by_job.get(attempt.claim.job.id) is attempt:
            del self._by_job[attempt.claim.job.id]
            self._strays.add(attempt)

    def drop(self, attempt: Attempt) -> None:
        """Hold an attempt no more."""
        self._strays.discard(attempt)
        if self._by_job.get(attempt.claim.job.id) is attempt:
            del self._by_job[attempt.claim.job.id]

    def held(self) -> list[Attempt]:
        """Give the attempts whose claims are ours, at most one a job. May be asked from any thread."""
        arrived = list(self._arrived.values())  # before the others: attempts move this way
        newest = {**self._by_job, **{attempt.claim.job.id: attempt for attempt in arrived}}
        return list(newest.values())

    def running(self) -> list[Attempt]:
        """Give the attempts whose handlers run, those that lost their claims included."""
        known = list(self._by_job.values())
        return [attempt for attempt in (*known, *self._strays) if not attempt.is_over]
