"""What is kept of schedules and of their slots (S54, S57). Decides nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import Hold, is_active
from fairlane.model.schedule.spec import ScheduleSpec

SlotState: TypeAlias = Literal["pending", "enqueued", "skipped", "missed", "failed"]
"""`pending`: taken, its job is not enqueued for sure. `skipped` and `failed` say why; `missed`: nobody took
it in time, and the schedule does not catch up with it."""

SlotCause: TypeAlias = Literal["due", "run_now", "backfill"]
"""Why a slot was taken: its time had come, or an operator asked."""


class ScheduleOverride(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as an operator wants it, above the declared one, if any: who, why, until when."""

    spec: ScheduleSpec
    who: str
    note: str = ""
    set_at: Instant
    until: Instant | None = None


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: what is declared of it, what operators have changed, and how far it has come.

    `application` has declared it last. Slots up to `settled_to` are settled: taken, missed, or of a time when
    the schedule was another or paused. `next_at` is when it must be looked at again: at its next slot, or
    when an override ends; None if it never must. `last_slot` is the last one taken when it was due.
    `watched` are its last jobs of which it is not known how they ended, if the schedule counts `failures`,
    those in a row. `problem` says why its slots fail. `zones` is the version of the zone data with which
    `next_at` was computed. A schedule with `retired_at` is over: its code has dropped it, or its only slot
    was taken.
    """

    name: str
    declared: ScheduleSpec | None = None
    application: str = ""
    override: ScheduleOverride | None = None
    paused: Hold | None = None
    retired_at: Instant | None = None
    settled_to: Instant = 0
    next_at: Instant | None = None
    last_slot: Instant | None = None
    watched: tuple[UUID, ...] = ()
    failures: int = 0
    problem: str = ""
    zones: str = ""

    def spec(self, now: Instant) -> ScheduleSpec | None:
        """Return what is in force: the override, unless it has ended, else what is declared."""
        if self.override is not None and is_active(self.override.until, now):
            return self.override.spec
        return self.declared

    @property
    def tenant(self) -> str | None:
        """The tenant whose schedule it is; None if its jobs are for many."""
        spec = self.declared if self.override is None else self.override.spec
        return None if spec is None else spec.tenant


class ScheduleRow(msgspec.Struct, frozen=True):
    """A record as a store keeps it. Its `revision` rises with every change, also over a removal."""

    record: ScheduleRecord
    revision: int
    created_at: Instant


class FanOut(msgspec.Struct, frozen=True, kw_only=True):
    """How far a slot has come that makes a job for each of many tenants: those up to `cursor` are done.

    `exceptions` are the first tenants without a job, and why.
    """

    cursor: str = ""
    enqueued: int = 0
    skipped: int = 0
    failed: int = 0
    exceptions: tuple[tuple[str, str], ...] = ()


class NewSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that is taken, or that nobody takes any more. `job` will be the id of its job.

    `missed` slots before it, the first of them at `missed_since`, are not recorded one by one.
    """

    at: Instant
    tenant: str | None
    cause: SlotCause = "due"
    state: SlotState = "pending"
    because: str = ""
    job: UUID | None = None
    missed: int = 0
    missed_since: Instant | None = None


class SlotRow(msgspec.Struct, frozen=True, kw_only=True):
    """A slot of a schedule as a store keeps it. One of a schedule without a tenant has a `fan_out`."""

    schedule: str
    at: Instant
    tenant: str | None
    cause: SlotCause
    state: SlotState
    taken_at: Instant
    because: str = ""
    job: UUID | None = None
    missed: int = 0
    missed_since: Instant | None = None
    fan_out: FanOut | None = None
    ended_at: Instant | None = None
