"""`app.tenants`: declare tenants, look at them, change what they may, hold them, erase them.

Inside a tenant only that tenant can be named; it can be looked at, purged and forgotten, but what it may is
for others to change (S9).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from logging import getLogger
from typing import Final

from msgspec import UNSET

from fairlane.app.acting import actor, reason_of
from fairlane.app.ambient import scope_for
from fairlane.app.asked import labels_of, name_of, tenant_cursor, within_page
from fairlane.app.counting import count_by_queue, forget_all, purge_all
from fairlane.app.jobs import Page
from fairlane.app.policy_values import limits_of, queue_of, weight_of
from fairlane.app.steering import Steering, without_queue
from fairlane.app.views import Tenant, tenant_of
from fairlane.model.layers import EVERY, Change, Kind, QueueRules, Subject, TenantRules
from fairlane.model.lifecycle import State
from fairlane.model.limits import Limits
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import ListRequest, PolicyView, PutRequest, ReadRequest
from fairlane.store.contract.upkeep import ForgetRequest, PurgeRequest

_log: Final = getLogger("fairlane")
_EVERYONE: Final = Subject(Kind.TENANT, EVERY)


class Tenants(Steering):
    """The tenants of an application. Each method has an async twin with an `a` in front."""

    kind = Kind.TENANT

    def get(self, name: str) -> Tenant:
        """Give a tenant; one that nobody has named yet has what undeclared tenants get."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> Tenant:
        """Give a tenant; one that nobody has named yet has what undeclared tenants get."""
        return await self._show(await self._read(name))

    def list(
        self, *, labels: Mapping[str, str] | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Tenant]:
        """Give a page of the tenants that are known, by name, or of those with these labels."""
        return self._client.portal.run(self.alist(labels=labels, limit=limit, cursor=cursor))

    async def alist(
        self, *, labels: Mapping[str, str] | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Tenant]:
        """Give a page of the tenants that are known, by name, or of those with these labels."""
        request = ListRequest(
            scope=scope_for(None),
            kind=Kind.TENANT,
            labels=labels_of(labels),
            limit=within_page("limit", limit),
            after=tenant_cursor(cursor),
        )
        views = await self._client.store.policies.list(request)
        shown = tuple([await self._show(view) for view in views])
        return Page(shown, shown[-1].name if len(shown) == limit else None)

    def declare(self, name: str, *, weight: float = 1.0, labels: Mapping[str, str] | None = None) -> Tenant:
        """Make a tenant known, with a weight and labels; limits that a file declares for it stay."""
        return self._client.portal.run(self.adeclare(name, weight=weight, labels=labels))

    async def adeclare(
        self, name: str, *, weight: float = 1.0, labels: Mapping[str, str] | None = None
    ) -> Tenant:
        """Make a tenant known, with a weight and labels; limits that a file declares for it stay."""
        scope = self._scope_to_change(self._subject(name))
        given = labels_of(labels)
        view = await self._read(name)
        before = view.declared if isinstance(view.declared, TenantRules) else TenantRules()
        rules = {view.subject: TenantRules(weight_of(weight), given, before.limits)}
        await self._client.store.policies.put(PutRequest(scope=scope, rules=rules))
        return await self.aget(name)

    def set(
        self,
        name: str,
        *,
        queue: str | None = None,
        weight: float | None = None,
        limits: Limits | None = None,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> Tenant:
        """Set a weight, or limits in one queue (without `queue`: in every queue), above what is declared.

        It lies over what was set before, survives deploys, and ends by `reset` or at `until`. One end holds
        for all that is set of a tenant: ValueError for another one than before.
        """
        return self._client.portal.run(
            self.aset(name, queue=queue, weight=weight, limits=limits, note=note, until=until, who=who)
        )

    async def aset(
        self,
        name: str,
        *,
        queue: str | None = None,
        weight: float | None = None,
        limits: Limits | None = None,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> Tenant:
        """Set a weight, or limits in a queue, above what is declared; see `set`."""
        if queue is not None and limits is None:
            message = "queue is given without limits; a weight holds in all queues"
            raise ValueError(message)
        change = Change(
            weight=UNSET if weight is None else weight_of(weight),
            queue_limits=UNSET if limits is None else {queue_of(queue or EVERY): limits_of(limits)},
        )
        await self._set(name, change, note, until, who)
        return await self.aget(name)

    def reset(self, name: str, *, queue: str | None = None, note: str = "", who: str | None = None) -> Tenant:
        """Take off what was set above the declared values: all of it, or the limits in one queue."""
        return self._client.portal.run(self.areset(name, queue=queue, note=note, who=who))

    async def areset(
        self, name: str, *, queue: str | None = None, note: str = "", who: str | None = None
    ) -> Tenant:
        """Take off what was set above the declared values: all of it, or the limits in one queue."""
        self._scope_to_change(self._subject(name))
        view = await self._read(name)
        left = None if queue is None else without_queue(view, queue_of(queue))
        if left is not None and view.override is not None:
            await self._override(view.subject, left, note, view.override.until, who)
        else:
            await self._reset(name, note, who)
        return await self.aget(name)

    def purge(self, name: str, *, queue: str | None = None, reason: str, who: str | None = None) -> int:
        """Cancel all waiting jobs of a tenant, in one queue or in all; the answer says how many (S46)."""
        return self._client.portal.run(self.apurge(name, queue=queue, reason=reason, who=who))

    async def apurge(
        self, name: str, *, queue: str | None = None, reason: str, who: str | None = None
    ) -> int:
        """Cancel all waiting jobs of a tenant, in one queue or in all; the answer says how many (S46)."""
        where = None if queue is None else name_of("queue", queue)
        scope = self._scope(self._subject(name))
        request = PurgeRequest(scope=scope, reason=reason_of(reason), who=actor(who), queue=where)
        return await purge_all(self._client.store, request)

    def forget(self, name: str, *, reason: str, who: str | None = None) -> int:
        """Erase payloads, results, errors and keys of a tenant; the answer says of how many jobs (S52).

        What waits is cancelled. What runs is asked to stop and is not erased yet: a warning says so, and a
        later `forget` erases it.
        """
        return self._client.portal.run(self.aforget(name, reason=reason, who=who))

    async def aforget(self, name: str, *, reason: str, who: str | None = None) -> int:
        """Erase payloads, results, errors and keys of a tenant; see `forget`."""
        scope = self._scope(self._subject(name))
        request = ForgetRequest(scope=scope, reason=reason_of(reason), who=actor(who))
        reply = await forget_all(self._client.store, request)
        if reply.running:
            _log.warning(
                "tenant %s: %d job(s) still run and are not erased; forget it again when they have ended",
                *(name, reply.running),
                extra={"event": "forget_incomplete", "tenant": name, "running": reply.running},
            )
        return reply.erased

    async def _has_any(self, name: str, states: frozenset[State]) -> bool:
        counts = await count_by_queue(self._client.store, self._scope(self._subject(name)))
        return any(queue[state] for queue in counts.values() for state in states)

    async def _show(self, view: PolicyView) -> Tenant:
        store = self._client.store
        counts = await count_by_queue(store, Scope(view.subject.name))
        own = view.effective if isinstance(view.effective, TenantRules) else TenantRules()
        names = {*self._client.settings.queues, *counts, *own.limits} - {EVERY}
        subjects = [Subject(Kind.QUEUE, name) for name in sorted(names)]
        # What queues and undeclared tenants may is nobody's secret, and part of what this tenant may.
        request = ReadRequest(scope=Scope.all(), subjects=(_EVERYONE, *subjects))
        rules = {one: found.effective for one, found in (await store.policies.read(request)).items()}
        everyone = rules[_EVERYONE]
        shared = everyone if isinstance(everyone, TenantRules) else TenantRules()
        queues = {one.name: found for one, found in rules.items() if isinstance(found, QueueRules)}
        return tenant_of(view, shared, queues, counts)
