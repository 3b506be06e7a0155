"""`app.queues`: look at queues, change what they allow, pause, close and drain them.

Queues belong to all tenants together, so from inside one tenant they can be neither seen nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from fairlane.app.ambient import scope_of_all
from fairlane.app.counting import count_by_queue
from fairlane.app.policy_values import limits_of, max_waiting_of, rate_of
from fairlane.app.steering import Steering
from fairlane.app.views import QueueView, queue_of
from fairlane.model.instants import SECOND, Duration, Micros, to_micros
from fairlane.model.layers import Change, Kind, Subject
from fairlane.model.lifecycle import State
from fairlane.model.limits import Limits, Rate
from fairlane.store.contract.policies import ListRequest, PolicyView, ReadRequest
from fairlane.store.contract.request import PAGE_MOST

DrainBy: TypeAlias = Literal["pause", "close"]

_LOOK_EVERY: Final[Micros] = SECOND // 4


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
        declared = [Subject(Kind.QUEUE, name) for name in self._client.settings.queues]
        store = self._client.store
        views = dict(await store.policies.read(ReadRequest(scope=scope, subjects=tuple(declared))))
        after = ""
        while True:
            request = ListRequest(scope=scope, kind=Kind.QUEUE, limit=PAGE_MOST, after=after)
            page = await store.policies.list(request)
            views.update({view.subject: view for view in page})
            if len(page) < PAGE_MOST:
                break
            after = page[-1].subject.name
        counts = await count_by_queue(store, scope)
        nothing = dict.fromkeys(State, 0)
        return tuple(queue_of(views[one], counts.get(one.name, nothing)) for one in sorted(views))

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
            max_waiting=max_waiting_of(max_waiting),
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

    def drain(
        self,
        name: str,
        *,
        reason: str,
        by: DrainBy = "pause",
        timeout: Duration | None = None,
        who: str | None = None,
    ) -> bool:
        """Pause a queue and wait until nothing of it runs; or close it and wait until nothing is left to do.

        False if that takes longer than `timeout`. The pause or close stays, either way. With `by="close"`,
        jobs that are delayed for later do not count as left.
        """
        return self._client.portal.run(self.adrain(name, reason=reason, by=by, timeout=timeout, who=who))

    async def adrain(
        self,
        name: str,
        *,
        reason: str,
        by: DrainBy = "pause",
        timeout: Duration | None = None,  # noqa: ASYNC109 (the public word)
        who: str | None = None,
    ) -> bool:
        """Pause a queue and wait until nothing of it runs, or close it and empty it; see `drain`."""
        at_most = None if timeout is None else to_micros(timeout)
        hold = {"pause": self.apause, "close": self.aclose}.get(by)
        if hold is None:
            message = f"by is {by!r}; use pause or close"
            raise ValueError(message)
        await hold(name, reason=reason, who=who)
        busy = (State.RUNNING,) if by == "pause" else (State.READY, State.RUNNING)
        clock, started_at = self._client.clock, self._client.clock.elapsed()
        while True:
            counts = (await self.aget(name)).counts
            if not any(counts[state] for state in busy):
                return True
            left = _LOOK_EVERY if at_most is None else at_most - (clock.elapsed() - started_at)
            if left <= 0:
                return False
            await clock.wait(min(left, _LOOK_EVERY))

    async def _show(self, view: PolicyView) -> QueueView:
        name = view.subject.name
        counts = await count_by_queue(self._client.store, self._scope(view.subject), name)
        return queue_of(view, counts.get(name, dict.fromkeys(State, 0)))
