"""`app.queues`: look at queues and what is in them, change what they allow, pause, close and drain them.

Queues belong to all tenants together, so from inside one tenant they can be neither seen nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import overload

from msgspec import UNSET, UnsetType

from fairlane.app.ambient import scope_of_all
from fairlane.app.asked import number_of
from fairlane.app.counting import count_by_queue
from fairlane.app.policy_values import count_of, limits_of, rate_of
from fairlane.app.stats import LOOK_MOST, QueueStats, stats_of
from fairlane.app.steering import Steering, list_all
from fairlane.app.views import QueueView, queue_of
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.layers import Change, Kind
from fairlane.model.lifecycle import State
from fairlane.model.limits import Limits, Rate
from fairlane.store.contract.policies import PolicyView


class Queues(Steering):
    """The queues of an application. Each method has an async twin with an `a` in front."""

    kind = Kind.QUEUE

    def get(self, name: str) -> QueueView:
        """Give a queue; one that nobody has named yet has no limits and no jobs."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> QueueView:
        """Give a queue; one that nobody has named yet has no limits and no jobs."""
        return await self._show(await self._read(name))

    def list(self) -> Sequence[QueueView]:
        """Give all queues by name: those that are declared here, and those that the store knows."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[QueueView]:
        """Give all queues by name: those that are declared here, and those that the store knows."""
        scope = scope_of_all("queues belong to all tenants")
        store = self._client.store
        views = await list_all(store, scope, Kind.QUEUE, self._client.settings.queues)
        counts = await count_by_queue(store, scope)
        nothing = dict.fromkeys(State, 0)
        return tuple(queue_of(view, counts.get(view.subject.name, nothing)) for view in views)

    @overload
    def stats(self, name: str, *, most: int = LOOK_MOST) -> QueueStats: ...
    @overload
    def stats(self, *, most: int = LOOK_MOST) -> Mapping[str, QueueStats]: ...
    def stats(
        self, name: str | None = None, *, most: int = LOOK_MOST
    ) -> QueueStats | Mapping[str, QueueStats]:
        """Say what is in a queue, or in all by name: jobs by state, how many retry, how old the oldest is.

        Numbers by state are exact. For the rest no more than `most` delayed and `most` ready jobs are looked
        at.
        """
        if name is None:
            return self._client.portal.run(self.astats(most=most))
        return self._client.portal.run(self.astats(name, most=most))

    @overload
    async def astats(self, name: str, *, most: int = LOOK_MOST) -> QueueStats: ...
    @overload
    async def astats(self, *, most: int = LOOK_MOST) -> Mapping[str, QueueStats]: ...
    async def astats(
        self, name: str | None = None, *, most: int = LOOK_MOST
    ) -> QueueStats | Mapping[str, QueueStats]:
        """Say what is in a queue, or in all of them by name; see `stats`."""
        bound = number_of("most", most, LAST_INSTANT)
        store = self._client.store
        if name is not None:
            subject = self._subject(name)
            found = await stats_of(store, self._scope(subject), name, (name,), bound)
            return found[name]
        scope = scope_of_all("queues belong to all tenants")
        views = await list_all(store, scope, Kind.QUEUE, self._client.settings.queues)
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
        """Set each tenant's limits, the queue's rate or its `max_waiting` above what is declared.

        None takes a rate or `max_waiting` away. It lies over what was set before, survives deploys, and ends
        by `reset` or at `until`. One end holds for all that is set of a queue: ValueError for another one.
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
        """Set each tenant's limits, the queue's rate or its `max_waiting`; see `set`."""
        change = Change(
            limits=UNSET if limits is None else limits_of(limits),
            rate=rate_of(rate),
            max_waiting=count_of("max_waiting", max_waiting),
        )
        await self._set(name, change, note, until, who)
        return await self.aget(name)

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> QueueView:
        """Take off what was set above the declared values."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> QueueView:
        """Take off what was set above the declared values."""
        await self._reset(name, note, who)
        return await self.aget(name)

    async def _has_any(self, name: str, states: frozenset[State]) -> bool:
        counts = (await self.aget(name)).counts
        return any(counts[state] for state in states)

    async def _show(self, view: PolicyView) -> QueueView:
        name = view.subject.name
        counts = await count_by_queue(self._client.store, self._scope(view.subject), name)
        return queue_of(view, counts.get(name, dict.fromkeys(State, 0)))
