"""`app.tasks`: the tasks that workers have published, their rate and gate; pause, close and drain them.

All tenants share the tasks, so from inside a tenant they can be neither read nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.admin.controls import PolicyControls, list_all
from fairlane.app.admin.counts import Counts, counts_from, tally_all
from fairlane.app.admin.operations import operation
from fairlane.app.admin.queue_stats import MAX_LOOKED_AT
from fairlane.app.admin.retries import RetryReport, report_retries
from fairlane.app.admin.validation import begin_of, name_of, number_of, rate_of, reason_of
from fairlane.app.admin.views import (
    Held,
    Overridden,
    declared_values,
    held_view,
    override_view,
    to_optional_datetime,
)
from fairlane.app.enqueue.by_name import call_by_name
from fairlane.app.job import Job
from fairlane.model.instants import LAST_INSTANT, SECOND, to_datetime
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind, TaskRules
from fairlane.model.scheduling.priority import at_edge
from fairlane.store.contract.jobs import FindRequest, TallyRequest
from fairlane.store.contract.policies import PolicyView
from fairlane.store.contract.registry import TasksRequest, TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTask:
    """A task at one instant: as workers have published it, with its effective rate, gate, breaker and budget.

    `seen_at` is when a live worker last published the task. The fields from `queue` to `seen_at` are None or
    empty if no worker ever has. `timeout` is in seconds. `declared` and `override` are as in `QueueView`.
    """

    name: str
    queue: str | None
    version: int | None
    aliases: Sequence[str]
    timeout: float | None
    max_attempts: int | None
    seen_at: datetime | None
    rate: Rate | None
    gate: str | None
    breaker: str | None
    budget: str | None
    paused: Held | None
    closed: Held | None
    declared: Mapping[str, Any] | None
    override: Overridden | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVersion:
    """A version of a task as workers published it last, at `seen_at`.

    `schema` is the JSON Schema of the arguments. `timeout` and `stuck_after` are in seconds, None for none
    and for the default. `sensitive` names arguments to redact, `events` the kinds of events it subscribes to.
    """

    version: int
    queue: str
    schema: Mapping[str, Any]
    aliases: Sequence[str]
    priority: int
    max_attempts: int
    timeout: float | None
    stuck_after: float | None
    at_most_once: bool
    system: bool
    module: str
    sensitive: Sequence[str]
    events: Sequence[str]
    seen_at: datetime


class PublishedTasks(PolicyControls):
    """The tasks known to a store. Each method has an async twin whose name starts with `a`."""

    kind = SubjectKind.TASK

    def get(self, name: str) -> PublishedTask:
        """Return a task by its name or an alias; an unknown name has neither rate nor gate."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> PublishedTask:
        """Return a task by its name or an alias; an unknown name has neither rate nor gate."""
        subject = self._subject(name)
        request = TasksRequest(scope=self._scope(subject), names=(name,))
        found = await self._client.store.registry.tasks(request)
        record = found[0] if found else None
        return _task_view(await self._read(name if record is None else record.record.name), record)

    def versions(self, name: str) -> Sequence[TaskVersion]:
        """Return each version of a task that workers have published, newest first; none if none has."""
        return self._client.portal.run(self.aversions(name))

    async def aversions(self, name: str) -> Sequence[TaskVersion]:
        """Return each version of a task that workers have published, newest first; none if none has."""
        scope = self._scope(self._subject(name))
        request = TasksRequest(scope=scope, names=(name,), every_version=True)
        found = await self._client.store.registry.tasks(request)
        lower_first = self._client.settings.is_lower_first
        versions = [_version(view, lower_first=lower_first) for view in found]
        return tuple(sorted(versions, key=lambda one: one.version, reverse=True))

    def enqueue(
        self, name: str, arguments: Mapping[str, Any], /, *, tenant: str, note: str, **options: Any
    ) -> Job[Any]:
        """Store one job by hand, for an operator: as `app.enqueue_by_name`, with a note, and audited."""
        return self._client.portal.run(self.aenqueue(name, arguments, tenant=tenant, note=note, **options))

    async def aenqueue(
        self, name: str, arguments: Mapping[str, Any], /, *, tenant: str, note: str, **options: Any
    ) -> Job[Any]:
        """Store one job by hand, for an operator; see `enqueue`."""
        why = reason_of(note)
        call = await call_by_name(self._client, name, arguments, tenant, options)
        jobs = self._client.new_jobs([call], is_batch=False)
        (job,) = await self._client.asend(jobs, operation("tasks.enqueue", note=why))
        return job

    def list(self) -> Sequence[PublishedTask]:
        """Return all tasks by name: those that workers have published, and those with a policy."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[PublishedTask]:
        """Return all tasks by name: those that workers have published, and those with a policy."""
        scope = self._scope(Subject(SubjectKind.TASK, "*"))
        store = self._client.store
        published = {view.record.name: view for view in await store.registry.tasks(TasksRequest(scope=scope))}
        views = await list_all(store, scope, SubjectKind.TASK, published)
        return tuple(_task_view(view, published.get(view.subject.name)) for view in views)

    def counts(self, *, most: int = MAX_LOOKED_AT) -> Mapping[str, Counts]:
        """Count the jobs of every known task by state, as `app.jobs.count(task=…)` does.

        There is no counter by task: for each one, jobs are read inside the store, at most `most`. A task that
        no worker has published, and that is not declared here, is not counted.
        """
        return self._client.portal.run(self.acounts(most=most))

    async def acounts(self, *, most: int = MAX_LOOKED_AT) -> Mapping[str, Counts]:
        """Count the jobs of every known task by state; see `counts`."""
        scope = self._scope(Subject(SubjectKind.TASK, "*"))
        bound = number_of("most", most, LAST_INSTANT)
        store = self._client.store
        published = await store.registry.tasks(TasksRequest(scope=scope))
        names = {view.record.name for view in published} | {task.name for task in self._client.registry}
        return {
            name: counts_from(await tally_all(store, TallyRequest(scope=scope, task=name), bound))
            for name in sorted(names)
        }

    def retries(
        self, *, since: datetime | timedelta, task: str | None = None, most: int = MAX_LOOKED_AT
    ) -> RetryReport:
        """Return how the jobs of each task got on: succeeded after a retry, mean attempts, commonest errors.

        Reads the finished jobs that were enqueued since a time, or since so long ago, the most recent ones
        first and at most `most`; the reply says whether that was all.
        """
        return self._client.portal.run(self.aretries(since=since, task=task, most=most))

    async def aretries(
        self, *, since: datetime | timedelta, task: str | None = None, most: int = MAX_LOOKED_AT
    ) -> RetryReport:
        """Return how the jobs of each task got on; see `retries`."""
        scope = self._scope(Subject(SubjectKind.TASK, "*"))
        bound = number_of("most", most, LAST_INSTANT)
        named = None if task is None else name_of("task", task)
        begin = await begin_of(self._client.store, since)
        return await report_retries(self._client, scope, begin, named, bound)

    def set(
        self,
        name: str,
        *,
        rate: Rate | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> PublishedTask:
        """Override a task's declared rate; None removes the rate.

        The override survives deploys, and ends with `reset` or at `until`.
        """
        return self._client.portal.run(self.aset(name, rate=rate, note=note, until=until, who=who))

    async def aset(
        self,
        name: str,
        *,
        rate: Rate | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> PublishedTask:
        """Override a task's declared rate; see `set`."""
        await self._set(name, PolicyChange(rate=rate_of(rate)), note, until, who)
        return await self.aget(name)

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> PublishedTask:
        """Remove the override, so that the declared values apply again."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> PublishedTask:
        """Remove the override, so that the declared values apply again."""
        await self._reset(name, note, who)
        return await self.aget(name)

    async def _has_any(self, name: str, states: frozenset[State]) -> bool:
        scope, cursor = self._scope(self._subject(name)), None
        while True:
            request = FindRequest(scope=scope, task=name, states=states, limit=1, cursor=cursor)
            page = await self._client.store.jobs.find(request)
            cursor = page.cursor
            if page.jobs or cursor is None:
                return bool(page.jobs)


def _task_view(view: PolicyView, published: TaskView | None) -> PublishedTask:
    rules = view.effective if isinstance(view.effective, TaskRules) else TaskRules()
    record = None if published is None else published.record
    timeout = None if record is None else record.timeout
    return PublishedTask(
        name=view.subject.name,
        queue=None if record is None else record.queue,
        version=None if record is None else record.version,
        aliases=() if record is None else record.aliases,
        timeout=None if timeout is None else timeout / SECOND,
        max_attempts=None if record is None else record.max_attempts,
        seen_at=None if published is None else to_optional_datetime(published.seen_at),
        rate=rules.rate,
        gate=rules.gate,
        breaker=rules.breaker,
        budget=rules.budget,
        paused=held_view(view.paused),
        closed=held_view(view.closed),
        declared=declared_values(view.declared),
        override=override_view(view.override),
    )


def _version(view: TaskView, *, lower_first: bool) -> TaskVersion:
    record = view.record
    return TaskVersion(
        version=record.version,
        queue=record.queue,
        schema=msgspec.json.decode(record.schema),
        aliases=record.aliases,
        priority=at_edge(record.priority, lower_first=lower_first),
        max_attempts=record.max_attempts,
        timeout=None if record.timeout is None else record.timeout / SECOND,
        stuck_after=None if record.stuck_after is None else record.stuck_after / SECOND,
        at_most_once=record.at_most_once,
        system=record.system,
        module=record.module,
        sensitive=record.sensitive,
        events=record.events,
        seen_at=to_datetime(view.seen_at),
    )
