"""The settlement of an attempt: its result, with what its handler has written and spent. Decides nothing."""

from __future__ import annotations

from fairlane.model.job import Settlement
from fairlane.model.retry.backoff import RetryPolicy
from fairlane.model.retry.decision import MAX_CRASHES, AttemptResult, decide_settlement
from fairlane.worker.attempts.live_attempts import StoppableAttempt


def settlement_of(
    attempt: StoppableAttempt,
    result: AttemptResult,
    *policies: RetryPolicy | None,
    draw: float,
    log: str | None = None,
    max_crashes: int = MAX_CRASHES,
) -> Settlement:
    """Return the settlement of a result; its metadata and its spend are always in it (S73, S113)."""
    written, spent = attempt.control.metadata, attempt.control.spent
    return decide_settlement(
        attempt.claim,
        result,
        *policies,
        draw=draw,
        max_crashes=max_crashes,
        log=log,
        metadata=written,
        spent=spent,
    )
