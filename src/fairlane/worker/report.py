"""Log what happens to attempts and to the worker. Decides nothing.

Every record about an attempt carries tenant, job, attempt and correlation.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from logging import getLogger
from typing import Final

from fairlane.model.failure import ErrorClass, Failure, describe, shown
from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.states import Because, State
from fairlane.model.policy.declared import Lane
from fairlane.model.scheduling.overload import Overload
from fairlane.store.contract.registry import WorkerRecord
from fairlane.worker.attempts.live_attempts import LiveAttempt, StopCause
from fairlane.worker.lane_state import PendingSettlement

log: Final = getLogger("fairlane.worker")


def settled(done: PendingSettlement, state: State) -> None:
    """Log how an attempt was settled. A success is logged at DEBUG only: this is the hot path."""
    settlement = done.settlement
    if settlement.outcome != "failed" and state is not State.DEAD:
        if settlement.failure is not None and state is State.SUCCEEDED:
            text = "job %s of %s, attempt %d: succeeded, but its result was dropped: %s"
            _log_attempt(logging.WARNING, "result_dropped", text, done.attempt, settlement.failure.message)
        elif state is State.CANCELLED and _is_skipped(settlement.because):
            text = "job %s of %s, attempt %d: nothing was done: %s"
            _log_attempt(logging.WARNING, "job_skipped", text, done.attempt, str(settlement.because))
        elif log.isEnabledFor(logging.DEBUG):
            text = "job %s of %s, attempt %d: %s"
            _log_attempt(
                logging.DEBUG, "job_settled", text, done.attempt, settlement.outcome, state=state.value
            )
        return
    level = logging.ERROR if state is State.DEAD else logging.WARNING
    max_attempts = done.attempt.claim.job.max_attempts
    failure = settlement.failure
    after = state.value if settlement.delay == 0 else f"{state.value} for {settlement.delay / 1e6:.1f} s"
    reason = _reason(settlement.because, failure)
    why = f"now {after}, failure {settlement.failures} of {max_attempts}, {reason}"
    text = "job %s of %s, attempt %d: %s"
    facts: dict[str, object] = {
        "state": state.value,
        "failures": settlement.failures,
        "max_attempts": max_attempts,
        "delay_s": settlement.delay / 1e6,
    }
    if failure is not None:
        facts |= {"error_class": failure.error_class.value, "error_type": failure.error_type}
        if failure.traceback is not None:
            facts["traceback"] = failure.traceback  # left out of the log line unless it is asked for
    _log_attempt(level, "job_dead" if state is State.DEAD else "job_failed", text, done.attempt, why, **facts)


def _is_skipped(because: str | None) -> bool:
    return (because or "").partition(":")[0] == Because.SKIPPED


def _reason(because: str | None, failure: Failure | None) -> str:
    """Return why in one line: what follows, and class, type and text of the error."""
    if failure is None:
        return because or ""
    follows = (because or "").partition(":")[0]
    error_type = failure.error_type.rpartition(".")[2]
    error = f"{error_type}: {failure.message}" if failure.message else error_type
    return f"{follows}: {failure.error_class.value}: {error}"


def stale(done: PendingSettlement) -> None:
    """Log that a settlement came too late: another worker has, or had, the job."""
    text = "job %s of %s, attempt %d: settlement as %s ignored: claim lost"
    _log_attempt(logging.WARNING, "settlement_stale", text, done.attempt, done.settlement.outcome)


def succeeded_in_transaction(done: PendingSettlement) -> None:
    """Log that a handler's own transaction has settled its job (S63), and what the handler did afterwards."""
    is_unexpected = done.settlement.outcome != "succeeded"
    text = "job %s of %s, attempt %d: succeeded in its handler's own transaction; it then %s"
    level = logging.WARNING if is_unexpected else logging.DEBUG
    _log_attempt(
        level, "job_settled", text, done.attempt, done.settlement.outcome, state=State.SUCCEEDED.value
    )


