"""`app.schedules`: look at schedules and their slots; add, edit, pause, run and remove them.

From inside a tenant only that tenant's own schedules can be read, and none can be changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Unpack

from msgspec.structs import replace

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, instant_or_none, number_of, reason_of, text_of, until_of
from fairlane.app.ambient import refuse_inside
from fairlane.app.job import Job
from fairlane.app.schedules.building import build_schedule
from fairlane.app.schedules.changing import Changed, Decide, change_schedule, present
from fairlane.app.schedules.looking import MOST_RUNS, ScheduleReading, named_schedule
from fairlane.app.schedules.options import ScheduleOptions
from fairlane.app.schedules.previewing import preview_spec
from fairlane.app.schedules.slots_by_hand import backfilled, enqueue_slot, slot_now
from fairlane.app.schedules.views import SchedulePreview, ScheduleView, options_of
from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import Hold
from fairlane.model.schedule.errors import ScheduleExists
from fairlane.model.schedule.records import ScheduleOverride, ScheduleRecord, ScheduleRow
from fairlane.model.schedule.restart import next_look, restarted
from fairlane.model.schedule.spec import ScheduleSpec
from fairlane.model.scope import Scope
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.schedules import SchedulesListRequest

_KINDS: Final = frozenset({"cron", "every", "at"})
_OF_CRON: Final = frozenset({"days", "missing", "repeated"})
_OF_WINDOW: Final = frozenset({"between", "weekdays", "holidays"})


class Schedules(ScheduleReading):
    """The schedules of a store. Each method has an async twin whose name starts with `a`."""

    def add(
        self,
        name: str,
        task: str,
        cron: str | None = None,
        *,
        who: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleView:
        """Make a schedule of a task that is declared here, or that a worker has published.

        The options are those of `app.schedule`. `InvalidSchedule` lists everything that is wrong,
        `ScheduleExists` means that the name is taken.
        """
        return self._client.portal.run(self.aadd(name, task, cron, who=who, **options))

    async def aadd(
        self,
        name: str,
        task: str,
        cron: str | None = None,
        *,
        who: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleView:
        """Make a schedule of a task; see `add`."""
        note = text_of("note", options.get("note", ""))
        words = {**options, "task": task, "cron": cron}

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed:
            if row is not None and row.record.retired_at is None:
                raise ScheduleExists(name)
            spec = await build_schedule(self._client, name, words, now=now)
            override = ScheduleOverride(spec=spec, who=actor(who), note=note, set_at=now)
            return Changed(restarted(ScheduleRecord(name=name, override=override), now))

        await self._change(name, "add", note, who, decide)
        return await self.aget(name)

    def edit(
        self,
        name: str,
        *,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
        **changes: Any,
    ) -> ScheduleView:
        """Change words of a schedule, for good or until a time; None removes a word, and others stay.

        The edit survives deploys and is shown as such until `reset`. If when it runs has changed, it goes on
        from now.
        """
        return self._client.portal.run(self.aedit(name, note=note, until=until, who=who, **changes))

    async def aedit(
        self,
        name: str,
        *,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
        **changes: Any,
    ) -> ScheduleView:
        """Change words of a schedule; see `edit`."""
        end, why = until_of(until), text_of("note", note)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed:
            record = present(row, name).record
            before = _in_force(record, now)
            spec = await self._edited(name, before, changes, now)
            override = ScheduleOverride(spec=spec, who=actor(who), note=why, set_at=now, until=end)
            edited = replace(record, override=override)
            if _times(spec) == _times(before):
                return Changed(replace(edited, next_at=_nearest(edited, now)))
            return Changed(restarted(replace(edited, retired_at=None), now))

        await self._change(name, "edit", why, who, decide)
        return await self.aget(name)

    def preview_edit(self, name: str, *, count: int = 5, **changes: Any) -> SchedulePreview:
        """Return what a schedule would do after an edit, without saving it."""
        return self._client.portal.run(self.apreview_edit(name, count=count, **changes))

    async def apreview_edit(self, name: str, *, count: int = 5, **changes: Any) -> SchedulePreview:
        """Return what a schedule would do after an edit, without saving it."""
        row, now = await self._read(name)
        spec = await self._edited(name, _in_force(present(row, name).record, now), changes, now)
        return preview_spec(spec, now, number_of("count", count, MOST_RUNS))

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> ScheduleView:
        """Undo an edit, so that the schedule is as declared; without an edit nothing changes."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> ScheduleView:
        """Undo an edit, so that the schedule is as declared; see `reset`."""
        why = text_of("note", note)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed | None:
            record = present(row, name).record
            if record.override is None:
                return None
            if record.declared is None:
                message = (
                    f"schedule {name} is not declared, so nothing would be left of it; remove it instead"
                )
                raise ValueError(message)
            return Changed(restarted(replace(record, override=None), now))

        await self._change(name, "reset", why, who, decide)
        return await self.aget(name)

    def pause(self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None) -> None:
        """Take no slot of it until `resume` or a time. Its jobs go on. A later pause replaces it."""
        self._client.portal.run(self.apause(name, reason=reason, until=until, who=who))

    async def apause(
        self, name: str, *, reason: str, until: datetime | None = None, who: str | None = None
    ) -> None:
        """Take no slot of it until `resume` or a time; see `pause`."""
        why, end = reason_of(reason), until_of(until)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed:
            hold = Hold(who=actor(who), reason=why, set_at=now, until=end)
            record = replace(present(row, name).record, paused=hold)
            return Changed(replace(record, next_at=next_look(record, now)))

        await self._change(name, "pause", why, who, decide)

    def resume(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a pause. What it has left out is not made up for; without a pause nothing changes."""
        self._client.portal.run(self.aresume(name, note=note, who=who))

    async def aresume(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """End a pause; see `resume`."""
        why = text_of("note", note)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed | None:
            record = present(row, name).record
            if record.paused is None:
                return None
            return Changed(restarted(replace(record, paused=None), now))

        await self._change(name, "resume", why, who, decide)

    def run(self, name: str, *, note: str = "", who: str | None = None) -> Job[Any] | None:
        """Make one slot now, besides the planned ones, also of a paused schedule; return its job.

        None for a schedule of many tenants: the next pass of the duty `fire` makes their jobs.
        """
        return self._client.portal.run(self.arun(name, note=note, who=who))

    async def arun(self, name: str, *, note: str = "", who: str | None = None) -> Job[Any] | None:
        """Make one slot now; see `run`."""
        why = text_of("note", note)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed:
            record = present(row, name).record
            return Changed(record, (slot_now(_in_force(record, now), now),))

        changed, now = await self._change(name, "run", why, who, decide)
        assert changed is not None and changed.record is not None  # noqa: S101, PT018 (decided so above)
        (slot,) = changed.slots
        return await enqueue_slot(self._client, _in_force(changed.record, now), slot)

    def remove(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """Remove a schedule; its slots and jobs stay. A worker that declares it declares it again."""
        self._client.portal.run(self.aremove(name, note=note, who=who))

    async def aremove(self, name: str, *, note: str = "", who: str | None = None) -> None:
        """Remove a schedule; see `remove`."""
        why = text_of("note", note)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed:  # noqa: ARG001 (see Decide)
            present(row, name)
            return Changed(None)

        await self._change(name, "remove", why, who, decide)

    def recompute(self, name: str | None = None, *, note: str = "", who: str | None = None) -> int:
        """Compute the next run anew, of one schedule or of all; return of how many it was another.

        Fairlane does so by itself when the zone data has changed.
        """
        return self._client.portal.run(self.arecompute(name, note=note, who=who))

    async def arecompute(self, name: str | None = None, *, note: str = "", who: str | None = None) -> int:
        """Compute the next run anew, of one schedule or of all; see `recompute`."""
        why = text_of("note", note)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed | None:
            record = present(row, name or "").record
            next_at = _nearest(record, now)
            return None if next_at == record.next_at else Changed(replace(record, next_at=next_at))

        refuse_inside("schedules are for operators to change")
        if name is not None:
            changed, _ = await self._change(name, "recompute", why, who, decide)
            return int(changed is not None)
        moved, cursor = 0, ""
        while True:
            request = SchedulesListRequest(scope=Scope.all(), after=cursor, limit=MAX_PAGE_SIZE)
            rows = (await self._client.store.schedules.list(request)).rows
            for row in rows:
                cursor = row.record.name
                changed, _ = await self._change(cursor, "recompute", why, who, decide)
                moved += changed is not None
            if len(rows) < MAX_PAGE_SIZE:
                return moved

    def backfill(
        self, name: str, since: datetime, until: datetime, *, note: str = "", who: str | None = None
    ) -> int:
        """Take the slots from one instant to another that were missed, skipped or failed; return how many.

        The next passes of the duty `fire` make their jobs. At most 1,000 slots; both ends are included.
        """
        return self._client.portal.run(self.abackfill(name, since, until, note=note, who=who))

    async def abackfill(
        self, name: str, since: datetime, until: datetime, *, note: str = "", who: str | None = None
    ) -> int:
        """Take the slots from one instant to another that were missed, skipped or failed; see `backfill`."""
        why = text_of("note", note)
        first, last = instant_or_none("since", since), instant_or_none("until", until)
        if first is None or last is None or first > last:
            message = "since: is missing, or after until; give two instants in their order"
            raise ValueError(message)

        async def decide(row: ScheduleRow | None, now: Instant) -> Changed:
            record = present(row, name).record
            slots = await backfilled(self._client, _in_force(record, now), first, min(last, now))
            return Changed(record, slots)

        changed, _ = await self._change(name, "backfill", why, who, decide)
        return 0 if changed is None else len(changed.slots)

    # ── parts ─────────────────────────────────────────────────────────────────

    async def _change(
        self, name: str, verb: str, note: str, who: str | None, decide: Decide
    ) -> tuple[Changed | None, Instant]:
        refuse_inside("schedules are for operators to change")
        done = operation(f"schedules.{verb}", who=who, note=note)
        return await change_schedule(self._client, named_schedule(name), decide, done)

    async def _edited(
        self, name: str, before: ScheduleSpec, changes: Mapping[str, Any], now: Instant
    ) -> ScheduleSpec:
        """Return a schedule with what an operator changes in it."""
        words = options_of(before, lower_first=self._client.settings.is_lower_first)
        kinds = {word for word in _KINDS if changes.get(word) is not None}
        if kinds:
            dropped = set(_KINDS)
            if "cron" not in kinds:
                dropped |= _OF_CRON
            if "at" in kinds:
                dropped |= _OF_WINDOW
            words = {word: value for word, value in words.items() if word not in dropped}
        if changes.get("tenant") is not None:
            words.pop("for_tenants", None)
        if changes.get("for_tenants") is not None:
            words.pop("tenant", None)
        past = now if "at" in kinds else None
        return await build_schedule(self._client, name, {**words, **changes}, before=before, now=past)


def _in_force(record: ScheduleRecord, now: Instant) -> ScheduleSpec:
    spec = record.spec(now)
    assert spec is not None  # noqa: S101 (what is stored is declared or added)
    return spec


def _nearest(record: ScheduleRecord, now: Instant) -> Instant | None:
    """Return when a schedule must be looked at, which is at once if a slot of it is due."""
    return next_look(record, min(record.settled_to, now)) if record.settled_to else next_look(record, now)


def _times(spec: ScheduleSpec) -> tuple[object, ...]:
    return spec.timing, spec.starts, spec.ends
