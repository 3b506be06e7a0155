"""Tell which schedule and which slot a job comes from, without a field of its own (S57).

The job of a slot names its schedule as `created_by`, and its id, which nobody makes by chance, is its
correlation id. Both go to its retries, to the job in its place if it dies, and to the jobs that it enqueues.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from fairlane.model.identifiers import made_at, slot_id
from fairlane.model.instants import Instant

PREFIX: Final = "schedule:"


class ScheduledSlot(NamedTuple):
    """A schedule by its name, and one of its slots."""

    schedule: str
    slot: Instant


def creator_of(schedule: str) -> str:
    """Return what the jobs of a schedule have as `created_by`.

    >>> creator_of("nightly")
    'schedule:nightly'
    """
    return f"{PREFIX}{schedule}"


def scheduled_slot(tenant: str, created_by: str | None, correlation_id: str) -> ScheduledSlot | None:
    """Return the slot that a job comes from; None if it comes from none, whatever it says.

    >>> id = slot_id("acme", "nightly", 60_000_000)
    >>> scheduled_slot("acme", "schedule:nightly", str(id))
    ScheduledSlot(schedule='nightly', slot=60000000)
    >>> scheduled_slot("globex", "schedule:nightly", str(id)) is None
    True
    >>> scheduled_slot("acme", "user:42", str(id)) is None
    True
    """
    if created_by is None or not created_by.startswith(PREFIX):
        return None
    try:
        id = UUID(correlation_id)
    except ValueError:
        return None
    schedule, slot = created_by.removeprefix(PREFIX), made_at(id)
    return ScheduledSlot(schedule, slot) if slot_id(tenant, schedule, slot) == id else None
