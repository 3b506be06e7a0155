"""`app.tasks`: the tasks that workers have published, and what holds for them: rate, gate, pause, close.

Tasks belong to all tenants together, so from inside one tenant they cannot be named (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from fairlane.app.policy_values import rate_of
from fairlane.app.steering import Steering, list_all
from fairlane.app.views import Held, Overridden, declared_of, held_of, moment_of, override_of
from fairlane.model.instants import SECOND
from fairlane.model.layers import Change, Kind, Subject, TaskRules
from fairlane.model.lifecycle import State
from fairlane.model.limits import Rate
from fairlane.store.contract.jobs import FindRequest
from fairlane.store.contract.policies import PolicyView
from fairlane.store.contract.registry import TasksRequest, TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTask:
    """A task at one instant, as workers have published it, with the rate and the gate that hold.

    `queue` and what follows up to `seen_at`, when a live worker last said that it knows the task, are None or
    empty if no worker ever has. `timeout` is in seconds. `override` is what somebody has set above what is
    declared.
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


class PublishedTasks(Steering):
    """The tasks that a store knows. Each method has an async twin with an `a` in front."""

    kind = Kind.TASK

    def get(self, name: str) -> PublishedTask:
        """Return a task by its name or an alias; one that nobody has named yet has neither rate nor gate."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> PublishedTask:
        """Return a task by its name or an alias; one that nobody has named yet has neither rate nor gate."""
        subject = self._subject(name)
        request = TasksRequest(scope=self._scope(subject), names=(name,))
        cards = await self._client.store.registry.tasks(request)
        card = cards[0] if cards else None
        return _task_of(await self._read(name if card is None else card.card.name), card)

    def list(self) -> Sequence[PublishedTask]:
        """Return all tasks by name: those that workers have published, and those that anything is set for."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[PublishedTask]:
        """Return all tasks by name: those that workers have published, and those that anything is set for."""
        scope = self._scope(Subject(Kind.TASK, "*"))
        store = self._client.store
        cards = {view.card.name: view for view in await store.registry.tasks(TasksRequest(scope=scope))}
        views = await list_all(store, scope, Kind.TASK, cards)
        return tuple(_task_of(view, cards.get(view.subject.name)) for view in views)

    def set(
        self,
        name: str,
        *,
        rate: Rate | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> PublishedTask:
        """Set a task's rate above what is declared; None takes it away.

        It survives deploys, and ends by `reset` or at `until`.
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
        """Set a task's rate above what is declared; see `set`."""
        await self._set(name, Change(rate=rate_of(rate)), note, until, who)
        return await self.aget(name)

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> PublishedTask:
        """Take off what was set above the declared values."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> PublishedTask:
        """Take off what was set above the declared values."""
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


def _task_of(view: PolicyView, published: TaskView | None) -> PublishedTask:
    rules = view.effective if isinstance(view.effective, TaskRules) else TaskRules()
    card = None if published is None else published.card
    timeout = None if card is None else card.timeout
    return PublishedTask(
        name=view.subject.name,
        queue=None if card is None else card.queue,
        version=None if card is None else card.version,
        aliases=() if card is None else card.aliases,
        timeout=None if timeout is None else timeout / SECOND,
        max_attempts=None if card is None else card.max_attempts,
        seen_at=None if published is None else moment_of(published.seen_at),
        rate=rules.rate,
        gate=rules.gate,
        paused=held_of(view.paused),
        closed=held_of(view.closed),
        declared=declared_of(view.declared),
        override=override_of(view.override),
    )
