"""Decide how a schedule goes on that is due, and which slots are taken (S57). Reads no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from fairlane.model.identifiers import slot_id
from fairlane.model.instants import MINUTE, SECOND, Instant, Micros
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.model.policy.overrides import Hold, is_active
from fairlane.model.schedule.firing import Decision, due_slots
from fairlane.model.schedule.news import FAIRLANE
from fairlane.model.schedule.records import NewSlot, ScheduleRecord
from fairlane.model.schedule.restart import next_look
from fairlane.model.schedule.slots import slots_before
from fairlane.model.schedule.spec import ScheduleSpec

MOST_WATCHED: Final = 100
"""How many jobs of a schedule are watched at most, whose end is not known."""

AGAIN_AFTER: Final[Micros] = MINUTE
"""When a schedule is looked at again whose times cannot be computed here."""


class Advanced(NamedTuple):
    """How a schedule goes on, and its slots."""

    record: ScheduleRecord
    slots: tuple[NewSlot, ...] = ()


def advanced(
    record: ScheduleRecord, now: Instant, *, endings: Mapping[UUID, State], problem: str, zones: str
) -> Advanced:
    """Return how a schedule goes on that is due at this instant.

    `endings` has the states of watched jobs; one that is left out is not kept any more. With a `problem` its
    slots fail, which says why. Slots of a pause are never made up for.
    """
    record = _counted(_without_what_has_ended(record, now), endings)
    spec = record.spec(now)
    if spec is None:
        return Advanced(replace(record, retired_at=now, next_at=None))
    if record.retired_at is not None or record.paused is not None:
        return Advanced(replace(record, next_at=next_look(record, now)))
    if spec.pause_after is not None and record.failures >= spec.pause_after:
        hold = Hold(who=FAIRLANE, reason=f"{record.failures} jobs in a row are dead", set_at=now)
        return Advanced(replace(record, paused=hold, settled_to=now, next_at=None))
    try:
        decision = due_slots(spec, record.settled_to, record.last_slot, now)
        slots = _slots(spec, decision, problem, now)
        record = replace(record, settled_to=now, problem=problem, zones=zones)
        record = replace(record, next_at=next_look(record, now))
    except ValueError as error:  # a zone that this machine does not know: another may
        return Advanced(replace(record, problem=str(error), next_at=now + AGAIN_AFTER))
    if decision.take:
        record = _moved_on(record, spec, slots, decision.take[-1])
    return Advanced(record if record.next_at is not None else replace(record, retired_at=now), slots)


def _without_what_has_ended(record: ScheduleRecord, now: Instant) -> ScheduleRecord:
    """Drop an override and a pause that are over. Slots of the time of the pause are settled."""
    if record.override is not None and not is_active(record.override.until, now):
        record = replace(record, override=None)
    hold = record.paused
    if hold is not None and hold.until is not None and not is_active(hold.until, now):
        record = replace(
            record, paused=None, settled_to=max(record.settled_to, hold.until - 1), failures=0, watched=()
        )
    return record


def _counted(record: ScheduleRecord, endings: Mapping[UUID, State]) -> ScheduleRecord:
    """Count the jobs that have died in a row, in the order of their slots. A cancelled job counts as none."""
    failures = record.failures
    watched: list[UUID] = []
    for job in record.watched:
        state = endings.get(job)
        if state is State.DEAD:
            failures += 1
        elif state is State.SUCCEEDED:
            failures = 0
        elif state is not None and not is_finished(state):
            watched.append(job)
    return replace(record, failures=failures, watched=tuple(watched))


def _slots(spec: ScheduleSpec, decision: Decision, problem: str, now: Instant) -> tuple[NewSlot, ...]:
    """Return the slots that are recorded. How many were missed before is noted with the first of them."""
    skipped = f"less than {spec.unique_for / SECOND:g} s after the slot before"
    slots = [_slot(spec, at, problem) for at in decision.take]
    slots += [NewSlot(at=at, tenant=spec.tenant, state="skipped", because=skipped) for at in decision.skip]
    slots.sort(key=lambda slot: slot.at)
    if not decision.missed or decision.missed_since is None:
        return tuple(slots)
    if not slots:
        (last,) = slots_before(spec.timing, decision.missed_since - 1, _end(spec, now), 1)
        slots = [NewSlot(at=last, tenant=spec.tenant, state="missed")]
        if decision.missed == 1:
            return tuple(slots)
        decision = decision._replace(missed=decision.missed - 1)
    slots[0] = replace(slots[0], missed=decision.missed, missed_since=decision.missed_since)
    return tuple(slots)


def _slot(spec: ScheduleSpec, at: Instant, problem: str) -> NewSlot:
    if problem:
        return NewSlot(at=at, tenant=spec.tenant, state="failed", because=problem)
    job = None if spec.tenant is None else slot_id(spec.tenant, spec.name, at)
    return NewSlot(at=at, tenant=spec.tenant, job=job)


def _end(spec: ScheduleSpec, now: Instant) -> Instant:
    return now if spec.ends is None else min(now, spec.ends)


def _moved_on(
    record: ScheduleRecord, spec: ScheduleSpec, slots: tuple[NewSlot, ...], last: Instant
) -> ScheduleRecord:
    made = tuple(slot.job for slot in slots if slot.job is not None)
    is_watched = spec.pause_after is not None
    watched = (record.watched + made)[-MOST_WATCHED:] if is_watched else ()
    return replace(record, last_slot=last, watched=watched)
