"""All that a worker holds: the renewing thread adds and reads while the loop takes and drops. Asks no store.

Nothing is guarded: a change is one step of one dictionary or set, and what moves is in its new place before
it has left the old.
"""

from __future__ import annotations

from fairlane.worker.attempt import Attempt


class Holdings:
    """Attempts by job, from claim to accepted settlement; and those that lost their claim but still run.

    An attempt that has arrived is held, but the loop does not know of it yet. Jobs are keyed by the number of
    their id: a UUID is hashed in Python, four times as slowly.
    """

    def __init__(self) -> None:
        self._arrived: set[Attempt] = set()
        self._by_job: dict[int, Attempt] = {}
        self._strays: set[Attempt] = set()

    def __len__(self) -> int:
        return len(self._by_job) + len(self._strays)

    def arrive(self, attempt: Attempt) -> None:
        """Hold an attempt from the moment its claim is here. Called in the renewing thread."""
        self._arrived.add(attempt)

    def take(self, attempt: Attempt) -> Attempt | None:
        """Let the loop have what has arrived; an older attempt of the job has lost its claim and is given."""
        key = attempt.claim.job.id.int
        older = self._by_job.get(key)
        if older is not None:
            self.stray(older)
        self._by_job[key] = attempt
        self._arrived.discard(attempt)
        return older

    def stray(self, attempt: Attempt) -> None:
        """Note that an attempt has lost its claim while its handler still runs."""
        key = attempt.claim.job.id.int
        if self._by_job.get(key) is attempt:
            del self._by_job[key]
            self._strays.add(attempt)

    def drop(self, attempt: Attempt) -> None:
        """Hold an attempt no more."""
        self._strays.discard(attempt)
        key = attempt.claim.job.id.int
        if self._by_job.get(key) is attempt:
            del self._by_job[key]

    def held(self) -> list[Attempt]:
        """Give the attempts whose claims are ours, at most one a job. May be asked from any thread."""
        arrived = list(self._arrived)  # before the others: attempts move this way
        newest = {**self._by_job, **{attempt.claim.job.id.int: attempt for attempt in arrived}}
        return list(newest.values())

    def running(self) -> list[Attempt]:
        """Give the attempts whose handlers run, those that lost their claims included."""
        known = list(self._by_job.values())
        return [attempt for attempt in (*known, *self._strays) if not attempt.is_over]
