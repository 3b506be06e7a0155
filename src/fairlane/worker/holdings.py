"""All that a worker holds: read by the thread that renews while the loop adds and drops. Asks no store."""

from __future__ import annotations

from uuid import UUID

from fairlane.worker.attempt import Attempt


class Holdings:
    """Attempts by job, from claim to accepted settlement; and those that lost their claim but still run."""

    def __init__(self) -> None:
        self._by_job: dict[UUID, Attempt] = {}
        self._strays: set[Attempt] = set()

    def __len__(self) -> int:
        return len(self._by_job) + len(self._strays)

    def add(self, attempt: Attempt) -> Attempt | None:
        """Hold an attempt; an older one of the same job has lost its claim and is given."""
        older = self._by_job.get(attempt.claim.job.id)
        if older is not None:
            self.stray(older)
        self._by_job[attempt.claim.job.id] = attempt
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
        return list(self._by_job.values())

    def running(self) -> list[Attempt]:
        """Give the attempts whose handlers run, those that lost their claims included."""
        return [attempt for attempt in (*self.held(), *self._strays) if not attempt.is_over]
