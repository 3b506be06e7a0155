"""`app.tasks`: the tasks that workers have published, their rate and gate; pause, close and drain them.

All tenants share the tasks, so from inside a tenant they can be neither read nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from fairlane.app.admin.controls import PolicyControls, list_all
from fairlane.app.admin.validation import rate_of
from fairlane.app.admin.views import (
    Held,
    Overridden,
    declared_values,
    held_view,
    override_view,
    to_optional_datetime,
)
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind, TaskRules
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.policies import PolicyView
from fairlane.store.contract.registry import TasksRequest, TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTask:
    """A task at one instant: as workers have published it, with its effective rate and gate.

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
    paused: Held | None
    closed: Held | None
    declared: Mapping[str, Any] | None
    override: Overridden | None


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
        paused=held_view(view.paused),
        closed=held_view(view.closed),
        declared=declared_values(view.declared),
        override=override_view(view.override),
    )
