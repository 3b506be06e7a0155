"""The part of `app.jobs` that changes all jobs that match: cancel, run now, condemn, in passes.

Jobs are counted first, then read newest enqueue first, page by page, and changed a page at a time. Each job's
change is a step of the store, so an action that was killed is asked for again and does nothing twice. Jobs
that are enqueued after its start are left alone. It is audited by one entry at its start and one at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, Unpack, cast
from uuid import UUID

import msgspec

from fairlane.app.admin.bulk_entries import BulkAction, audited
from fairlane.app.admin.job_search import Search, search_of, search_page
from fairlane.app.admin.job_steering import JobSteering
from fairlane.app.admin.job_totals import total_of
from fairlane.app.admin.validation import FindFilters, actor, number_of, reason_of, states_of, text_of
from fairlane.app.dead.views import BulkResult
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.lifecycle.states import HOT, WAITING, State
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import RunNowRequest, StopRequest

STEP: Final = 500
"""Jobs that a pass changes."""

OnProgress: TypeAlias = Callable[[BulkResult], None]


class JobBulkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs that match a query and filters and are in these states; who does what to them, and why."""

    action: str
    query: str
    filters: FindFilters
    states: frozenset[State]
    note: str
    limit: int | None
    on_progress: OnProgress | None
    is_dry: bool

    def checked(self) -> JobBulkPlan:
        """Return the plan with the states that it may change; ValueError for what is wrong with it."""
        wanted = states_of(self.filters.get("state"))
        if self.limit is not None:
            number_of("limit", self.limit, LAST_INSTANT)
        return msgspec.structs.replace(self, states=self.states & wanted) if wanted else self


class JobBulk(JobSteering):
    """Changes of all jobs that match. Each method has an async twin whose name starts with `a`.

    They take the query and the filters of `find`. `limit` bounds how many jobs are changed; `dry_run` only
    counts. `on_progress` is called after each pass. The result's `matches` is an estimate while more than
    10,000 jobs must be looked at to count them.
    """

    def cancel_all(
        self,
        query: str = "",
        /,
        *,
        reason: str = "",
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[FindFilters],
    ) -> BulkResult:
        """Cancel all waiting jobs that match, and ask those that run to stop."""
        work = self.acancel_all(
            query, reason=reason, limit=limit, dry_run=dry_run, on_progress=on_progress, **filters
        )
        return self._client.portal.run(work)

    async def acancel_all(
        self,
        query: str = "",
        /,
        *,
        reason: str = "",
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[FindFilters],
    ) -> BulkResult:
        """Cancel all waiting jobs that match, and ask those that run to stop."""
        why = text_of("reason", reason)

        async def cancel(scope: Scope, ids: tuple[UUID, ...]) -> Mapping[UUID, str]:
            replies = await self._client.store.jobs.cancel(StopRequest(scope=scope, ids=ids, reason=why))
            gone = {id: "gone" for id in ids if id not in replies}
            return gone | {id: "finished" for id, reply in replies.items() if reply == "finished"}

        plan = JobBulkPlan(
            action="jobs.cancel_all",
            query=query,
            filters=filters,
            states=HOT,
            note=why,
            limit=limit,
            on_progress=on_progress,
            is_dry=dry_run,
        )
        return await self._run_bulk(plan, cancel)

    def run_now_all(
        self,
        query: str = "",
        /,
        *,
        note: str = "",
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[FindFilters],
    ) -> BulkResult:
        """Make all delayed jobs that match ready now."""
        work = self.arun_now_all(
            query, note=note, limit=limit, dry_run=dry_run, on_progress=on_progress, **filters
        )
        return self._client.portal.run(work)

    async def arun_now_all(
        self,
        query: str = "",
        /,
        *,
        note: str = "",
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[FindFilters],
    ) -> BulkResult:
        """Make all delayed jobs that match ready now."""
        why = text_of("note", note)

        async def run_now(scope: Scope, ids: tuple[UUID, ...]) -> Mapping[UUID, str]:
            moved = set(await self._client.store.jobs.run_now(RunNowRequest(scope=scope, ids=ids)))
            return {id: "not_delayed" for id in ids if id not in moved}

        delayed = frozenset({State.DELAYED})
        plan = JobBulkPlan(
            action="jobs.run_now_all",
            query=query,
            filters=filters,
            states=delayed,
            note=why,
            limit=limit,
            on_progress=on_progress,
            is_dry=dry_run,
        )
        return await self._run_bulk(plan, run_now)

    def condemn_all(
        self,
        query: str = "",
        /,
        *,
        reason: str,
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[FindFilters],
    ) -> BulkResult:
        """Move all waiting jobs that match to the dead letters, with a reason."""
        work = self.acondemn_all(
            query, reason=reason, limit=limit, dry_run=dry_run, on_progress=on_progress, **filters
        )
        return self._client.portal.run(work)

    async def acondemn_all(
        self,
        query: str = "",
        /,
        *,
        reason: str,
        limit: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[FindFilters],
    ) -> BulkResult:
        """Move all waiting jobs that match to the dead letters, with a reason."""
        why, who = reason_of(reason), actor(None)

        async def condemn(scope: Scope, ids: tuple[UUID, ...]) -> Mapping[UUID, str]:
            request = StopRequest(scope=scope, ids=ids, reason=why, who=who)
            moved = set(await self._client.store.jobs.condemn(request))
            return {id: "not_waiting" for id in ids if id not in moved}

        plan = JobBulkPlan(
            action="jobs.condemn_all",
            query=query,
            filters=filters,
            states=WAITING,
            note=why,
            limit=limit,
            on_progress=on_progress,
            is_dry=dry_run,
        )
        return await self._run_bulk(plan, condemn)

    async def _run_bulk(
        self, plan: JobBulkPlan, change: Callable[[Scope, tuple[UUID, ...]], Awaitable[Mapping[UUID, str]]]
    ) -> BulkResult:
        plan, store = plan.checked(), self._client.store
        search = _narrowed(await search_of(store, plan.query, plan.filters), plan.states)
        if search is None:
            return BulkResult(matches=0, done=0, refused={}, examples=(), left=0)
        total = await total_of(store, search)
        progress = _JobProgress(total.number, plan.limit)
        if plan.is_dry:
            return progress.result()
        scope = search.request.scope
        bulk = BulkAction(action=plan.action, subject="jobs", scope=scope, note=plan.note)
        shown = {"query": plan.query, **_shown(plan.filters)}
        async with audited(
            store, bulk, filter=shown, limit=plan.limit, matches=total.number, is_exact=total.is_exact
        ) as end:
            cursor: str | None = None
            is_over = False
            while not is_over and progress.next_step:
                page = await search_page(store, search, progress.next_step, cursor)
                if page.jobs:
                    ids = tuple(job.id for job in page.jobs)
                    progress.add(len(ids), await change(scope, ids))
                    if plan.on_progress is not None:
                        plan.on_progress(progress.result())
                cursor = page.cursor
                is_over = cursor is None
            result = progress.result(is_over=is_over)
            end.result = {"done": result.done, "refused": dict(result.refused), "left": result.left}
        return result