def transaction_left_open(done: PendingSettlement) -> None:
    """Log that a handler has ended and left its own transaction open, which alone decides now."""
    text = "job %s of %s, attempt %d: ended as %s, but its own transaction is still open and decides"
    _log_attempt(logging.WARNING, "transaction_left_open", text, done.attempt, done.settlement.outcome)


def stopped(attempt: LiveAttempt, cause: StopCause) -> None:
    """Log that a handler was asked to stop."""
    text = "job %s of %s, attempt %d: asked to stop, %s"
    _log_attempt(logging.WARNING, "handler_stopped", text, attempt, cause.value, cause=cause.name.lower())


def abandoned(attempt: LiveAttempt) -> None:
    """Log that a handler did not stop and was abandoned."""
    text = "job %s of %s, attempt %d: the handler did not stop and was abandoned%s"
    _log_attempt(logging.ERROR, "handler_abandoned", text, attempt, "")


def killed(attempt: LiveAttempt) -> None:
    """Log that a handler did not stop, and that its process was killed."""
    text = "job %s of %s, attempt %d: the handler did not stop, its process was killed%s"
    _log_attempt(logging.ERROR, "handler_killed", text, attempt, "")


def child_died(attempt: LiveAttempt, how: str) -> None:
    """Log that the process of a handler died under it."""
    text = "job %s of %s, attempt %d: its process died: %s"
    _log_attempt(logging.ERROR, "child_died", text, attempt, how)


def child_left_behind(attempt: LiveAttempt, leftovers: str) -> None:
    """Log that a child is replaced because of what a handler has left behind in it."""
    text = "job %s of %s, attempt %d: its process is replaced: %s"
    _log_attempt(logging.WARNING, "child_replaced", text, attempt, leftovers)


def classifier_failed(attempt: LiveAttempt, error: str) -> None:
    """Log that a task's classifier raised (S27)."""
    text = "job %s of %s, attempt %d: the task's classifier raised: %s"
    _log_attempt(logging.ERROR, "classifier_failed", text, attempt, error)


def retry_delay_failed(attempt: LiveAttempt, error: str) -> None:
    """Log that a task's function for its retry delay gave none (S26): the policy's counts."""
    text = "job %s of %s, attempt %d: the task's retry_delay is ignored: %s"
    _log_attempt(logging.ERROR, "retry_delay_failed", text, attempt, error)


def unknown_task(attempt: LiveAttempt, newest: int | None, *, is_first_of_kind: bool) -> None:
    """Log a job whose task or version is not known here (S33); only the first of its kind at WARNING."""
    level = logging.WARNING if is_first_of_kind else logging.DEBUG
    text = "job %s of %s, attempt %d: handed back, %s; the next ones like it are logged at DEBUG"
    if newest is None:
        _log_attempt(level, "task_unknown", text, attempt, "this worker does not know its task")
        return
    version = attempt.claim.job.version
    why = f"its version is {version}, and this worker knows {newest}"
    _log_attempt(level, "version_unknown", text, attempt, why, version=version, newest=newest)


def attempt_broken(attempt: LiveAttempt, error: BaseException) -> None:
    """Log that something around a handler raised: its attempt fails, and no other."""
    text = "job %s of %s, attempt %d: could not be run or settled normally: %s"
    raised = f"{type(error).__name__}: {shown(error)}"
    _log_attempt(logging.ERROR, "attempt_broken", text, attempt, raised, error_type=type(error).__name__)


# ── the worker itself ─────────────────────────────────────────────────────────


def started(record: WorkerRecord) -> None:
    """Log that a worker starts."""
    facts = {
        "worker": record.id,
        "labels": list(record.labels),
        "queues": list(record.queues),
        "slots": record.slots,
        "headroom": record.headroom,
        "tasks": len(record.tasks),
    }
    text = "%s (%s) serves %s with %d slots, %d tasks"
    _log(
        logging.INFO,
        text,
        record.id,
        ", ".join(record.labels),
        ", ".join(record.queues),
        record.slots,
        len(record.tasks),
        extra={"event": "worker_started", **facts},
    )


