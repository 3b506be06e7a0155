"""Make the jobs of slots that are due (S57). Correctness is the unique slot, not that one process leads.

A pass ends the slots that are pending, and takes those that are due: they are pending for the next pass,
which comes at once. A process that is killed in between leaves slots pending, and the next leader makes the
same jobs under the same ids. Only the store's clock says what is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from logging import getLogger
from typing import Final

from fairlane.duties.pass_result import Pause, counted
from fairlane.duties.schedules.fan_out import FanOuts
from fairlane.duties.schedules.make_jobs import MadeJobs, make_jobs
from fairlane.duties.schedules.new_zone_data import NewZoneData
from fairlane.duties.schedules.take import Take
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import NewJob
from fairlane.model.schedule.records import ScheduleRecord, SlotRow, SlotState
from fairlane.model.schedule.slot_jobs import job_of_slot
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.runtime.zone_data import zone_data_version
from fairlane.store.contract import Store
from fairlane.store.contract.schedules import (
    DueReply,
    DueRequest,
    EndSlotsRequest,
    SchedulesFindRequest,
    SlotEnd,
)

EVERY: Final[Micros] = 5 * SECOND
"""The longest pause: a schedule that somebody makes meanwhile is seen by then."""

_log: Final = getLogger("fairlane.duties")


class Fire:
    """Takes passes over what is due. With `must_be_declared` an unknown tenant gets no job (S7)."""

    def __init__(self, clock: Clock, *, must_be_declared: bool) -> None:
        self._must_be_declared = must_be_declared
        self._take = Take(clock)
        self._fan_outs = FanOuts(must_be_declared=must_be_declared)
        self._zone_data = NewZoneData(clock, zone_data_version)

    async def __call__(self, store: Store) -> Micros:
        """Take one pass; return the pause before the next, zero if there was more."""
        moved = await self._zone_data(store)
        reply = await store.schedules.due(DueRequest(scope=Scope.all()))
        made = await self._end_pending(store, reply.pending, reply.now)
        taken = await self._take(store, reply.rows, reply.now, self._zone_data.version)
        did = ", ".join(
            words
            for words in (
                counted(taken, "schedules advanced"),
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
        single = [slot for slot in pending if slot.fan_out is None]
        many = [slot for slot in pending if slot.fan_out is not None]
        made = await self._end_single(store, single, records, now)
        return made.plus(await self._fan_outs(store, many, records, now))

    async def _end_single(
        self, store: Store, pending: Sequence[SlotRow], records: dict[str, ScheduleRecord], now: Instant
    ) -> MadeJobs:
        ends: list[SlotEnd] = []
        slots: list[SlotRow] = []
        jobs: list[NewJob] = []
        for slot in pending:
            record = records.get(slot.schedule)
            spec = None if record is None else record.spec(now)
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


def _end(slot: SlotRow, state: SlotState, because: str) -> SlotEnd:
    return SlotEnd(schedule=slot.schedule, at=slot.at, state=state, because=because)


def _rest(reply: DueReply) -> Micros:
    if reply.rows or reply.pending:
        return 0
    if reply.next_at is None:
        return EVERY
    return min(max(reply.next_at - reply.now, 0), EVERY)
