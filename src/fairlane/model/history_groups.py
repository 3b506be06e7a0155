"""Check the promises between jobs: one per idempotency key, all or none of a batch, one per slot.

Knows of a job only who enqueued it and whether the store certainly had it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from fairlane.model.history_life import Life
from fairlane.model.history_verdict import Kind, Violation, accuse
from fairlane.model.ledger import Acknowledged, Attempted, Enqueue

Group: TypeAlias = dict[str, Enqueue]
"""Jobs by id, each with an enqueue that puts it into the group."""


class Groups:
    """All keys, batches and slots that enqueues name."""

    def __init__(self) -> None:
        self._keys: defaultdict[tuple[str, str], Group] = defaultdict(dict)
        self._batches: defaultdict[str, tuple[Group, Group]] = defaultdict(lambda: ({}, {}))
        self._slots: defaultdict[tuple[str, str, int], tuple[Group, Group]] = defaultdict(lambda: ({}, {}))

    def note(self, life: Life) -> None:
        """Add a job to its groups, as one that was there or one that was not."""
        there = life.exists
        for said in life.enqueues:
            match said:
                case Attempted() | Acknowledged():
                    if said.key is not None and there:
                        self._keys[said.tenant, said.key][life.job] = said
                    if said.batch is not None:
                        self._batches[said.batch][there][life.job] = said
                case _:
                    self._slots[said.tenant, said.schedule, said.slot][there][life.job] = said

    def violations(self, *, is_read: bool) -> Iterator[Violation]:
        """Judge every group; what is missing counts only if the whole store was read."""
        for (tenant, key), jobs in self._keys.items():
            if len(jobs) > 1:
                story = f"idempotency key {key} of {tenant} made {len(jobs)} jobs"
                yield accuse(Kind.KEY_DOUBLED, f"{tenant}/{key}", story, *jobs.values())
        for batch, (absent, present) in self._batches.items():
            if is_read and absent and present:
                story = f"of batch {batch} {len(present)} jobs are there and {len(absent)} are not"
                yield accuse(Kind.TORN_BATCH, batch, story, *absent.values(), *present.values())
        for (tenant, schedule, slot), (absent, present) in self._slots.items():
            name = f"{tenant}/{schedule}@{slot}"
            if len(present) > 1:
                yield accuse(
                    Kind.SLOT_DOUBLED, name, f"slot {name} made {len(present)} jobs", *present.values()
                )
            if is_read and not present:
                yield accuse(Kind.SLOT_MISSED, name, f"slot {name} made no job", *absent.values())