def stopping(worker: str, running: int, *, is_fast: bool) -> None:
    """Log that a worker was told to stop."""
    how = "now" if is_fast else "gracefully"
    text = "%s stops %s, %d jobs are running"
    extra = {"event": "worker_stopping", "worker": worker, "running": running}
    _log(logging.INFO, text, worker, how, running, extra=extra)


def max_jobs_reached(worker: str, started: int) -> None:
    """Log that a worker has started as many jobs as `max_jobs` allows."""
    extra = {"event": "worker_max_jobs_reached", "worker": worker}
    _log(logging.INFO, "%s stops after %d jobs: max_jobs is reached", worker, started, extra=extra)


def max_memory_reached(worker: str, used: int) -> None:
    """Log that a worker takes more memory than `max_memory` allows."""
    extra = {"event": "worker_max_memory_reached", "worker": worker, "resident": used}
    text = "%s stops, it takes %d MB of memory: max_memory is reached"
    _log(logging.WARNING, text, worker, used // 1_000_000, extra=extra)


def child_not_started(failure: Failure, pause: Micros) -> None:
    """Log that no child process could be started, and when the next is tried."""
    text = "no child process: %s: %s; the next try is in %.0f s"
    facts = {"error_type": failure.error_type, "traceback": failure.traceback}
    extra = {"event": "child_not_started", **facts}
    _log(logging.ERROR, text, failure.error_type, failure.message, pause / SECOND, extra=extra)


def guardian_died(pid: int) -> None:
    """Log that the guardian of the child processes has died, and that another is started."""
    text = "the guardian of the child processes, process %d, has died; another is started"
    _log(logging.WARNING, text, pid, extra={"event": "guardian_died", "pid": pid})


def suspects_in_place(worker: str) -> None:
    """Log that suspects run beside other jobs, because no child can import the application."""
    text = (
        "%s: a job that was lost with its worker runs beside others: no child process can import this "
        "application. Define it at the top of a module, and start it with `fairlane worker MODULE:APP`"
    )
    _log(logging.WARNING, text, worker, extra={"event": "suspects_in_place", "worker": worker})


def all_quarantined(worker: str, duration: Micros) -> None:
    """Log that handlers of every task run in child processes for a while."""
    text = "%s runs every handler in a child process for %d s: worker processes crashed one after the other"
    extra = {"event": "all_quarantined", "worker": worker}
    _log(logging.WARNING, text, worker, duration // SECOND, extra=extra)


def task_quarantined(worker: str, task: str, duration: Micros) -> None:
    """Log that handlers of one task run in child processes for a while."""
    text = "%s runs task %s in child processes for %d s: one of its jobs has ended its process"
    extra = {"event": "task_quarantined", "worker": worker, "task": task}
    _log(logging.WARNING, text, worker, task, duration // SECOND, extra=extra)


def loop_blocked(worker: str) -> None:
    """Log that a handler blocks the event loop (S31)."""
    text = "%s: the event loop is blocked by a handler that is past its timeout"
    _log(logging.CRITICAL, text, worker, extra={"event": "event_loop_blocked", "worker": worker})


def dump(worker: str, why: str, text: str) -> None:
    """Log the stacks of a worker. Formatters show them below the line, JSON as the field `stacks`."""
    extra = {"event": "worker_dump", "worker": worker, "stacks": text}
    message = "%s: the stacks of all threads and tasks (%s)"
    record = log.makeRecord(
        log.name, logging.WARNING, __file__, 0, message, (worker, why), None, "dump", extra, text
    )
    try:
        log.handle(record)
    except Exception as error:  # noqa: BLE001 (as in `_log`)
        with suppress(OSError, ValueError):
            sys.stderr.write(f"fairlane: a log handler raised {type(error).__name__}\n")


def asked(worker: str, kind: str) -> None:
    """Log that an operator has asked this worker something (S70)."""
    extra = {"event": "worker_asked", "worker": worker, "question": kind}
    _log(logging.INFO, "%s was asked for: %s", worker, kind, extra=extra)


def stalled(worker: str, seconds: float) -> None:
    """Log that a worker makes no progress while jobs wait (S31)."""
    extra = {"event": "worker_stalled", "worker": worker, "seconds": seconds}
    text = "%s is stalled: no slot has made progress for %.0f s while jobs wait"
    _log(logging.CRITICAL, text, worker, seconds, extra=extra)


def too_many_abandoned(worker: str, count: int) -> None:
    """Log that a worker is replaced because too many handlers ignored their end."""
    extra = {"event": "worker_too_many_abandoned", "worker": worker, "abandoned": count}
    text = "%s asks to be replaced: %d abandoned handlers still run, more than max_abandoned"
    _log(logging.ERROR, text, worker, count, extra=extra)


def slots_lost(worker: str, lane: str, slots: int) -> None:
    """Log that a lane ends with slots that are taken by nothing: a defect of Fairlane."""
    text = "%s: lane %s ends with %d slots taken by no job; please report this"
    extra = {"event": "slots_left", "worker": worker, "lane": lane, "slots": slots}
    _log(logging.ERROR, text, worker, lane, slots, extra=extra)


def worker_broken(worker: str, error: BaseException) -> None:
    """Log that a worker ends because its own code raised."""
    text = "%s ends, its own code raised %s: %s; its jobs run elsewhere once their leases have expired"
    failure = describe(error, ErrorClass.CRASH)
    extra = {"event": "worker_broken", "worker": worker, "traceback": failure.traceback}
    _log(logging.CRITICAL, text, worker, failure.error_type, failure.message, extra=extra)


def overloaded(worker: str, lane: Lane, queue: str, found: Overload) -> None:
    """Log that a lane has been full for a while, and jobs wait that could start."""
    busy, seconds = lane.slots - lane.headroom_slots, found.waited / SECOND
    headroom = f" ({lane.headroom_slots} more are kept as headroom)" if lane.headroom_slots else ""
    text = (
        "lane %s: %d slots%s were busy for a minute, and the next jobs of queue %s, of %d tenants, have "
        "waited for up to %.0f s: more work arrives than is done; add workers or slots"
    )
    facts = {"worker": worker, "lane": lane.name, "queue": queue, "slots": lane.slots}
    extra = {"event": "lane_overloaded", **facts, "waited_s": seconds, "tenants": found.tenants}
    args = (lane.name, busy, headroom, queue, found.tenants, seconds)
    _log(logging.WARNING, text, *args, extra=extra)


def caught_up(worker: str, lane: Lane) -> None:
    """Log that a lane has had free slots again for a while."""
    extra = {"event": "lane_caught_up", "worker": worker, "lane": lane.name}
    _log(logging.INFO, "lane %s has caught up", lane.name, extra=extra)


def leaving_failed(error: Exception) -> None:
    """Log that a worker could not remove itself from the registry."""
    text = "the worker could not be removed from the registry: %s"
    _log(logging.WARNING, text, error, extra={"event": "worker_leave_failed"})


def left(worker: str, settled: int, failed: int) -> None:
    """Log that a worker has left, and what it has done."""
    facts = {"worker": worker, "settled": settled, "failed": failed}
    text = "%s has left, %d attempts settled, %d of them failed"
    _log(logging.INFO, text, worker, settled, failed, extra={"event": "worker_left", **facts})


def _log_attempt(level: int, event: str, text: str, attempt: LiveAttempt, last: str, **facts: object) -> None:
    job = attempt.claim.job
    extra = {"event": event, **attempt.log_fields(), **facts}
    _log(level, text, job.id, job.task, job.attempt, last, extra=extra)


def _log(level: int, text: str, *args: object, extra: Mapping[str, object]) -> None:
    """Log; an application's log handler that raises must not harm the attempt that is logged."""
    try:
        log.log(level, text, *args, extra=extra, stacklevel=3)
    except Exception as error:  # noqa: BLE001 (see above; Python's own handlers write to stderr as well)
        with suppress(OSError, ValueError):
            sys.stderr.write(f"fairlane: a log handler raised {type(error).__name__}\n")
