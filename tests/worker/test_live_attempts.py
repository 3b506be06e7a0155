"""The attempts that a worker holds, as the portal thread sees them while the worker's loop moves them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from fairlane.worker.attempts.live_attempts import LiveAttempt, LiveAttempts
from fairlane.worker.attempts.unknown_tasks import UNKNOWN_TASK


class _ReadAfterEachRemoval(dict[int, LiveAttempt]):
    """A dictionary that calls a function after each removal, as if another thread looked then."""

    def __init__(self, attempts: LiveAttempts) -> None:
        super().__init__()
        self._attempts = attempts
        self.seen: list[list[LiveAttempt]] = []

    def __delitem__(self, key: int) -> None:
        """Remove, then look."""
        super().__delitem__(key)
        self.seen.append(self._attempts.running())


def attempt() -> LiveAttempt:
    """Make an attempt of a job that is always the same."""
    claim = SimpleNamespace(job=SimpleNamespace(id=UUID(int=1)))
    made = LiveAttempt(cast("Any", claim), UNKNOWN_TASK, cast("Any", None), 0)
    made.started_at = 1
    return made


def test_an_attempt_that_loses_its_claim_is_never_out_of_sight() -> None:
    """The portal thread may look between any two steps: it sees an attempt twice rather than not at all."""
    attempts, older, newer = LiveAttempts(), attempt(), attempt()
    attempts._by_job = by_job = _ReadAfterEachRemoval(attempts)
    attempts.take(older)
    assert attempts.take(newer) is older
    assert by_job.seen == [[older]]
    assert set(attempts.running()) == {older, newer}
