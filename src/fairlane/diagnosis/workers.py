"""Check the workers: heartbeats, versions, queues, lead, leases, tasks. Reads only the snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlane.app.doctor_settings import DoctorSettings
from fairlane.app.task.conflicts import task_conflicts
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import StoreSnapshot
from fairlane.model.durations import ago, format_duration
from fairlane.model.duty_report import overdue
from fairlane.model.instants import HOUR, MINUTE, SECOND, Micros
from fairlane.store.contract.registry import LIVE_WITHIN

_RECLAIMED_WITHIN: Final[Micros] = 20 * SECOND
"""A working leader reclaims an expired lease sooner than this (S38)."""

_OVERDUE: Final[Micros] = MINUTE
_OFTEN: Final = 3

_START: Final = "Start one with `fairlane worker MODULE:APP`."
_SHOWN: Final = 5
_IDLE: Final = frozenset({"paused", "draining"})


def workers(snapshot: StoreSnapshot, thresholds: DoctorSettings) -> Iterator[CheckResult]:
    """Report the live workers, too few of them, and those whose heartbeats stopped."""
    live, ready = snapshot.live(), sum(snapshot.ready().values())
    if live and len(live) >= thresholds.min_workers:
        slots = sum(worker.record.slots for worker in live)
        yield CheckResult("workers", "ok", f"{len(live)} live, {slots} slots")
    elif not thresholds.min_workers:
        yield CheckResult("workers", "ok", "no worker is live, and none is required")
    else:
        few = (
            "no worker is live"
            if not live
            else f"only {len(live)} of {thresholds.min_workers} workers are live"
        )
        what = f"{few}, and {ready} jobs are ready." if ready else f"{few}."
        yield CheckResult("workers", "bad" if ready else "warn", what, _START)
    silent = [worker for worker in snapshot.workers if worker not in live]
    for worker in silent[:_SHOWN]:
        what = f"{worker.record.id} sent its last heartbeat {ago(worker.beat_at, snapshot.now)}."
        advice = "It died or is cut off; its jobs run elsewhere once their leases expire. See its log."
        yield CheckResult("workers", "warn", what, advice, worker.record.id)
    if len(silent) > _SHOWN:
        yield CheckResult(
            "workers",
            "warn",
            f"{len(silent) - _SHOWN} more are silent.",
            "`fairlane workers` lists them.",
            "more",
        )


def versions(snapshot: StoreSnapshot, here: str) -> Iterator[CheckResult]:
    """Report whether all workers run the same version of Fairlane."""
    found = sorted({here, *(worker.record.version for worker in snapshot.live())})
    if len(found) == 1:
        yield CheckResult("versions", "ok", f"Fairlane {here} everywhere")
    else:
        what = f"several versions of Fairlane are in use: {', '.join(found)}; this is {here}."
        yield CheckResult("versions", "warn", what, "This is fine during a rollout; complete it.")


def queues(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report queues that no live worker serves."""
    live = snapshot.live()
    if not live:
        return  # the check of workers reports it
    served = {queue for worker in live if worker.state not in _IDLE for queue in worker.record.queues}
    ready = snapshot.ready()
    declared = {view.subject.name for view in snapshot.queues if view.declared is not None}
    for queue in sorted({*ready, *declared} - served):
        if queue in ready:
            what = f"no live worker serves queue {queue}, which has {ready[queue]} ready jobs."
            advice = "Add the queue to a lane, or start a worker that serves it."
            yield CheckResult("queues", "bad", what, advice, f"queue {queue}")
        else:
            what = f"queue {queue} is declared, but no live worker serves it."
            yield CheckResult(
                "queues", "warn", what, "Add it to a lane before jobs arrive.", f"queue {queue}"
            )
    if not {*ready, *declared} - served:
        yield CheckResult("queues", "ok", "every queue is served")


