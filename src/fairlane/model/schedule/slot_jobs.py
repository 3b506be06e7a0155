"""Make the job of a slot: always the same one for the same tenant, schedule and slot (S57)."""

from __future__ import annotations

import hashlib
from typing import Final

from msgspec.structs import replace

from fairlane.model.identifiers import slot_id
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import DedupUntil, NewJob
from fairlane.model.schedule.origin import creator_of
from fairlane.model.schedule.spec import Overlap, ScheduleSpec

_UNTIL: Final[dict[Overlap, DedupUntil]] = {"skip": "settled", "queue_one": "started"}


def job_of_slot(
    spec: ScheduleSpec, at: Instant, tenant: str | None = None, *, by_hand: bool = False
) -> NewJob:
    """Return the job of a slot, for its tenant or for one of many.

    Whoever enqueues it marks it as a repeat: it may be there already. If the schedule minds an earlier job
    that is not done, so does the de-duplication key (S14); a slot that is made by hand does not. `spread` is
    a delay, always the same for a tenant, so that what is caught up is spread as well.
    """
    whose = spec.job.tenant if tenant is None else tenant
    job = replace(
        spec.job,
        id=slot_id(whose, spec.name, at),
        tenant=whose,
        created_by=creator_of(spec.name),
        delay=0 if by_hand else offset_of(whose, spec.name, spec.spread),
    )
    until = None if by_hand else _UNTIL.get(spec.overlap)
    return job if until is None else replace(job, dedup_key=creator_of(spec.name), dedup_until=until)


def offset_of(tenant: str, schedule: str, spread: Micros) -> Micros:
    """Return how much later than the slot the job of a tenant starts.

    >>> offset_of("acme", "nightly", 3_600_000_000) == offset_of("acme", "nightly", 3_600_000_000)
    True
    >>> 0 <= offset_of("acme", "nightly", 3_600_000_000) < 3_600_000_000, offset_of("acme", "nightly", 0)
    (True, 0)
    """
    if spread <= 0:
        return 0
    digest = hashlib.blake2b(f"{len(tenant)}:{tenant}{schedule}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % spread
