"""Slots that an operator asks for: one now, or those of the past that made no job."""

from __future__ import annotations

from typing import Any, Final

from fairlane.app.client import Client
from fairlane.app.enqueue.refusals import refusal_error
from fairlane.app.job import Job
from fairlane.model.identifiers import slot_id
from fairlane.model.instants import Instant, Micros
from fairlane.model.schedule.records import NewSlot, SlotCause
from fairlane.model.schedule.slot_jobs import job_of_slot
from fairlane.model.schedule.slots import slots_between
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.schedules import MAX_SLOTS, EndSlotsRequest, SlotEnd, SlotsRequest

_MILLI: Final[Micros] = 1_000
_DONE: Final = frozenset({"enqueued", "pending"})


def slot_now(spec: ScheduleSpec, now: Instant) -> NewSlot:
    """Return a slot of this millisecond, besides the planned ones."""
    return _slot(spec, now // _MILLI * _MILLI, "run_now")


def _slot(spec: ScheduleSpec, at: Instant, cause: SlotCause) -> NewSlot:
    tenant = spec.tenant
    job = None if tenant is None else slot_id(tenant, spec.name, at)
    return NewSlot(at=at, tenant=tenant, cause=cause, job=job)


async def enqueue_slot(client: Client, spec: ScheduleSpec, slot: NewSlot) -> Job[Any] | None:
    """Enqueue the job of a slot that was taken; None if it is for many tenants, which the duty does.

    If this process is killed in between, the duty goes on with the slot, under the same id.
    """
    if spec.tenant is None:
        return None
    job, store = job_of_slot(spec, slot.at, by_hand=True), client.store
    request = EnqueueRequest(
        scope=Scope.all(),
        jobs=(job,),
        must_be_declared=client.settings.tenancy == "declared",
        is_repeated=True,
    )
    reply = await store.jobs.enqueue(request)
    end = SlotEnd(schedule=spec.name, at=slot.at, state="enqueued")
    error = refusal_error(reply.refused, [job], is_batch=False) if reply.refused else None
    if error is not None:
        end = SlotEnd(schedule=spec.name, at=slot.at, state="failed", because=str(error))
    await store.schedules.end_slots(EndSlotsRequest(scope=Scope.all(), ends=(end,)))
    if error is not None:
        raise error
    return client.show(reply.enqueued[0].job)


async def backfilled(
    client: Client, spec: ScheduleSpec, first: Instant, last: Instant
) -> tuple[NewSlot, ...]:
    """Return the slots between two instants, both included, that have made no job."""
    slots = slots_between(spec.timing, first - 1, last, MAX_SLOTS + 1)
    if len(slots) > MAX_SLOTS:
        message = f"since: there are more than {MAX_SLOTS:,} slots until then; give a shorter time"
        raise ValueError(message)
    done: set[Instant] = set()
    before: Instant | None = last + 1
    while before is not None:
        request = SlotsRequest(scope=Scope.all(), schedule=spec.name, before=before, limit=MAX_SLOTS)
        rows = await client.store.schedules.slots(request)
        done |= {row.at for row in rows if row.state in _DONE}
        before = rows[-1].at if len(rows) == MAX_SLOTS and rows[-1].at > first else None
    return tuple(_slot(spec, at, "backfill") for at in slots if at not in done)
