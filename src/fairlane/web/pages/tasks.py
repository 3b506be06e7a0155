"""Tasks: what can run here and under which rules, how well it goes, and a job of one enqueued by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlane.app.admin.job_search import search_of
from fairlane.app.admin.published_tasks import PublishedTask
from fairlane.app.admin.retries import TaskRetries
from fairlane.app.admin.state_counts import state_counts
from fairlane.app.admin.workers import Worker
from fairlane.app.ambient import scope_for
from fairlane.app.schedules.schedule_json import shown_schedule
from fairlane.app.schedules.views import ScheduleView
from fairlane.store.contract.registry import TasksRequest
from fairlane.web.api.breakers import breaker_shown
from fairlane.web.api.job_replies import redactors
from fairlane.web.api.policies import shown
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.forms.argument_fields import argument_fields
from fairlane.web.html.budget_bars import NOTHING, BudgetBar, bars_of, pressing
from fairlane.web.page import PageGroup, PageView
from fairlane.web.pages.jobs import TABS, rows_of
from fairlane.web.personal import CHOICES, RANGES, Range, personal_of

TASKS: Final = PageGroup("Tasks", section="machinery", icon="tasks", key="k")

_READ: Final = 1_000
"""How many finished jobs are read to say how well tasks do."""

_LATEST: Final = 8
_SCHEDULES: Final = 1_000
_ACCOUNTS: Final = 4


class TasksQuery(Body, frozen=True, kw_only=True):
    """How far back the page looks; what the user chose if the URL does not say."""

    range: Range | None = None


class TaskRow(msgspec.Struct, frozen=True):
    """A task in the list: its rules, its handler's module, the live workers that know it, how it did."""

    task: PublishedTask
    module: str
    workers: int
    went: TaskRetries | None
    schedules: Sequence[ScheduleView]


@TASKS.page("/tasks", "tasks.list", tenants="all")
async def list_tasks(call: WebCall, query: TasksQuery) -> PageView:
    """Show every task that a worker has published, or that has a rule."""
    chosen: Range = query.range or personal_of(call.request.cookies).range
    workers = await call.app.workers.alist(live=True)
    report = await call.app.tasks.aretries(since=RANGES[chosen], most=_READ)
    went = {one.task: one for one in report.tasks}
    modules, schedules = await _modules(call), await _schedules(call)
    rows = [
        TaskRow(
            shown(one),
            modules.get(one.name, ""),
            len(_knowing(workers, one.name)),
            went.get(one.name),
            schedules.get(one.name, ()),
        )
        for one in await call.app.tasks.alist()
    ]
    return PageView(
        "tasks/list.html",
        {
            "rows": rows,
            "has_workers": bool(workers),
            "range": chosen,
            "ranges": CHOICES["range"],
            "is_complete": report.is_complete,
            "looked_at": report.looked_at,
        },
    )


@TASKS.page("/tasks/{task}", "tasks.show", tenants="all")
async def show_task(call: WebCall, task: str, query: TasksQuery) -> PageView:
    """Show one task: its rules, versions and workers, its latest jobs, and the form to enqueue one."""
    chosen: Range = query.range or personal_of(call.request.cookies).range
    view = shown(await call.app.tasks.aget(task))
    versions = await call.app.tasks.aversions(task)
    newest = versions[0] if versions else None
    store = call.app.client.store
    counts = await state_counts(store, await search_of(store, "", {"task": view.name}))
    jobs = await call.app.jobs.afind(task=view.name, limit=_LATEST)
    went = await call.app.tasks.aretries(since=RANGES[chosen], task=view.name, most=_READ)
    failures = await call.app.jobs.afailures(since=RANGES[chosen], task=view.name, most=_READ)
    redactor = (await redactors(call.app, [view.name]))[view.name]
    values: dict[str, Any] = {
        "task": view,
        "breaker": None
        if view.breaker is None
        else breaker_shown(await call.app.breakers.aget(view.breaker)),
        "budgets": await _budget(call, view),
        "versions": versions,
        "newest": newest,
        "schemas": {one.version: _pretty(one.schema) for one in versions},
        "fields": argument_fields(newest.schema, newest.sensitive) if newest else (),
        "workers": _knowing(await call.app.workers.alist(), view.name),
        "counts": {tab: counts.of(*states) for tab, states in TABS.items() if tab != "all"},
        "is_complete": counts.is_complete,
        "rows": await rows_of(call, jobs.items),
        "went": next(iter(went.tasks), None),
        "failures": next(iter(failures.tasks), None),
        "errors": _errors(next(iter(went.tasks), None)),
        "schedules": (await _schedules(call)).get(view.name, ()),
        "redact": redactor.text,
        "range": chosen,
        "ranges": CHOICES["range"],
    }
    return PageView("tasks/task.html", values)


async def _budget(call: WebCall, task: PublishedTask) -> Sequence[BudgetBar]:
    """Return the bar of its budget with its own part of it; of many tenants' those nearest to the ceiling."""
    if task.budget is None:
        return ()
    view = await call.app.budgets.aget(task.budget)
    if view.per_tenant or not view.accounts:
        return pressing([view])[:_ACCOUNTS]
    spend = await call.app.budgets.aspend(view.name, period=view.accounts[0].period_start)
    return bars_of(view, own=spend.by_task.get(task.name, NOTHING))


async def _modules(call: WebCall) -> Mapping[str, str]:
    found = await call.app.client.store.registry.tasks(TasksRequest(scope=scope_for(None)))
    return {view.record.name: view.record.module for view in found}


async def _schedules(call: WebCall) -> Mapping[str, Sequence[ScheduleView]]:
    """Return the schedules of each task, of the first thousand."""
    found: dict[str, list[ScheduleView]] = {}
    for one in (await call.app.schedules.alist(limit=_SCHEDULES)).items:
        if one.retired_at is None:
            found.setdefault(one.task, []).append(shown_schedule(one))
    return found


def _knowing(workers: Sequence[Worker], task: str) -> Sequence[Worker]:
    return [one for one in workers if task in one.tasks]


def _errors(went: TaskRetries | None) -> Sequence[tuple[str, int]]:
    return () if went is None else list(went.errors.items())


def _pretty(schema: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
