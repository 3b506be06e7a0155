"""Look at schedules: list them, their next runs and their slots; try one out before it is saved.

From inside a tenant only that tenant's own schedules are there (S9).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Unpack

from fairlane.app.admin.jobs import Page
from fairlane.app.admin.validation import name_of, number_of, text_or_none, within_page
from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.app.schedules.changing import find_row, present
from fairlane.app.schedules.options import PreviewOptions
from fairlane.app.schedules.previewing import preview_of, runs_of
from fairlane.app.schedules.views import SchedulePreview, ScheduleView, SlotView, schedule_view, slot_view
from fairlane.model.instants import Instant
from fairlane.model.names import invalid_name, name_hint
from fairlane.model.schedule.records import ScheduleRow
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.schedules import SchedulesListRequest, SlotsRequest

MOST_RUNS: Final = 1_000
"""Most next runs that one call computes."""


class ScheduleReading:
    """What can be read of schedules. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        task: str | None = None,
        active: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[ScheduleView]:
        """Return one page of schedules by name: those of a task, or only those that make jobs."""
        return self._client.portal.run(self.alist(task=task, active=active, limit=limit, cursor=cursor))

    async def alist(
        self,
        *,
        task: str | None = None,
        active: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[ScheduleView]:
        """Return one page of schedules by name; see `list`."""
        wanted = None if task is None else name_of("task", task)
        most, after = within_page("limit", limit), text_or_none("cursor", cursor) or ""
        found: list[ScheduleView] = []
        while True:
            request = SchedulesListRequest(scope=scope_for(None), after=after, limit=MAX_PAGE_SIZE)
            reply = await self._client.store.schedules.list(request)
            for row in reply.rows:
                after = row.record.name
                view = self._view(row, reply.now)
                if view is None or (wanted and view.task != wanted) or (active and not view.is_active):
                    continue
                found.append(view)
                if len(found) == most:
                    return Page(tuple(found), after)
            if len(reply.rows) < MAX_PAGE_SIZE:
                return Page(tuple(found), None)

    def get(self, name: str) -> ScheduleView:
        """Return a schedule; `ScheduleNotFound` if there is none of this name."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> ScheduleView:
        """Return a schedule; `ScheduleNotFound` if there is none of this name."""
        return self._shown(*await self._read(name), name)

    def next(self, name: str, count: int = 5) -> Sequence[datetime]:
        """Return the next slots of a schedule, as if it were not paused."""
        return self._client.portal.run(self.anext(name, count))

    async def anext(self, name: str, count: int = 5) -> Sequence[datetime]:
        """Return the next slots of a schedule, as if it were not paused."""
        most = number_of("count", count, MOST_RUNS)
        row, now = await self._read(name)
        spec = present(row, name).record.spec(now)
        return () if spec is None else runs_of(spec, now, most)

    def failing(self, *, most: int = 1_000) -> Sequence[ScheduleView]:
        """Return the schedules whose slots fail, of the first ones by name."""
        return self._client.portal.run(self.afailing(most=most))

    async def afailing(self, *, most: int = 1_000) -> Sequence[ScheduleView]:
        """Return the schedules whose slots fail, of the first ones by name."""
        request = SchedulesListRequest(scope=scope_for(None), limit=within_page("most", most))
        reply = await self._client.store.schedules.list(request)
        failing = [row for row in reply.rows if row.record.problem or row.record.failures]
        views = [self._view(row, reply.now) for row in failing]
        return tuple(view for view in views if view is not None and view.retired_at is None)

    def history(self, name: str, *, limit: int = 100, cursor: str | None = None) -> Page[SlotView]:
        """Return one page of the slots of a schedule, newest first, also of one that was removed.

        `ScheduleNotFound` if there is neither a schedule nor a slot of this name.
        """
        return self._client.portal.run(self.ahistory(name, limit=limit, cursor=cursor))

    async def ahistory(self, name: str, *, limit: int = 100, cursor: str | None = None) -> Page[SlotView]:
        """Return one page of the slots of a schedule, newest first; see `history`."""
        most, before = within_page("limit", limit), _cursor(cursor)
        request = SlotsRequest(
            scope=scope_for(None), schedule=named_schedule(name), before=before, limit=most
        )
        rows = await self._client.store.schedules.slots(request)
        if not rows and before is None:
            present((await self._read(name))[0], name)
        more = str(rows[-1].at) if len(rows) == most else None
        return Page(tuple(map(slot_view, rows)), more)

    def preview(
        self, name: str = "preview", *, count: int = 5, **options: Unpack[PreviewOptions]
    ) -> SchedulePreview:
        """Return what a schedule with these words would do, without saving it; `InvalidSchedule` otherwise.

        Without a task, only what says when is checked.
        """
        return self._client.portal.run(self.apreview(name, count=count, **options))

    async def apreview(
        self, name: str = "preview", *, count: int = 5, **options: Unpack[PreviewOptions]
    ) -> SchedulePreview:
        """Return what a schedule with these words would do, without saving it; see `preview`."""
        most = number_of("count", count, MOST_RUNS)
        _, now = await find_row(self._client, "preview", scope_for(None))
        return await preview_of(self._client, name, dict(options), now, most)

    async def _read(self, name: str) -> tuple[ScheduleRow | None, Instant]:
        return await find_row(self._client, named_schedule(name), scope_for(None))

    def _shown(self, row: ScheduleRow | None, now: Instant, name: str) -> ScheduleView:
        view = self._view(present(row, name), now)
        assert view is not None  # noqa: S101 (what is stored is declared or added)
        return view

    def _view(self, row: ScheduleRow, now: Instant) -> ScheduleView | None:
        spec = row.record.spec(now)
        if spec is None:  # added until a time that is over
            return None
        return schedule_view(row, spec, now, lower_first=self._client.settings.is_lower_first)


def named_schedule(name: str) -> str:
    """Return a legal name of a schedule."""
    hint = name_hint(name)
    if hint is not None:
        raise invalid_name("schedule", name, hint)
    return name


def _cursor(cursor: str | None) -> Instant | None:
    text = text_or_none("cursor", cursor)
    if text is None:
        return None
    if not text.isdecimal():
        message = f"{text[:60]!r} is no cursor; use the one that came with the page before"
        raise ValueError(message)
    return int(text)
