"""Compare what the store says is running with what each worker says: a slot that nobody uses shows here.

Both change all the time, so whoever seems to disagree is looked at again after its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlane import Fairlane, State
from fairlane.cli.diagnosis.finding import Finding
from fairlane.cli.diagnosis.sight import ALL, Sight
from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import JobRecord
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.registry import WorkersRequest, WorkerView
from fairlane.store.contract.request import PAGE_MOST

SETTLING: Final[Micros] = 5 * SECOND
"""A claim that is younger may be on its way to its handler."""

PATIENCE: Final[Micros] = 8 * SECOND
"""How long the next heartbeat of a worker is waited for: two of the usual ones."""

_LOOK: Final[Micros] = SECOND // 4
_CALLS_MOST: Final = 20
_ADVICE: Final = (
    "Its event loop may be blocked, or it has lost slots, which is a defect in Fairlane: see its log, "
    "restart it, and report it."
)


async def compare(app: Fairlane, sight: Sight) -> list[Finding]:
    """Name the workers that run less, or more, than the store says, for longer than a heartbeat."""
    store, clock = app.client.store, app.client.clock
    before = _wrong(sight.live(), await _claims(store))
    until = clock.elapsed() + PATIENCE
    while before:
        await clock.wait(_LOOK)
        again = {one.card.id: one for one in await store.registry.workers(WorkersRequest(scope=ALL))}
        is_told = all(id in again and again[id].beat_at > view.beat_at for id, (view, _) in before.items())
        if is_told or clock.elapsed() > until:
            fresh = [
                one
                for id, (view, _) in before.items()
                if (one := again.get(id)) is not None and one.beat_at > view.beat_at
            ]
            after = _wrong(fresh, await _claims(store))
            return [
                Finding("slots", "bad", what, _ADVICE)
                for id, (view, what) in sorted(after.items())
                if before[id][0].settled == view.settled
            ] or [_well()]
    return [_well()]


def _well() -> Finding:
    return Finding("slots", "ok", "every worker runs what the store says it does")


async def _claims(store: Store) -> list[JobRecord] | None:
    """Read what runs; None if that takes too many calls."""
    found: list[JobRecord] = []
    cursor: str | None = None
    for _ in range(_CALLS_MOST):
        request = FindRequest(scope=ALL, states=frozenset({State.RUNNING}), limit=PAGE_MOST, cursor=cursor)
        page = await store.jobs.find(request)
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found
    return None


def _wrong(
    workers: Iterable[WorkerView], claims: Sequence[JobRecord] | None
) -> Mapping[str, tuple[WorkerView, str]]:
    """Find the workers whose own number does not fit their claims, and say how."""
    found: dict[str, tuple[WorkerView, str]] = {}
    for worker in workers if claims is not None else ():
        own = [job for job in claims or () if job.worker == worker.card.id]
        old = sum((job.started_at or worker.beat_at) <= worker.beat_at - SETTLING for job in own)
        says = f"{worker.card.id} says that it runs {worker.running} jobs"
        if old > worker.running:
            found[worker.card.id] = worker, f"{says}, but holds {old} in the store."
        elif worker.running > len(own):
            found[worker.card.id] = worker, f"{says}, but holds only {len(own)} in the store."
    return found
