"""Check the promises between jobs: one per idempotency key, all or none of a batch, one per schedule slot.

Knows only a job's enqueues, and whether the store certainly had it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from fairlane.lab.history.job_history import JobHistory
from fairlane.lab.history.verdict import Violation, ViolationKind, make_violation
from fairlane.lab.ledger import Acknowledged, Attempted, Enqueue

Group: TypeAlias = dict[str, Enqueue]
"""Jobs by id, each with the enqueue that puts it into the group."""


class JobGroups:
    """All idempotency keys, batches and schedule slots of a run."""

    def __init__(self) -> None:
        self._keys: defaultdict[tuple[str, str], Group] = defaultdict(dict)
        self._batches: defaultdict[str, tuple[Group, Group]] = defaultdict(lambda: ({}, {}))
        self._slots: defaultdict[tuple[str, str, int], tuple[Group, Group]] = defaultdict(lambda: ({}, {}))

    def note(self, history: JobHistory) -> None:
        """Add a job to its groups, as present or as absent."""
        there = history.exists
        for record in history.enqueues:
            match record:
                case Attempted() | Acknowledged():
                    if record.key is not None and there:
                        self._keys[record.tenant, record.key][history.job] = record
                    if record.batch is not None:
                        self._batches[record.batch][there][history.job] = record
                case _:
                    self._slots[record.tenant, record.schedule, record.slot][there][history.job] = record

    def violations(self, *, is_read: bool) -> Iterator[Violation]:
        """Check every group; missing jobs count only if the whole store was read."""
        for (tenant, key), jobs in self._keys.items():
            if len(jobs) > 1:
                description = f"idempotency key {key} of {tenant} made {len(jobs)} jobs"
                yield make_violation(
                    ViolationKind.KEY_DOUBLED, f"{tenant}/{key}", description, *jobs.values()
                )
        for batch, (absent, present) in self._batches.items():
            if is_read and absent and present:
                description = f"of batch {batch} {len(present)} jobs are there and {len(absent)} are not"
                yield make_violation(
                    ViolationKind.TORN_BATCH, batch, description, *absent.values(), *present.values()
                )
        for (tenant, schedule, slot), (absent, present) in self._slots.items():
            name = f"{tenant}/{schedule}@{slot}"
            if len(present) > 1:
                yield make_violation(
                    ViolationKind.SLOT_DOUBLED,
                    name,
                    f"slot {name} made {len(present)} jobs",
                    *present.values(),
                )
            if is_read and not present:
                yield make_violation(
                    ViolationKind.SLOT_MISSED, name, f"slot {name} made no job", *absent.values()
                )
