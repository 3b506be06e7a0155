"""`app.queues`: inspect queues, set their limits and rates, pause, close and drain them.

All tenants share the queues, so from inside a tenant they can be neither read nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import overload

from msgspec import UNSET, UnsetType

from fairlane.app.admin.controls import PolicyControls, list_all
from fairlane.app.admin.paging import count_by_queue
from fairlane.app.admin.queue_stats import MAX_LOOKED_AT, QueueStats, stats_of
from fairlane.app.admin.rates import RateView, rates_of_queue
from fairlane.app.admin.validation import count_of, limits_of, number_of, rate_of, reason_of
from fairlane.app.admin.views import QueueView, queue_view
from fairlane.app.ambient import scope_of_all
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.errors import QueueNotEmpty
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.store.contract.policies import PolicyView


class Queues(PolicyControls):
    """The queues of an application. Each method has an async twin whose name starts with `a`."""

    kind = SubjectKind.QUEUE

    def get(self, name: str) -> QueueView:
        """Return a queue; an unknown name has no limits and no jobs."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> QueueView:
        """Return a queue; an unknown name has no limits and no jobs."""
        return await self._show(await self._read(name))

    def list(self) -> Sequence[QueueView]:
        """Return all queues by name: those declared here and those known to the store."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[QueueView]:
        """Return all queues by name: those declared here and those known to the store."""
        scope = scope_of_all("queues belong to all tenants")
        store = self._client.store
        views = await list_all(store, scope, SubjectKind.QUEUE, self._client.settings.queues)
        counts = await count_by_queue(store, scope)
        nothing = dict.fromkeys(State, 0)
        return tuple(queue_view(view, counts.get(view.subject.name, nothing)) for view in views)

    @overload
    def stats(self, name: str, *, most: int = MAX_LOOKED_AT) -> QueueStats: ...
    @overload
    def stats(self, *, most: int = MAX_LOOKED_AT) -> Mapping[str, QueueStats]: ...
    def stats(
        self, name: str | None = None, *, most: int = MAX_LOOKED_AT
    ) -> QueueStats | Mapping[str, QueueStats]:
        """Return the statistics of one queue, or of all queues by name.

        Numbers by state are exact. For retries and the oldest job, at most `most` delayed and `most` ready
        jobs are scanned.
        """
        if name is None:
            return self._client.portal.run(self.astats(most=most))
        return self._client.portal.run(self.astats(name, most=most))

    @overload
    async def astats(self, name: str, *, most: int = MAX_LOOKED_AT) -> QueueStats: ...
    @overload
    async def astats(self, *, most: int = MAX_LOOKED_AT) -> Mapping[str, QueueStats]: ...
    async def astats(
        self, name: str | None = None, *, most: int = MAX_LOOKED_AT
    ) -> QueueStats | Mapping[str, QueueStats]:
        """Return the statistics of one queue, or of all queues by name; see `stats`."""
        bound = number_of("most", most, LAST_INSTANT)
        store = self._client.store
        if name is not None:
            subject = self._subject(name)
            found = await stats_of(store, self._scope(subject), name, (name,), bound)
            return found[name]
        scope = scope_of_all("queues belong to all tenants")
        views = await list_all(store, scope, SubjectKind.QUEUE, self._client.settings.queues)
        return await stats_of(store, scope, None, [view.subject.name for view in views], bound)

    def set(
        self,
        name: str,
        *,
        limits: Limits | None = None,
        rate: Rate | UnsetType | None = UNSET,
        max_waiting: int | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> QueueView:
        """Override the declared limits of each tenant, the queue's rate or its `max_waiting`.

        None removes a rate or `max_waiting`. The override is merged with what was set before, survives
        deploys, and ends with `reset` or at `until`. All values set for a queue have the same end: ValueError
        if `until` differs.
        """
        return self._client.portal.run(
            self.aset(
                name, limits=limits, rate=rate, max_waiting=max_waiting, note=note, until=until, who=who
            )
        )

    async def aset(
        self,
        name: str,
        *,
        limits: Limits | None = None,
        rate: Rate | UnsetType | None = UNSET,
        max_waiting: int | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> QueueView:
        """Override the declared limits of each tenant, the queue's rate or its `max_waiting`; see `set`."""
        change = PolicyChange(
            limits=UNSET if limits is None else limits_of(limits),
            rate=rate_of(rate),
            max_waiting=count_of("max_waiting", max_waiting),
        )
        await self._set(name, change, note, until, who)
        return await self.aget(name)

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> QueueView:
        """Remove the override, so that the declared values apply again."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> QueueView:
        """Remove the override, so that the declared values apply again."""
        await self._reset(name, note, who)
        return await self.aget(name)

    def remove(self, name: str, *, note: str, who: str | None = None) -> None:
        """Remove a queue in which no job waits or runs: its declared values, override, pause and close.

        `QueueNotEmpty` if there are such jobs. Finished jobs stay for as long as they are kept. A worker that
        declares the queue declares it again when it starts.
        """
        self._client.portal.run(self.aremove(name, note=note, who=who))

    async def aremove(self, name: str, *, note: str, who: str | None = None) -> None:
        """Remove a queue in which no job waits or runs; see `remove`."""
        request = self._about("remove", name, reason_of(note), who)
        unfinished = await self._client.store.policies.remove(request)
        if unfinished:
            raise QueueNotEmpty(name, unfinished)

    def rates(self, name: str) -> Sequence[RateView]:
        """Return how far the rate of a queue is used, and the rates of tenants that have jobs in it."""
        return self._client.portal.run(self.arates(name))

    async def arates(self, name: str) -> Sequence[RateView]:
        """Return how far the rate of a queue is used, and the rates of tenants that have jobs in it."""
        return await rates_of_queue(self._client.store, self._scope(self._subject(name)), name)

    async def _has_any(self, name: str, states: frozenset[State]) -> bool:
        counts = (await self.aget(name)).counts
        return any(counts[state] for state in states)

    async def _show(self, view: PolicyView) -> QueueView:
        name = view.subject.name
        counts = await count_by_queue(self._client.store, self._scope(view.subject), name)
        return queue_view(view, counts.get(name, dict.fromkeys(State, 0)))
