"""`app.dead`: dead letters, read and decided about, one or all that match (S75)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Unpack

from fairlane.app.admin.validation import actor, begin_of, number_of, text_of
from fairlane.app.dead.bulk import (
    BulkPlan,
    OnProgress,
    deleting,
    rerunning,
    reviewing,
    run_bulk,
)
from fairlane.app.dead.deciding import DeadDeciding
from fairlane.app.dead.filters import DeadFilters, dead_filters_of, filters_shown
from fairlane.app.dead.reprocessing import queue_to_use
from fairlane.app.dead.views import BulkResult
from fairlane.model.instants import LAST_INSTANT, to_datetime
from fairlane.model.review import ReviewAction
from fairlane.store.contract.dead import DeadFiltered


class DeadLetters(DeadDeciding):
    """The dead letters of an application. Each method has an async twin whose name starts with `a`.

    The methods whose names end in `_all` take the filters of `find`, and only look at pending letters unless
    `review` says otherwise; `review=None` means all. They go through the letters in passes, latest death
    first, and call `on_progress` after each. After a crash call them again: no letter is done twice. `limit`
    bounds how many letters are looked at. Who, why, filters and result are audited.
    """

    def acknowledge_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Note that somebody looks after all dead letters that match."""
        work = self.aacknowledge_all(note=note, limit=limit, on_progress=on_progress, **filters)
        return self._client.portal.run(work)

    async def aacknowledge_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Note that somebody looks after all dead letters that match."""
        return await self._review_all("acknowledge", note, limit, on_progress, filters)

    def resolve_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Decide that all dead letters that match are dealt with."""
        work = self.aresolve_all(note=note, limit=limit, on_progress=on_progress, **filters)
        return self._client.portal.run(work)

    async def aresolve_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Decide that all dead letters that match are dealt with."""
        return await self._review_all("resolve", note, limit, on_progress, filters)

    def ignore_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Decide that all dead letters that match do not matter."""
        work = self.aignore_all(note=note, limit=limit, on_progress=on_progress, **filters)
        return self._client.portal.run(work)

    async def aignore_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Decide that all dead letters that match do not matter."""
        return await self._review_all("ignore", note, limit, on_progress, filters)

    def discard_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Decide for good that all dead letters that match must not run again."""
        work = self.adiscard_all(note=note, limit=limit, on_progress=on_progress, **filters)
        return self._client.portal.run(work)

    async def adiscard_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Decide for good that all dead letters that match must not run again."""
        return await self._review_all("discard", note, limit, on_progress, filters)

    def reprocess_all(
        self,
        *,
        to_queue: str | None = None,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Run all dead jobs that match again as new jobs, as `reprocess` does, with their own arguments."""
        work = self.areprocess_all(
            to_queue=to_queue, note=note, limit=limit, on_progress=on_progress, **filters
        )
        return self._client.portal.run(work)

    async def areprocess_all(
        self,
        *,
        to_queue: str | None = None,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Run all dead jobs that match again as new jobs; see `reprocess_all`."""
        plan = _plan("reprocess", note, limit, on_progress, filters)
        queue = await queue_to_use(self._client, to_queue, plan.matching.scope)
        return await run_bulk(self._client, plan, rerunning(self._client, plan, queue))

    def delete_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Delete all dead letters that match, with their jobs, for good."""
        work = self.adelete_all(note=note, limit=limit, on_progress=on_progress, **filters)
        return self._client.portal.run(work)

    async def adelete_all(
        self,
        *,
        note: str = "",
        limit: int | None = None,
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> BulkResult:
        """Delete all dead letters that match, with their jobs, for good."""
        plan = _plan("delete", note, limit, on_progress, filters)
        return await run_bulk(self._client, plan, deleting(self._client, plan))

    def purge(
        self,
        *,
        older_than: datetime | timedelta,
        note: str = "",
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> int:
        """Delete the dead letters of jobs that died before a time, or so long ago; return how many.

        Whatever was decided about them, unless `review` says otherwise. Danger: this cannot be undone.
        """
        work = self.apurge(older_than=older_than, note=note, on_progress=on_progress, **filters)
        return self._client.portal.run(work)

    async def apurge(
        self,
        *,
        older_than: datetime | timedelta,
        note: str = "",
        on_progress: OnProgress | None = None,
        **filters: Unpack[DeadFilters],
    ) -> int:
        """Delete the dead letters of jobs that died before a time, or so long ago; see `purge`."""
        if "until" in filters:
            message = "until: is given together with older_than; give older_than alone"
            raise ValueError(message)
        dead_filters_of(filters)  # refuses another tenant's name before anything is looked up
        until = to_datetime(await begin_of(self._client.store, older_than, "older_than"))
        given: DeadFilters = {"review": None, **filters, "until": until}
        plan = _plan("purge", note, None, on_progress, given)
        return (await run_bulk(self._client, plan, deleting(self._client, plan))).done

    async def _review_all(
        self,
        action: ReviewAction,
        note: str,
        limit: int | None,
        on_progress: OnProgress | None,
        filters: DeadFilters,
    ) -> BulkResult:
        plan = _plan(action, note, limit, on_progress, filters)
        return await run_bulk(self._client, plan, reviewing(self._client, plan, action))


def _plan(
    verb: str, note: str, limit: int | None, on_progress: OnProgress | None, filters: DeadFilters
) -> BulkPlan:
    """Check everything before a store is asked; without `review`, only pending letters match."""
    given: DeadFilters = {"review": "pending", **filters}
    return BulkPlan(
        matching=DeadFiltered(**dead_filters_of(given)),
        limit=None if limit is None else number_of("limit", limit, LAST_INSTANT),
        on_progress=on_progress,
        shown=filters_shown(given),
        action=f"dead.{verb}_all" if verb != "purge" else "dead.purge",
        who=actor(None),
        note=text_of("note", note),
    )
