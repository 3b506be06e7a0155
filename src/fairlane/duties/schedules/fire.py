"""Make the jobs of slots that are due (S57). Correctness is the unique slot, not that one process leads.

A pass takes slots that are due, makes their jobs, and ends them; then it ends what others have left pending:
a process that is killed in between leaves slots so, and the next one makes the same jobs under the same ids.
Only the store's clock says what is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from logging import getLogger
from typing import Final

from fairlane.duties.pass_result import Pause, counted
from fairlane.duties.schedules.fan_out import FanOuts
from fairlane.duties.schedules.make_jobs import MadeJobs, make_jobs
from fairlane.duties.schedules.new_zone_data import NewZoneData
from fairlane.duties.schedules.starting_point import StartingPoint
from fairlane.duties.schedules.take import Take, Taken
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import NewJob
from fairlane.model.schedule.records import SlotRow, SlotState
from fairlane.model.schedule.slot_jobs import job_of_slot
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.zone_data import zone_data_version
from fairlane.store.contract import Store
from fairlane.store.contract.schedules import (
    MAX_SLOTS,
    DueReply,
    DueRequest,
    EndSlotsRequest,
    SchedulesFindRequest,
    SlotEnd,
)

EVERY: Final[Micros] = 5 * SECOND
"""The longest pause: a schedule that somebody makes meanwhile is seen by then."""

LEFT_FOR: Final[Micros] = 2 * SECOND
"""How long a slot is left to the process that has taken it, while there is other work: most end at once."""

_log: Final = getLogger("fairlane.duties")


class Fire:
    """Takes passes over what is due. With `must_be_declared` an unknown tenant gets no job (S7)."""

    def __init__(self, clock: Clock, *, must_be_declared: bool) -> None:
        self._must_be_declared = must_be_declared
        self._take = Take(clock)
        self._start = StartingPoint()
        self._fan_outs = FanOuts(must_be_declared=must_be_declared)
        self._zone_data = NewZoneData(clock, zone_data_version)

    async def __call__(self, store: Store) -> Micros:
        """Take one pass; return the pause before the next, zero if there was more."""
        moved = await self._zone_data(store)
        reply = await store.schedules.due(DueRequest(scope=Scope.all(), skip=self._start.skip))
        taken = await self._take(store, reply.rows, reply.now, self._zone_data.version)
        self._start.move(len(reply.rows), taken.overtaken)
        made = await self._end_single(store, _own(taken), taken.specs)
        made = made.plus(await self._end_pending(store, _left(reply), reply.now))
        did = ", ".join(
            words
            for words in (
                counted(taken.advanced, "schedules advanced"),
                counted(made.enqueued, "jobs made"),
                counted(made.skipped, "skipped"),
                counted(made.failed, "failed"),
                counted(moved, "moved to new zone data"),
            )
            if words
        )
        return Pause(_rest(reply), did)

    async def _end_pending(self, store: Store, pending: Sequence[SlotRow], now: Instant) -> MadeJobs:
        if not pending:
            return MadeJobs()
        names = tuple({slot.schedule for slot in pending})
        found = await store.schedules.find(SchedulesFindRequest(scope=Scope.all(), names=names))
        records = {row.record.name: row.record for row in found.rows}
        found_specs = ((name, record.spec(now)) for name, record in records.items())
        specs = {name: spec for name, spec in found_specs if spec is not None}
        single = [slot for slot in pending if slot.fan_out is None]
        many = [slot for slot in pending if slot.fan_out is not None]
        made = await self._end_single(store, single, specs)
        return made.plus(await self._fan_outs(store, many, records, now))

    async def _end_single(
        self, store: Store, pending: Sequence[SlotRow], specs: Mapping[str, ScheduleSpec]
    ) -> MadeJobs:
        ends: list[SlotEnd] = []
        slots: list[SlotRow] = []
        jobs: list[NewJob] = []
        for slot in pending:
            spec = specs.get(slot.schedule)
            if spec is None:
                ends.append(_end(slot, "skipped", "the schedule was removed"))
            else:
                slots.append(slot)
                by_hand = slot.cause != "due"
                jobs.append(job_of_slot(spec, slot.at, slot.tenant, by_hand=by_hand))
        answers = await make_jobs(store, jobs, must_be_declared=self._must_be_declared)
        for slot, answer in zip(slots, answers, strict=True):
            ends.append(_end(slot, answer.state, answer.because))
            if answer.state == "failed":
                extra = {"event": "slot_failed", "schedule": slot.schedule, "tenant": slot.tenant}
                _log.warning("a slot of schedule %s failed: %s", slot.schedule, answer.because, extra=extra)
        if ends:
            await store.schedules.end_slots(EndSlotsRequest(scope=Scope.all(), ends=tuple(ends)))
        return MadeJobs.of(answers)


def _own(taken: Taken) -> Sequence[SlotRow]:
    """Return the slots for one tenant that were just taken, oldest first; what is too much stays pending."""
    single = [slot for slot in taken.slots if slot.state == "pending" and slot.fan_out is None]
    return sorted(single, key=lambda slot: (slot.at, slot.schedule))[:MAX_SLOTS]


def _left(reply: DueReply) -> Sequence[SlotRow]:
    """Return pending slots, while others are due without those that another has just taken: it may live."""
    if not reply.rows and (reply.next_at is None or reply.next_at > reply.now):
        return reply.pending
    return [slot for slot in reply.pending if not _is_at_work(slot, reply.now)]


def _is_at_work(slot: SlotRow, now: Instant) -> bool:
    return slot.cause == "due" and slot.fan_out is None and 0 <= now - slot.taken_at < LEFT_FOR


def _end(slot: SlotRow, state: SlotState, because: str) -> SlotEnd:
    return SlotEnd(schedule=slot.schedule, at=slot.at, state=state, because=because)


def _rest(reply: DueReply) -> Micros:
    if reply.rows or reply.pending:
        return 0
    if reply.next_at is None:
        return EVERY
    return min(max(reply.next_at - reply.now, 0), EVERY)