def _narrowed(search: Search, states: frozenset[State]) -> Search | None:
    """Return the search for those jobs alone that the action can change; None if it finds none of these."""
    wanted = search.request.states & states if search.request.states else states
    if not wanted:
        return None
    return msgspec.structs.replace(search, request=msgspec.structs.replace(search.request, states=wanted))


def _shown(filters: FindFilters) -> dict[str, Any]:
    """Return the filters that were given as JSON values, for the audit; of metadata only its paths."""
    shown: dict[str, Any] = {}
    for name, value in filters.items():
        if name == "metadata" and isinstance(value, Mapping):
            shown[name] = sorted(map(str, cast("Mapping[object, object]", value)))
        elif name == "state" and value is not None:
            shown[name] = sorted(states_of(value))
        elif value is not None:
            shown[name] = value.isoformat() if isinstance(value, datetime) else str(value)
    return shown


class _JobProgress:
    """What has become of the jobs so far."""

    def __init__(self, matches: int, limit: int | None) -> None:
        self._matches = matches
        self._limit = limit
        self._looked_at = 0
        self._refused: Counter[str] = Counter()

    @property
    def next_step(self) -> int:
        """How many jobs to read next; 0 once enough are read."""
        return STEP if self._limit is None else min(STEP, self._limit - self._looked_at)

    def add(self, jobs: int, refused: Mapping[UUID, str]) -> None:
        """Add a pass."""
        self._looked_at += jobs
        self._refused.update(refused.values())

    def result(self, *, is_over: bool = False) -> BulkResult:
        """Return the result so far; at the end it is known how many matched."""
        matches = self._looked_at if is_over else max(self._matches, self._looked_at)
        return BulkResult(
            matches=matches,
            done=self._looked_at - self._refused.total(),
            refused=dict(self._refused),
            examples=(),
            left=matches - self._looked_at,
        )
