"""Compare the running jobs in the store with what each worker reports, to find lost slots.

Both change all the time, so a worker that seems to disagree is compared again after its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import ALL, StoreSnapshot
from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import State
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.registry import WorkersRequest, WorkerView
from fairlane.store.contract.request import MAX_PAGE_SIZE

SETTLING: Final[Micros] = 5 * SECOND
"""A younger claim may still be on its way to its handler."""

HEARTBEAT_TIMEOUT: Final[Micros] = 8 * SECOND
"""How long to wait for a worker's next heartbeat: two intervals."""

_LOOK: Final[Micros] = SECOND // 4
_MAX_CALLS: Final = 20
_ADVICE: Final = (
    "Its event loop may be blocked, or it lost slots, which is a bug in Fairlane: see its log, restart it, "
    "and report it."
)


async def check_slots(store: Store, clock: Clock, snapshot: StoreSnapshot) -> list[CheckResult]:
    """Report workers that run fewer or more jobs than the store says, for longer than a heartbeat."""
    before = _wrong(snapshot.live(), await _claims(store))
    until = clock.elapsed() + HEARTBEAT_TIMEOUT
    while before:
        await clock.wait(_LOOK)
        again = {one.record.id: one for one in await store.registry.workers(WorkersRequest(scope=ALL))}
        is_told = all(id in again and again[id].beat_at > view.beat_at for id, (view, _) in before.items())
        if is_told or clock.elapsed() > until:
            fresh = [
                one
                for id, (view, _) in before.items()
                if (one := again.get(id)) is not None and one.beat_at > view.beat_at
            ]
            after = _wrong(fresh, await _claims(store))
            return [
                CheckResult("slots", "bad", what, _ADVICE)
                for id, (view, what) in sorted(after.items())
                if before[id][0].settled == view.settled
            ] or [_well()]
    return [_well()]


def _well() -> CheckResult:
    return CheckResult("slots", "ok", "every worker runs the jobs that the store says it runs")


async def _claims(store: Store) -> list[JobRecord] | None:
    """Read the running jobs; None if that takes too many calls."""
    found: list[JobRecord] = []
    cursor: str | None = None
    for _ in range(_MAX_CALLS):
        request = FindRequest(
            scope=ALL, states=frozenset({State.RUNNING}), limit=MAX_PAGE_SIZE, cursor=cursor
        )
        page = await store.jobs.find(request)
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found
    return None


def _wrong(
    workers: Iterable[WorkerView], claims: Sequence[JobRecord] | None
) -> Mapping[str, tuple[WorkerView, str]]:
    """Return the workers whose reported number of jobs does not fit their claims, with the difference."""
    found: dict[str, tuple[WorkerView, str]] = {}
    for worker in workers if claims is not None else ():
        own = [job for job in claims or () if job.worker == worker.record.id]
        old = sum((job.started_at or worker.beat_at) <= worker.beat_at - SETTLING for job in own)
        says = f"{worker.record.id} reports {worker.running} running jobs"
        if old > worker.running:
            found[worker.record.id] = worker, f"{says}, but holds {old} claims in the store."
        elif worker.running > len(own):
            found[worker.record.id] = worker, f"{says}, but holds only {len(own)} claims in the store."
    return found
