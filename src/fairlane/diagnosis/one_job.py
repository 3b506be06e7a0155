"""Diagnose one job: where it is, whether what leads to it is right, who holds it, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from fairlane.app.admin.explain import Waiting
from fairlane.diagnosis.repairing import flaw_text, is_about
from fairlane.diagnosis.result import CheckResult, Level
from fairlane.model.durations import ago, format_duration
from fairlane.model.instants import HOUR, SECOND, Instant, Micros, to_instant
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import HOT, Home, State, home
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Reason
from fairlane.store.contract.registry import LIVE_WITHIN, TasksRequest, TaskView, WorkersRequest, WorkerView
from fairlane.store.contract.repair import MAX_COMPARED, RepairReply, RepairRequest
from fairlane.store.contract.request import Request

_RECLAIMED_WITHIN: Final[Micros] = 20 * SECOND
_REPAIR: Final = "`fairlane doctor --repair` makes it anew from the jobs."
_HOMES: Final = {
    Home.HOT: "the unfinished jobs",
    Home.HISTORY: "the history",
    Home.DEAD: "the dead letters",
}
_HARMLESS: Final[frozenset[Reason]] = frozenset({"turn", "time", "retry", "snooze", "running", "finished"})
"""Reasons for which a job waits although nothing has to be done."""


class JobDiagnosis(msgspec.Struct, frozen=True):
    """A job, the store's instant, and the results of all checks."""

    job: JobRecord
    now: Instant
    checks: tuple[CheckResult, ...]


async def diagnose_job(store: Store, scope: Scope, job: JobRecord, waiting: Waiting) -> JobDiagnosis:
    """Check everything that is known of a job; `waiting` is the answer to why it does not run."""
    now = (await store.registry.status(Request(scope=Scope.all()))).now
    workers = await store.registry.workers(WorkersRequest(scope=Scope.all()))
    tasks = await store.registry.tasks(TasksRequest(scope=Scope.all(), names=(job.task,)))
    live = [one for one in workers if now - one.beat_at <= LIVE_WITHIN]
    checks = [*_record(job, now), *_claim(job, workers, now), *_task(job, tasks, now, is_served=bool(live))]
    if job.state in HOT:
        request = RepairRequest(scope=scope, queue=job.queue, tenant=job.tenant)
        checks += _derived(job, await store.upkeep.repair(request))
    checks += _reason(job, waiting, now)
    return JobDiagnosis(job, now, tuple(checks))


def _record(job: JobRecord, now: Instant) -> Iterator[CheckResult]:
    where = _HOMES[home(job.state)]
    since = job.settled_at if job.settled_at is not None else job.enqueued_at
    done = "settled" if job.settled_at is not None else "enqueued"
    yield CheckResult("record", "ok", f"it is {job.state.value}, among {where}, {done} {ago(since, now)}")
    is_running = job.state is State.RUNNING
    if is_running != (job.worker is not None) or is_running != (job.lease_until is not None):
        what = "its record contradicts itself: a claim and a running job belong together."
        advice = "This is a bug in Fairlane: report it with the output of `fairlane jobs show`."
        yield CheckResult("record", "bad", what, advice)


def _claim(job: JobRecord, workers: tuple[WorkerView, ...], now: Instant) -> Iterator[CheckResult]:
    if job.state is not State.RUNNING or job.lease_until is None:
        return
    holder = next((one for one in workers if one.record.id == job.worker), None)
    late = now - job.lease_until
    if late > _RECLAIMED_WITHIN:
        what = f"its lease ended {format_duration(late)} ago, and nobody has reclaimed it."
        advice = f"Start `fairlane scheduler`, or do it by hand: `fairlane jobs take-back {job.id}`."
        yield CheckResult("claim", "bad", what, advice)
    elif holder is None or now - holder.beat_at > LIVE_WITHIN:
        seen = (
            "is not registered" if holder is None else f"sent its last heartbeat {ago(holder.beat_at, now)}"
        )
        what = f"{job.worker} runs it, and {seen}; the lease ends {ago(job.lease_until, now)}."
        yield CheckResult("claim", "warn", what, "The job is taken back when its lease has ended.")
    else:
        began, ends = ago(job.started_at, now), ago(job.lease_until, now)
        what = f"{job.worker} began to run it {began}; its lease ends {ends}"
        yield CheckResult("claim", "ok", what)
    limit = job.stuck_after or (None if job.timeout is None else 2 * job.timeout)
    if limit is not None and job.started_at is not None and now - job.started_at > limit:
        what = (
            f"it has run for {format_duration(now - job.started_at)}, longer than {format_duration(limit)}."
        )
        advice = f"`fairlane workers dump {job.worker}` shows where it is, `fairlane jobs fail` ends it."
        yield CheckResult("stuck", "bad", what, advice)


def _task(
    job: JobRecord, tasks: tuple[TaskView, ...], now: Instant, *, is_served: bool
) -> Iterator[CheckResult]:
    if job.state not in HOT:
        return
    seen = max((view.seen_at for view in tasks), default=None)
    if seen is not None and now - seen <= HOUR:
        yield CheckResult("task", "ok", f"a worker knew {job.task} {ago(seen, now)}")
    else:
        what = f"no worker of the last hour knows task {job.task}."
        advice = "Start a worker that has it, or keep its old name with aliases=…; else the job becomes dead."
        yield CheckResult("task", "bad" if is_served else "warn", what, advice)


def _derived(job: JobRecord, reply: RepairReply) -> Iterator[CheckResult]:
    if reply.jobs is None:
        what = f"places and counters were not compared: more than {MAX_COMPARED:,} unfinished jobs."
        yield CheckResult("derived", "warn", what, "Compare again when there are fewer.")
        return
    own = [flaw for flaw in reply.flaws if is_about(flaw, job.id)]
    for flaw in own:
        yield CheckResult("derived", "bad", f"{flaw_text(flaw)}.", _REPAIR)
    others = sum(flaw.job is not None for flaw in reply.flaws) - sum(flaw.job is not None for flaw in own)
    if others:
        what = f"{others} other places of its tenant in queue {job.queue} are wrong."
        yield CheckResult("derived", "warn", what, _REPAIR)
    if not reply.flaws:
        what = (
            f"its place and the counters of {job.tenant} in {job.queue} fit all {reply.jobs} unfinished jobs"
        )
        yield CheckResult("derived", "ok", what)


def _reason(job: JobRecord, waiting: Waiting, now: Instant) -> Iterator[CheckResult]:
    if job.state is State.DEAD:
        what = f"it is dead: {job.because}."
        yield CheckResult(
            "reason", "warn", what, "Decide: `fairlane dead reprocess`, `resolve` or `discard`."
        )
        return
    until = "" if waiting.until is None else f", until {ago(to_instant(waiting.until), now)}"
    about = f" ({waiting.subject})" if waiting.subject not in {"", waiting.reason} else ""
    ahead = f"; {waiting.ahead} jobs of its tenant go first" if waiting.ahead else ""
    level: Level = "ok" if waiting.reason in _HARMLESS else "warn"
    yield CheckResult("reason", level, f"{waiting.reason}{about}{until}{ahead}", waiting.advice)
