"""Tell of attempts in log records that carry tenant, job, attempt and correlation. Decides nothing."""

from __future__ import annotations

import logging
from logging import getLogger
from typing import Final

from fairlane.model.failure import Failure
from fairlane.model.lifecycle import State
from fairlane.store.contract.registry import WorkerCard
from fairlane.worker.attempt import Attempt, Cause
from fairlane.worker.lane import Done

log: Final = getLogger("fairlane.worker")


def settled(done: Done, state: State) -> None:
    """Tell how an attempt ended. A success is for the curious alone: it is the hot path."""
    settlement = done.settlement
    if settlement.outcome != "failed" and state is not State.DEAD:
        if log.isEnabledFor(logging.DEBUG):
            text = "job %s of %s, attempt %d: %s"
            _tell(logging.DEBUG, "job_settled", text, done.attempt, settlement.outcome, state=state.value)
        return
    level = logging.ERROR if state is State.DEAD else logging.WARNING
    most = done.attempt.claim.job.max_attempts
    failure = settlement.failure
    now = state.value if settlement.delay == 0 else f"{state.value} for {settlement.delay / 1e6:.1f} s"
    why = f"now {now}, failure {settlement.failures} of {most}, {_reason(settlement.because, failure)}"
    text = "job %s of %s, attempt %d: %s"
    facts: dict[str, object] = {
        "state": state.value,
        "failures": settlement.failures,
        "max_attempts": most,
        "delay_s": settlement.delay / 1e6,
    }
    if failure is not None:
        facts |= {"error_class": failure.error_class.value, "error_type": failure.error_type}
        if failure.traceback is not None:
            facts["traceback"] = failure.traceback  # shown by those who ask for it
    _tell(level, "job_dead" if state is State.DEAD else "job_failed", text, done.attempt, why, **facts)


def _reason(because: str | None, failure: Failure | None) -> str:
    """Say why in a line: what follows, and class, type and text of the error."""
    if failure is None:
        return because or ""
    word = (because or "").partition(":")[0]
    kind = failure.error_type.rpartition(".")[2]
    said = f"{kind}: {failure.message}" if failure.message else kind
    return f"{word}: {failure.error_class.value}: {said}"


def stale(done: Done) -> None:
    """Tell that a settlement came too late: somebody else has the job."""
    text = "job %s of %s, attempt %d: %s, but its claim was lost and the store took no notice"
    _tell(logging.WARNING, "settlement_stale", text, done.attempt, done.settlement.outcome)


def succeeded_by_itself(done: Done) -> None:
    """Tell that a handler's own transaction has settled its job (S63), and what it did afterwards."""
    is_strange = done.settlement.outcome != "succeeded"
    text = "job %s of %s, attempt %d: succeeded in its handler's own transaction; it then %s"
    level = logging.WARNING if is_strange else logging.DEBUG
    _tell(level, "job_settled", text, done.attempt, done.settlement.outcome, state=State.SUCCEEDED.value)


def left_open(done: Done) -> None:
    """Tell that a handler has ended and left its own transaction open: that alone decides now."""
    text = "job %s of %s, attempt %d: ended as %s, but its own transaction is still open and decides"
    _tell(logging.WARNING, "transaction_left_open", text, done.attempt, done.settlement.outcome)


def stopped(attempt: Attempt, cause: Cause) -> None:
    """Tell that a handler was asked to stop."""
    text = "job %s of %s, attempt %d: asked to stop, %s"
    _tell(logging.WARNING, "handler_stopped", text, attempt, cause.value, cause=cause.name.lower())


def abandoned(attempt: Attempt) -> None:
    """Tell that a handler did not stop and is counted on no more."""
    text = "job %s of %s, attempt %d: the handler did not stop and was given up%s"
    _tell(logging.ERROR, "handler_abandoned", text, attempt, "")


def classifier_failed(attempt: Attempt, said: str) -> None:
    """Tell that a task's classifier raised (S27)."""
    text = "job %s of %s, attempt %d: the task's classifier raised: %s"
    _tell(logging.ERROR, "classifier_failed", text, attempt, said)


def unknown(attempt: Attempt, newest: int | None, *, is_news: bool) -> None:
    """Tell of a job whose task, or its version, nobody here knows (S33); loudly of the first of its kind."""
    level = logging.WARNING if is_news else logging.DEBUG
    text = "job %s of %s, attempt %d: handed back, %s; the next ones like it are told at DEBUG only"
    if newest is None:
        _tell(level, "task_unknown", text, attempt, "this worker does not know its task")
        return
    version = attempt.claim.job.version
    why = f"it is of version {version}, and this worker knows {newest}"
    _tell(level, "version_unknown", text, attempt, why, version=version, newest=newest)


# ── the worker itself ─────────────────────────────────────────────────────────


def started(card: WorkerCard) -> None:
    """Tell that a worker begins."""
    facts = {
        "worker": card.id,
        "labels": list(card.labels),
        "queues": list(card.queues),
        "slots": card.slots,
        "tasks": len(card.tasks),
    }
    text = "%s (%s) serves %s with %d slots, %d tasks"
    log.info(
        text,
        card.id,
        ", ".join(card.labels),
        ", ".join(card.queues),
        card.slots,
        len(card.tasks),
        extra={"event": "worker_started", **facts},
    )


def stopping(worker: str, running: int, *, in_haste: bool) -> None:
    """Tell that a worker was told to stop."""
    how = "at once" if in_haste else "in good order"
    text = "%s stops %s, %d jobs run"
    log.info(
        text, worker, how, running, extra={"event": "worker_stopping", "worker": worker, "running": running}
    )


def had_enough(worker: str, settled: int) -> None:
    """Tell that a worker has done as many jobs as it may."""
    log.info(
        "%s stops after %d jobs",
        worker,
        settled,
        extra={"event": "worker_had_enough", "worker": worker},
    )


def standstill(worker: str) -> None:
    """Tell that the event loop does not turn any more (S31)."""
    text = "%s: the event loop stands still, a handler blocks it beyond its timeout"
    log.critical(text, worker, extra={"event": "worker_standstill", "worker": worker})


def leaving_failed(error: Exception) -> None:
    """Tell that a worker could not take itself off the list."""
    log.warning("the worker could not say that it leaves: %s", error, extra={"event": "worker_leave_failed"})


def left(worker: str, settled: int, failed: int) -> None:
    """Tell that a worker is gone, and what it has done."""
    facts = {"worker": worker, "settled": settled, "failed": failed}
    text = "%s has left, %d attempts settled, %d of them failed"
    log.info(text, worker, settled, failed, extra={"event": "worker_left", **facts})


def _tell(level: int, event: str, text: str, attempt: Attempt, last: str, **facts: object) -> None:
    job = attempt.claim.job
    extra = {"event": event, **attempt.about(), **facts}
    log.log(level, text, job.id, job.task, job.attempt, last, extra=extra)
