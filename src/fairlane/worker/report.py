"""Tell of attempts in log records that carry tenant, job, attempt and correlation. Decides nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from logging import getLogger
from typing import Final

from fairlane.model.failure import ErrorClass, Failure, describe, shown
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle import State
from fairlane.model.overload import Overload
from fairlane.model.policy import Lane
from fairlane.store.contract.registry import WorkerCard
from fairlane.worker.attempt import Attempt, Cause
from fairlane.worker.lane import Done

log: Final = getLogger("fairlane.worker")


def settled(done: Done, state: State) -> None:
    """Tell how an attempt ended. A success is for the curious alone: it is the hot path."""
    settlement = done.settlement
    if settlement.outcome != "failed" and state is not State.DEAD:
        if settlement.failure is not None and state is State.SUCCEEDED:
            text = "job %s of %s, attempt %d: succeeded, but its result was dropped: %s"
            _tell(logging.WARNING, "result_dropped", text, done.attempt, settlement.failure.message)
        elif log.isEnabledFor(logging.DEBUG):
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


def broken(attempt: Attempt, error: BaseException) -> None:
    """Tell that something around a handler raised: the attempt fails by it, and nothing else does."""
    text = "job %s of %s, attempt %d: it could not be run or settled as it should: %s"
    said = f"{type(error).__name__}: {shown(error)}"
    _tell(logging.ERROR, "attempt_broken", text, attempt, said, error_type=type(error).__name__)


# ── the worker itself ─────────────────────────────────────────────────────────


def started(card: WorkerCard) -> None:
    """Tell that a worker begins."""
    facts = {
        "worker": card.id,
        "labels": list(card.labels),
        "queues": list(card.queues),
        "slots": card.slots,
        "headroom": card.headroom,
        "tasks": len(card.tasks),
    }
    text = "%s (%s) serves %s with %d slots, %d tasks"
    _log(
        logging.INFO,
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
    extra = {"event": "worker_stopping", "worker": worker, "running": running}
    _log(logging.INFO, text, worker, how, running, extra=extra)


def had_enough(worker: str, settled: int) -> None:
    """Tell that a worker has done as many jobs as it may."""
    extra = {"event": "worker_had_enough", "worker": worker}
    _log(logging.INFO, "%s stops after %d jobs", worker, settled, extra=extra)


def standstill(worker: str) -> None:
    """Tell that the event loop does not turn any more (S31)."""
    text = "%s: the event loop stands still, a handler blocks it beyond its timeout"
    _log(logging.CRITICAL, text, worker, extra={"event": "worker_standstill", "worker": worker})


def slots_left(worker: str, lane: str, slots: int) -> None:
    """Tell that a lane ends with slots that nothing is held in any more: a defect of Fairlane."""
    text = "%s: lane %s ends, %d of its slots are held by nothing; please report this"
    extra = {"event": "slots_left", "worker": worker, "lane": lane, "slots": slots}
    _log(logging.ERROR, text, worker, lane, slots, extra=extra)


def broken_down(worker: str, error: BaseException) -> None:
    """Tell that a worker ends because its own code raised."""
    text = "%s ends, its own code raised %s: %s; what it held runs elsewhere once its leases are over"
    failure = describe(error, ErrorClass.CRASH)
    extra = {"event": "worker_broken", "worker": worker, "traceback": failure.traceback}
    _log(logging.CRITICAL, text, worker, failure.error_type, failure.message, extra=extra)


def overloaded(worker: str, lane: Lane, queue: str, found: Overload) -> None:
    """Tell that a lane has been full for a while and jobs that might start wait."""
    busy, seconds = lane.slots - lane.headroom_slots, found.waited / SECOND
    kept = f" ({lane.headroom_slots} more are kept as headroom)" if lane.headroom_slots else ""
    text = (
        "lane %s: %d slots%s were busy for a minute, and the next jobs of queue %s, of %d tenants, have "
        "waited for up to %.0f s: more work comes than is done; add workers or slots"
    )
    facts = {"worker": worker, "lane": lane.name, "queue": queue, "slots": lane.slots}
    extra = {"event": "lane_overloaded", **facts, "waited_s": seconds, "tenants": found.tenants}
    told = (lane.name, busy, kept, queue, found.tenants, seconds)
    _log(logging.WARNING, text, *told, extra=extra)


def caught_up(worker: str, lane: Lane) -> None:
    """Tell that a lane has had room again for a while."""
    extra = {"event": "lane_caught_up", "worker": worker, "lane": lane.name}
    _log(logging.INFO, "lane %s has caught up", lane.name, extra=extra)


def leaving_failed(error: Exception) -> None:
    """Tell that a worker could not take itself off the list."""
    text = "the worker could not say that it leaves: %s"
    _log(logging.WARNING, text, error, extra={"event": "worker_leave_failed"})


def left(worker: str, settled: int, failed: int) -> None:
    """Tell that a worker is gone, and what it has done."""
    facts = {"worker": worker, "settled": settled, "failed": failed}
    text = "%s has left, %d attempts settled, %d of them failed"
    _log(logging.INFO, text, worker, settled, failed, extra={"event": "worker_left", **facts})


def _tell(level: int, event: str, text: str, attempt: Attempt, last: str, **facts: object) -> None:
    job = attempt.claim.job
    extra = {"event": event, **attempt.about(), **facts}
    _log(level, text, job.id, job.task, job.attempt, last, extra=extra)


def _log(level: int, text: str, *args: object, extra: Mapping[str, object]) -> None:
    """Log; what a log handler of the application raises is no matter of the attempt that is told of."""
    try:
        log.log(level, text, *args, extra=extra, stacklevel=3)
    except Exception as error:  # noqa: BLE001 (see above; Python's own handlers say so in the same place)
        with suppress(OSError, ValueError):
            sys.stderr.write(f"fairlane: a log handler raised {type(error).__name__}\n")
