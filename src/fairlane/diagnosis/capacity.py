"""Check whether the workers of each queue keep up with its jobs. Reads only the snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import StoreSnapshot
from fairlane.model.durations import format_duration
from fairlane.model.lifecycle.states import State
from fairlane.model.scheduling.overload import overload

_TOO_FEW: Final = (
    "The slots are the bottleneck: handlers hold them, and jobs arrive faster than they finish. Give the "
    "lane more slots if its handlers mostly wait, add workers if they compute, or give the queue a lane."
)
_NOT_TAKEN: Final = (
    "Workers have free slots but do not claim these jobs: see their logs and `fairlane workers`."
)


def queues(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report queues whose claimable jobs have waited too long, and how busy their workers are.

    Workers report what all their lanes run together. With less than half of the slots busy, the jobs are not
    waiting for a free slot.
    """
    for queue, next_jobs in sorted(snapshot.next_jobs.items()):
        found = overload(next_jobs, snapshot.now)
        workers = [worker for worker in snapshot.live() if queue in worker.record.queues]
        if found is None or not workers:
            continue
        slots, kept = (sum(getattr(one.record, field) for one in workers) for field in ("slots", "headroom"))
        claimed = sum(
            one.jobs for one in snapshot.counts if one.queue == queue and one.state is State.RUNNING
        )
        busy = min(slots, max(claimed, sum(worker.running for worker in workers)))
        is_full = 2 * busy >= slots - kept
        if found.tenants == 1 and not is_full:
            continue  # the check of the oldest job reports it
        what = (
            f"queue {queue}: the next jobs, of {_number(found.tenants, 'tenant')}, have waited for up to "
            f"{format_duration(found.waited)} while {busy} of {slots} slots of "
            f"{_number(len(workers), 'worker')} are busy{f' and {kept} kept as headroom' if kept else ''}."
        )
        yield CheckResult("capacity", "warn", what, _TOO_FEW if is_full else _NOT_TAKEN, f"queue {queue}")


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
