"""Make a job for each declared tenant with some labels, page by page.

The jobs of a page come first, then the cursor moves: whoever does a page again after a crash makes the same
jobs. The cursor moves only if nobody else has moved it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlane.duties.schedules.make_jobs import MadeJobs, SlotAnswer, make_jobs
from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import SubjectKind, is_active
from fairlane.model.schedule.records import FanOut, ScheduleRecord, SlotRow, SlotState
from fairlane.model.schedule.slot_jobs import job_of_slot
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.policies import ListRequest
from fairlane.store.contract.schedules import EndSlotsRequest, SlotEnd

AT_ONCE: Final = 4
"""How many fan-outs go on in one pass."""

TENANTS: Final = 1_000
"""How many tenants get their jobs in one pass."""

MOST_EXCEPTIONS: Final = 100
"""How many tenants without a job are kept by name."""


class FanOuts:
    """Brings fan-outs on by a page each. With `must_be_declared` an unknown tenant gets no job (S7)."""

    def __init__(self, *, must_be_declared: bool) -> None:
        self._must_be_declared = must_be_declared

    async def __call__(
        self,
        store: Store,
        pending: Sequence[SlotRow],
        records: Mapping[str, ScheduleRecord],
        now: Instant,
    ) -> MadeJobs:
        """Bring the first ones on; return how many jobs were made."""
        made = MadeJobs()
        first = pending[:AT_ONCE]
        for slot in first:
            record = records.get(slot.schedule)
            spec = None if record is None else record.spec(now)
            if record is None or spec is None or spec.for_tenants is None:
                await _end(store, slot, "skipped", "the schedule was removed, or is for one tenant now")
            elif slot.cause == "due" and _is_paused(record, now):
                await _end(store, slot, "skipped", "the schedule was paused")
            else:
                made = made.plus(await self._bring_on(store, slot, spec, TENANTS // len(first)))
        return made

    async def _bring_on(self, store: Store, slot: SlotRow, spec: ScheduleSpec, limit: int) -> MadeJobs:
        before = slot.fan_out or FanOut()
        request = ListRequest(
            scope=Scope.all(),
            kind=SubjectKind.TENANT,
            labels=spec.for_tenants or {},
            with_jobs=False,
            limit=limit,
            after=before.cursor,
        )
        views = await store.policies.list(request)
        tenants = [
            view.subject.name for view in views if view.declared is not None and view.subject.name != "*"
        ]
        by_hand = slot.cause != "due"
        jobs = [job_of_slot(spec, slot.at, tenant, by_hand=by_hand) for tenant in tenants]
        answers = await make_jobs(store, jobs, must_be_declared=self._must_be_declared)
        cursor = views[-1].subject.name if views else before.cursor
        after = _counted(before, cursor, tenants, answers)
        is_last = len(views) < limit
        is_mine = await _end(store, slot, "enqueued" if is_last else "pending", fan_out=after)
        return MadeJobs.of(answers) if is_mine else MadeJobs()


def _is_paused(record: ScheduleRecord, now: Instant) -> bool:
    return record.paused is not None and is_active(record.paused.until, now)


def _counted(before: FanOut, cursor: str, tenants: Sequence[str], answers: Sequence[SlotAnswer]) -> FanOut:
    made = MadeJobs.of(answers)
    without = [
        (tenant, answer.because)
        for tenant, answer in zip(tenants, answers, strict=True)
        if answer.state == "failed"
    ]
    return FanOut(
        cursor=cursor,
        enqueued=before.enqueued + made.enqueued,
        skipped=before.skipped + made.skipped,
        failed=before.failed + made.failed,
        exceptions=(*before.exceptions, *without)[:MOST_EXCEPTIONS],
    )


async def _end(
    store: Store, slot: SlotRow, state: SlotState, because: str = "", fan_out: FanOut | None = None
) -> bool:
    cursor = "" if slot.fan_out is None else slot.fan_out.cursor
    end = SlotEnd(
        schedule=slot.schedule, at=slot.at, state=state, because=because, cursor=cursor, fan_out=fan_out
    )
    (is_done,) = await store.schedules.end_slots(EndSlotsRequest(scope=Scope.all(), ends=(end,)))
    return is_done
