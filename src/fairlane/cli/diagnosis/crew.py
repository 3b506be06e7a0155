"""Judge who works on the store: workers, what they serve, who leads, what nobody knows. Asks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlane.app.clashes import clashes
from fairlane.cli.diagnosis.finding import Finding
from fairlane.cli.diagnosis.sight import Sight
from fairlane.cli.moments import ago, span
from fairlane.model.instants import HOUR, SECOND, Micros
from fairlane.store.contract.registry import LIVE_WITHIN

_RECLAIMED_WITHIN: Final[Micros] = 20 * SECOND
"""A lost claim is reclaimed sooner than this, if anybody does (S38)."""

_START: Final = "Start one with `fairlane worker MODULE:APP`."
_SHOWN: Final = 5
_IDLE: Final = frozenset({"paused", "draining"})


def workers(sight: Sight) -> Iterator[Finding]:
    """Whether anybody is there, and whether anybody has gone without a word."""
    live = sight.live()
    if live:
        slots = sum(worker.card.slots for worker in live)
        yield Finding("workers", "ok", f"{len(live)} live, {slots} slots")
    else:
        ready = sum(sight.ready().values())
        what = f"no worker is live, and {ready} jobs are ready." if ready else "no worker is live."
        yield Finding("workers", "bad" if ready else "warn", what, _START)
    silent = [worker for worker in sight.workers if worker not in live]
    for worker in silent[:_SHOWN]:
        what = f"{worker.card.id} was last heard of {ago(worker.beat_at, sight.now)}."
        advice = "It died or is cut off; its jobs run elsewhere once their leases are over. See its log."
        yield Finding("workers", "warn", what, advice)
    if len(silent) > _SHOWN:
        yield Finding(
            "workers", "warn", f"{len(silent) - _SHOWN} more are silent.", "`fairlane workers` lists them."
        )


def versions(sight: Sight, here: str) -> Iterator[Finding]:
    """Whether everybody runs the same Fairlane."""
    found = sorted({here, *(worker.card.version for worker in sight.live())})
    if len(found) == 1:
        yield Finding("versions", "ok", f"Fairlane {here} everywhere")
    else:
        what = f"several versions of Fairlane are in use: {', '.join(found)}; here it is {here}."
        yield Finding("versions", "warn", what, "That is fine during a rollout; finish it.")


def queues(sight: Sight) -> Iterator[Finding]:
    """Whether every queue has a lane somewhere."""
    live = sight.live()
    if not live:
        return  # said already, once
    served = {queue for worker in live if worker.state not in _IDLE for queue in worker.card.queues}
    ready = sight.ready()
    declared = {view.subject.name for view in sight.queues if view.declared is not None}
    for queue in sorted({*ready, *declared} - served):
        if queue in ready:
            what = f"no live worker serves queue {queue}, which has {ready[queue]} ready jobs."
            yield Finding("queues", "bad", what, "Add the queue to a lane, or start a worker that serves it.")
        else:
            what = f"queue {queue} is declared, and no live worker serves it."
            yield Finding("queues", "warn", what, "Add it to a lane before jobs arrive.")
    if not {*ready, *declared} - served:
        yield Finding("queues", "ok", "every queue is served")


def lead(sight: Sight) -> Iterator[Finding]:
    """Whether the duties are led by somebody who lives."""
    live = sight.live()
    known = {worker.card.id: worker for worker in sight.workers}
    held = [one for one in sight.inspection.leads if one.until > sight.now]
    for one in held:
        holder = known.get(one.worker)
        if holder is not None and sight.now - holder.beat_at > LIVE_WITHIN:
            what = (
                f"{one.name}: led by {one.worker}, which was last heard of {ago(holder.beat_at, sight.now)}."
            )
            advice = (
                f"Its lead ends by itself in {span(one.until - sight.now)}; another worker then takes over."
            )
            yield Finding("lead", "bad", what, advice)
        else:
            yield Finding("lead", "ok", f"{one.name}: led by {one.worker}")
    if live and not held:
        what = "nobody leads the duties: due jobs, lost claims and old history are not looked after."
        advice = "Start `fairlane scheduler`, or a worker whose duties are not switched off."
        yield Finding("lead", "warn", what, advice)


def leases(sight: Sight) -> Iterator[Finding]:
    """Whether claims of dead workers are taken back."""
    until = sight.inspection.first_lease_until
    if until is not None and sight.now - until > _RECLAIMED_WITHIN:
        what = f"a running job's lease ended {ago(until, sight.now)}, and nobody has reclaimed it."
        advice = "Start `fairlane scheduler`, or a worker whose duties are not switched off."
        yield Finding("leases", "bad", what, advice)
    else:
        yield Finding("leases", "ok", "no claim is overdue")


def applications(sight: Sight) -> Iterator[Finding]:
    """Whether live workers mean the same by each task, and know it in the same version; silent if they do."""
    live = [worker.card for worker in sight.live()]
    found: dict[str, bool] = {}
    for at, card in enumerate(live):
        for clash in clashes(card, live[at + 1 :]):
            found[clash.text] = found.get(clash.text, False) or clash.takes_jobs
    for text, takes_jobs in list(found.items())[:_SHOWN]:
        advice = "Two applications: give their tasks different names. One: raise the task's version."
        yield Finding("tasks", "bad" if takes_jobs else "warn", f"{text}.", advice)
    versions: dict[str, set[int]] = {}
    for card in live:
        for task in card.tasks:
            versions.setdefault(task.name, set()).add(task.version)
    mixed = {name: sorted(known) for name, known in sorted(versions.items()) if len(known) > 1}
    for name, known in list(mixed.items())[:_SHOWN]:
        what = f"live workers know task {name} in versions {', '.join(map(str, known))}."
        advice = "That is fine during a rollout; finish it. Older workers hand newer jobs back."
        yield Finding("tasks", "warn", what, advice)


def tasks(sight: Sight) -> Iterator[Finding]:
    """Whether somebody knows every task that has unfinished jobs (S33)."""
    fresh = [view for view in sight.tasks if sight.now - view.seen_at <= HOUR]
    known = {name for view in fresh for name in (view.card.name, *view.card.aliases)}
    unknown = [task for task in sight.inspection.tasks if task not in known]
    if not unknown:
        yield Finding("tasks", "ok", "every task with unfinished jobs is known to a worker")
        return
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    what = f"no worker of the last hour knows {', '.join(unknown[:_SHOWN])}{more}, and there are jobs of it."
    advice = (
        "Start a worker that has the task, or keep its old name with aliases=…; else its jobs become dead."
    )
    yield Finding("tasks", "bad" if sight.live() else "warn", what, advice)