def lead(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether a live worker leads the duties."""
    live = snapshot.live()
    known = {worker.record.id: worker for worker in snapshot.workers}
    held = [one for one in snapshot.inspection.leads if one.until > snapshot.now]
    for one in held:
        holder = known.get(one.worker)
        if holder is not None and snapshot.now - holder.beat_at > LIVE_WITHIN:
            silent_since, left = ago(holder.beat_at, snapshot.now), format_duration(one.until - snapshot.now)
            what = f"{one.name}: led by {one.worker}, whose last heartbeat was {silent_since}."
            advice = f"Its lead expires in {left}; then another worker takes over."
            yield CheckResult("lead", "bad", what, advice, one.name)
        else:
            yield CheckResult("lead", "ok", f"{one.name}: led by {one.worker}")
    if live and not held:
        what = "no worker leads the duties: due jobs, expired leases and old history are not handled."
        advice = "Start `fairlane scheduler`, or a worker with duties enabled."
        yield CheckResult("lead", "warn", what, advice)


def duties(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report duties that fail, or that should have begun a pass long ago (S104); silent without a leader."""
    leader, reports = snapshot.duties.leader, snapshot.duties.reports
    if leader is None:
        return  # the check of the lead reports it
    wrong = False
    for one in reports.duties:
        late = overdue(one, reports.at)
        if one.failures:
            times = "once" if one.failures == 1 else f"{one.failures} times in a row"
            what = f"duty {one.name} failed {times}: {one.error}"
            advice = f"The log of {one.worker} has the traceback. It is tried again; the other duties go on."
            yield CheckResult("duties", "bad" if one.failures >= _OFTEN else "warn", what, advice, one.name)
        elif late > _OVERDUE:
            what = f"duty {one.name} should have begun a pass {format_duration(late)} ago."
            advice = f"It waits for the store, or {leader.worker} stands still: see its log, or restart it."
            yield CheckResult("duties", "warn", what, advice, one.name)
        wrong |= bool(one.failures) or late > _OVERDUE
    if reports.duties and not wrong:
        yield CheckResult("duties", "ok", f"{len(reports.duties)} duties are done, none fails or is late")


def leases(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether expired leases are reclaimed."""
    until = snapshot.inspection.first_lease_until
    if until is not None and snapshot.now - until > _RECLAIMED_WITHIN:
        what = (
            f"a running job's lease expired {ago(until, snapshot.now)}, and no worker has reclaimed the job."
        )
        advice = "Start `fairlane scheduler`, or a worker with duties enabled."
        yield CheckResult("leases", "bad", what, advice)
    else:
        yield CheckResult("leases", "ok", "no expired lease is left")


def applications(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report tasks that live workers declare differently or in different versions; silent otherwise."""
    live = [worker.record for worker in snapshot.live()]
    found: dict[str, bool] = {}
    for at, record in enumerate(live):
        for conflict in task_conflicts(record, live[at + 1 :]):
            found[conflict.text] = found.get(conflict.text, False) or conflict.takes_jobs
    for text, takes_jobs in list(found.items())[:_SHOWN]:
        advice = (
            "If these are two applications, give the tasks different names; if it is one, raise the version."
        )
        yield CheckResult("tasks", "bad" if takes_jobs else "warn", f"{text}.", advice, text)
    versions: dict[str, set[int]] = {}
    for record in live:
        for task in record.tasks:
            versions.setdefault(task.name, set()).add(task.version)
    mixed = {name: sorted(known) for name, known in sorted(versions.items()) if len(known) > 1}
    for name, known in list(mixed.items())[:_SHOWN]:
        what = f"live workers have task {name} in versions {', '.join(map(str, known))}."
        advice = "This is fine during a rollout; complete it. Older workers hand newer jobs back."
        yield CheckResult("tasks", "warn", what, advice, f"versions of {name}")


def tasks(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report tasks with unfinished jobs that no recent worker knows (S33)."""
    fresh = [view for view in snapshot.tasks if snapshot.now - view.seen_at <= HOUR]
    known = {name for view in fresh for name in (view.record.name, *view.record.aliases)}
    unknown = [task for task in snapshot.inspection.tasks if task not in known]
    if not unknown:
        yield CheckResult("tasks", "ok", "every task with unfinished jobs is known to a worker")
        return
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    have = "has" if len(unknown) == 1 else "have"
    what = (
        f"no worker of the last hour knows {', '.join(unknown[:_SHOWN])}{more}, which {have} unfinished jobs."
    )
    advice = (
        "Start a worker that has the task, or keep its old name with aliases=…; else its jobs become dead."
    )
    yield CheckResult("tasks", "bad" if snapshot.live() else "warn", what, advice)
