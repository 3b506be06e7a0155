"""Decide which slots of a schedule are taken now, and which nobody takes any more (S57). Reads no clock."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from fairlane.model.instants import MINUTE, Instant, Micros
from fairlane.model.schedule.restart import next_slot
from fairlane.model.schedule.slots import slots_before, slots_between
from fairlane.model.schedule.spec import CatchUp, ScheduleSpec

ON_TIME: Final[Micros] = MINUTE
"""How old a slot may be that counts as taken in time: another process takes the lead within this."""

MOST_COUNTED: Final = 1000
"""How far missed slots are counted."""


class Decision(NamedTuple):
    """What becomes of the slots that are due.

    `take` those, `skip` those: they are too close to one that was taken. The `missed` ones, the first of them
    at `missed_since`, are all before. A count of `MOST_COUNTED` means at least so many. `next_at` is the next
    slot to come.
    """

    take: tuple[Instant, ...]
    skip: tuple[Instant, ...]
    missed: int
    missed_since: Instant | None
    next_at: Instant | None


def due_slots(spec: ScheduleSpec, settled_to: Instant, last_slot: Instant | None, now: Instant) -> Decision:
    """Decide about the slots after `settled_to`, up to now. None is taken before its time.

    Slots of the last minute are in time, and all of them are taken. Of older ones, `catch_up` says how many
    are taken beside them, the latest ones, unless they are older than `look_back`.
    """
    after = max(settled_to, -1 if spec.starts is None else spec.starts - 1)
    until = now if spec.ends is None else min(now, spec.ends)
    in_time = slots_between(spec.timing, max(after, now - ON_TIME), until, MOST_COUNTED)
    late_until = min(until, now - ON_TIME)
    wanted = max(0, _most(spec.catch_up) - len(in_time))
    late = slots_before(spec.timing, max(after, now - spec.look_back), late_until, wanted)
    missed_until = late[0] - 1 if late else late_until
    missed = slots_between(spec.timing, after, missed_until, MOST_COUNTED)
    take, skip = _apart([*late, *in_time], last_slot, spec.unique_for)
    next_at = next_slot(spec, max(after, now))
    return Decision(take, skip, len(missed), missed[0] if missed else None, next_at)


def _most(catch_up: CatchUp) -> int:
    return {"skip": 0, "latest": 1}[catch_up] if isinstance(catch_up, str) else catch_up


def _apart(
    slots: Sequence[Instant], last: Instant | None, unique_for: Micros
) -> tuple[tuple[Instant, ...], tuple[Instant, ...]]:
    """Divide slots into those that are taken, and those that come too soon after one that is."""
    take: list[Instant] = []
    skip: list[Instant] = []
    for slot in slots:
        if last is not None and slot - last < unique_for:
            skip.append(slot)
        else:
            take.append(slot)
            last = slot
    return tuple(take), tuple(skip)


def spread_offset(tenant: str, schedule: str, spread: Micros) -> Micros:
    """Return how much after a slot the job of one of many tenants runs: always the same, less than `spread`.

    >>> spread_offset("acme", "nightly", 0), spread_offset("acme", "nightly", 3_600_000_000)
    (0, 3257219888)
    """
    if spread <= 0:
        return 0
    # The length first: ("ab", "c") and ("a", "bc") must not meet.
    text = f"{len(tenant)}:{tenant}{schedule}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % spread
