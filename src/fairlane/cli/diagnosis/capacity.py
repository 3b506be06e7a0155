"""Judge whether the workers of each queue can do what comes. Asks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlane import State
from fairlane.cli.diagnosis.finding import Finding
from fairlane.cli.diagnosis.sight import Sight
from fairlane.cli.moments import span
from fairlane.model.overload import overload

_TOO_FEW: Final = "More work comes than is done: add workers or slots, or give the queue a lane of its own."
_NOT_TAKEN: Final = "Workers have room and do not take these jobs: see their logs and `fairlane workers`."


def queues(sight: Sight) -> Iterator[Finding]:
    """Which queues have jobs of several tenants waiting that might start, and how busy their workers are.

    Workers say of all their lanes together what they run: where less than half of the slots is busy, that is
    not what the jobs wait for.
    """
    for queue, next_jobs in sorted(sight.nexts.items()):
        found = overload(next_jobs, sight.now)
        workers = [worker for worker in sight.live() if queue in worker.card.queues]
        if found is None or not workers:
            continue
        slots, kept = (sum(getattr(one.card, field) for one in workers) for field in ("slots", "headroom"))
        claimed = sum(one.jobs for one in sight.counts if one.queue == queue and one.state is State.RUNNING)
        busy = min(slots, max(claimed, sum(worker.running for worker in workers)))
        is_full = 2 * busy >= slots - kept
        if found.tenants == 1 and not is_full:
            continue  # said already, as one that has waited long
        what = (
            f"queue {queue}: the next jobs, of {_number(found.tenants, 'tenant')}, have waited for up to "
            f"{span(found.waited)} while {busy} of {slots} slots of {_number(len(workers), 'worker')} are "
            f"busy{f' and {kept} kept as headroom' if kept else ''}."
        )
        yield Finding("capacity", "warn", what, _TOO_FEW if is_full else _NOT_TAKEN)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
