"""The state machine with schedules and their slots, compared with the oracle."""

from __future__ import annotations

from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fairlane.model.instants import SECOND
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.news import FAIRLANE
from fairlane.model.schedule.records import FanOut, NewSlot, ScheduleRecord, ScheduleRow, SlotCause, SlotState
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.request import Request
from fairlane.store.contract.schedules import (
    DueReply,
    DueRequest,
    EndSlotsRequest,
    ScheduleChange,
    SchedulesFindRequest,
    SchedulesListRequest,
    SchedulesWriteRequest,
    SlotEnd,
    SlotsRequest,
)
from tests.contract.schedules.scene import spec
from tests.properties.dead_letters import OPERATION, DeadLetterMachine
from tests.properties.machine import ALL

NAMES: Final = ("nightly", "hourly")
TENANTS: Final = ("a", "b", None)

DrawnSlot: TypeAlias = tuple[int, str | None, SlotCause, SlotState]
"""How many seconds ago it is, whose, why it is taken, and as what."""

CAUSES: Final[tuple[SlotCause, ...]] = ("due", "run_now", "backfill")
STATES: Final[tuple[SlotState, ...]] = ("pending", "skipped", "missed", "failed")
ENDS: Final[tuple[SlotState, ...]] = ("pending", "enqueued", "skipped", "failed")

slots = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 2, -1)),
        st.sampled_from(TENANTS),
        st.sampled_from(CAUSES),
        st.sampled_from(STATES),
    ),
    max_size=2,
    unique_by=lambda slot: slot[0],
)
ends = st.tuples(
    st.sampled_from((0, 1, 2)),
    st.sampled_from(ENDS),
    st.sampled_from(("", "m")),
    st.booleans(),
)


class ScheduleMachine(DeadLetterMachine):
    """Changes schedules and takes and ends their slots, with the right revision and with a wrong one."""

    @rule(
        name=st.sampled_from(NAMES),
        tenant=st.sampled_from(TENANTS),
        next_in=st.sampled_from((None, 0, 1)),
        taken=slots,
        is_right=st.booleans(),
        is_kept=st.booleans(),
        what=st.sampled_from(("nothing", "problem", "paused")),
    )
    def change_a_schedule(
        self,
        name: str,
        tenant: str | None,
        next_in: int | None,
        taken: list[DrawnSlot],
        *,
        is_right: bool,
        is_kept: bool,
        what: str,
    ) -> None:
        """Make, change or remove a schedule and take slots of it."""
        now = self.clock.now() // SECOND * SECOND
        row = self._row(name)
        revision = (0 if row is None else row.revision) if is_right else 7
        declared = spec(name, tenant=tenant or "a", for_tenants=None if tenant else {})
        record = ScheduleRecord(
            name=name,
            declared=declared,
            next_at=None if next_in is None else now + next_in * SECOND,
            problem="lost" if what == "problem" else "",
            paused=Hold(who=FAIRLANE, reason="so", set_at=now) if what == "paused" else None,
        )
        change = ScheduleChange(
            name=name,
            revision=revision,
            record=record if is_kept or not revision else None,
            slots=tuple(
                NewSlot(at=now - ago * SECOND, tenant=whose, cause=cause, state=state, missed=int(ago == 1))
                for ago, whose, cause, state in taken
            ),
        )
        operation = OPERATION if is_kept else None
        request = SchedulesWriteRequest(scope=ALL, changes=(change,), operation=operation)
        self.both(lambda s: s.schedules.write(request))

    @rule(name=st.sampled_from(NAMES), end=ends)
    def end_a_slot(self, name: str, end: tuple[int, SlotState, str, bool]) -> None:
        """End a slot that is there or not, from the right cursor or not."""
        ago, state, cursor, has_counts = end
        made = FanOut(cursor="m", enqueued=1, failed=1, exceptions=(("b", "closed"),)) if has_counts else None
        at = self.clock.now() // SECOND * SECOND - ago * SECOND
        one = SlotEnd(schedule=name, at=at, state=state, cursor=cursor, fan_out=made)
        self.both(lambda s: s.schedules.end_slots(EndSlotsRequest(scope=ALL, ends=(one,))))

    @rule(
        name=st.sampled_from(NAMES),
        tenant=st.sampled_from(TENANTS),
        limit=st.integers(1, 3),
        skip=st.integers(0, 2),
    )
    def look_at_schedules(self, name: str, tenant: str | None, limit: int, skip: int) -> None:
        """Read what is there, for a tenant or for all."""
        scope = ALL if tenant is None else Scope(tenant)
        self._row(name)
        self.both(lambda s: s.schedules.list(SchedulesListRequest(scope=scope, limit=limit)))
        self.both(lambda s: s.schedules.slots(SlotsRequest(scope=scope, schedule=name, limit=limit)))
        self.both(lambda s: _due(s, limit, skip))
        self.both(lambda s: s.schedules.clean(Request(scope=ALL)))

    def _row(self, name: str) -> ScheduleRow | None:
        found = self.both(lambda s: s.schedules.find(SchedulesFindRequest(scope=ALL, names=(name,))))
        return found.rows[0] if found.rows else None


async def _due(store: Store, limit: int, skip: int) -> DueReply:
    return await store.schedules.due(DueRequest(scope=ALL, limit=limit, skip=skip))
