"""`app.tenants`: declare tenants, inspect them, set their weight and limits, pause, close, purge, forget.

From inside a tenant only that tenant can be named: it can be read, purged and forgotten, but its policy
cannot be changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from logging import getLogger
from typing import Final

from msgspec import UNSET

from fairlane.app.admin.bulk_entries import BulkAction, audited
from fairlane.app.admin.controls import PolicyControls, without_queue
from fairlane.app.admin.jobs import Page
from fairlane.app.admin.operations import operation
from fairlane.app.admin.paging import count_by_queue, forget_all, forget_schedules, purge_all
from fairlane.app.admin.shares.page import ShareQuery, share_of, shares_page
from fairlane.app.admin.shares.views import FILTERS, ORDERS, ShareFilter, ShareOrder, TenantShares
from fairlane.app.admin.validation import (
    actor,
    labels_of,
    limits_of,
    name_of,
    one_of,
    queue_or_every,
    reason_of,
    tenant_cursor,
    text_of,
    text_or_none,
    weight_of,
    within_page,
)
from fairlane.app.admin.views import Tenant, tenant_view
from fairlane.app.ambient import scope_for, scope_of_all
from fairlane.model.lifecycle.states import WAITING, State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import EVERY, PolicyChange, QueueRules, Subject, SubjectKind, TenantRules
from fairlane.model.scope import Scope
from fairlane.store.audit_entries import policy_entries
from fairlane.store.contract.journal import AppendRequest
from fairlane.store.contract.policies import ListRequest, PolicyView, PutRequest, ReadRequest
from fairlane.store.contract.upkeep import ForgetRequest, PurgeRequest

_log: Final = getLogger("fairlane")
_EVERYONE: Final = Subject(SubjectKind.TENANT, EVERY)


class Tenants(PolicyControls):
    """The tenants of an application. Each method has an async twin whose name starts with `a`."""

    kind = SubjectKind.TENANT

    def get(self, name: str) -> Tenant:
        """Return a tenant; an unknown name has the values of undeclared tenants."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> Tenant:
        """Return a tenant; an unknown name has the values of undeclared tenants."""
        return await self._show(await self._read(name))

    def list(
        self, *, labels: Mapping[str, str] | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Tenant]:
        """Return one page of the known tenants by name, or of those that have all these labels."""
        return self._client.portal.run(self.alist(labels=labels, limit=limit, cursor=cursor))

    async def alist(
        self, *, labels: Mapping[str, str] | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Tenant]:
        """Return one page of the known tenants by name, or of those that have all these labels."""
        request = ListRequest(
            scope=scope_for(None),
            kind=SubjectKind.TENANT,
            labels=labels_of(labels),
            limit=within_page("limit", limit),
            after=tenant_cursor(cursor),
        )
        views = await self._client.store.policies.list(request)
        shown = tuple([await self._show(view) for view in views])
        return Page(shown, shown[-1].name if len(shown) == limit else None)

    def shares(
        self,
        *,
        order: ShareOrder = "impact",
        only: ShareFilter = "all",
        name: str = "",
        labels: Mapping[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> TenantShares:
        """Return one page of tenants with what they hold and wait for, and who slows whom (S93, S94).

        `order` and `only` say which come first and which at all, `name` is a part of the name. Reads counters
        of all tenants, so ask for it as people look, not for each job. From inside a tenant it is refused.
        """
        return self._client.portal.run(
            self.ashares(order=order, only=only, name=name, labels=labels, limit=limit, cursor=cursor)
        )

    async def ashares(
        self,
        *,
        order: ShareOrder = "impact",
        only: ShareFilter = "all",
        name: str = "",
        labels: Mapping[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> TenantShares:
        """Return one page of tenants with what they hold and wait for, and who slows whom; see `shares`."""
        query = ShareQuery(
            order=one_of("order", order, ORDERS),
            only=one_of("only", only, FILTERS),
            name=text_of("name", name),
            labels=labels_of(labels),
            limit=within_page("limit", limit),
            cursor=text_or_none("cursor", cursor),
        )
        scope_of_all("shares are of all tenants")
        return await shares_page(self._client.store, query)

    def share(self, name: str) -> TenantShares:
        """Return one tenant as in `shares`, and the queues in which it has unfinished jobs."""
        return self._client.portal.run(self.ashare(name))

    async def ashare(self, name: str) -> TenantShares:
        """Return one tenant as in `shares`, and the queues in which it has unfinished jobs."""
        subject, store = self._subject(name), self._client.store
        scope_of_all("shares are of all tenants")
        return await share_of(store, subject.name)

    def declare(
        self, name: str, *, weight: float = 1.0, labels: Mapping[str, str] | None = None, note: str = ""
    ) -> Tenant:
        """Declare a tenant with a weight and labels; limits that a file declares for it are kept."""
        return self._client.portal.run(self.adeclare(name, weight=weight, labels=labels, note=note))

    async def adeclare(
        self, name: str, *, weight: float = 1.0, labels: Mapping[str, str] | None = None, note: str = ""
    ) -> Tenant:
        """Declare a tenant with a weight and labels; limits that a file declares for it are kept."""
        scope = self._scope_to_change(self._subject(name))
        given, why = labels_of(labels), text_of("note", note)
        view = await self._read(name)
        before = view.declared if isinstance(view.declared, TenantRules) else TenantRules()
        rules = {view.subject: TenantRules(weight_of(weight), given, before.limits)}
        store, done = self._client.store, operation("tenants.declare", note=why)
        entries = [
            entry
            for one in await store.policies.put(PutRequest(scope=scope, rules=rules))
            for entry in policy_entries(done, one.subject, "declared", one.before, one.after)
        ]
        if entries:  # declaring has no operator's request of its own: workers do it at each start
            await store.journal.append(AppendRequest(scope=scope, journal="audit", entries=tuple(entries)))
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
        """Override a tenant's declared weight, or its limits in one queue (without `queue`: in every queue).

        The override is merged with what was set before, survives deploys, and ends with `reset` or at
        `until`. All values set for a tenant have the same end: ValueError if `until` differs.
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
        """Override a tenant's declared weight or limits; see `set`."""
        if queue is not None and limits is None:
            message = "queue is given without limits; a weight holds in all queues"
            raise ValueError(message)
        change = PolicyChange(
            weight=UNSET if weight is None else weight_of(weight),
            queue_limits=UNSET if limits is None else {queue_or_every(queue or EVERY): limits_of(limits)},
        )
        await self._set(name, change, note, until, who)
        return await self.aget(name)

    def reset(self, name: str, *, queue: str | None = None, note: str = "", who: str | None = None) -> Tenant:
        """Remove the override, or only its limits in one queue; the declared values apply again."""
        return self._client.portal.run(self.areset(name, queue=queue, note=note, who=who))

    async def areset(
        self, name: str, *, queue: str | None = None, note: str = "", who: str | None = None
    ) -> Tenant:
        """Remove the override, or only its limits in one queue; the declared values apply again."""
        self._scope_to_change(self._subject(name))
        view = await self._read(name)
        left = None if queue is None else without_queue(view, queue_or_every(queue))
        if left is not None and view.override is not None:
            await self._override(view.subject, left, note, view.override.until, who)
        else:
            await self._reset(name, note, who)
        return await self.aget(name)

    def purge(self, name: str, *, queue: str | None = None, reason: str, who: str | None = None) -> int:
        """Cancel all waiting jobs of a tenant, in one queue or in all; return how many (S46)."""
        return self._client.portal.run(self.apurge(name, queue=queue, reason=reason, who=who))

    async def apurge(
        self, name: str, *, queue: str | None = None, reason: str, who: str | None = None
    ) -> int:
        """Cancel all waiting jobs of a tenant, in one queue or in all; return how many (S46)."""
        where = None if queue is None else name_of("queue", queue)
        scope, why, store = self._scope(self._subject(name)), reason_of(reason), self._client.store
        request = PurgeRequest(scope=scope, reason=why, who=actor(who), queue=where)
        counts = await count_by_queue(store, scope, where)
        waiting = sum(queue[state] for queue in counts.values() for state in WAITING)
        bulk = BulkAction(action="tenants.purge", subject=f"tenant {name}", scope=scope, who=who, note=why)
        async with audited(store, bulk, filter={"queue": where}, matches=waiting) as end:
            cancelled = await purge_all(store, request)
            end.result = {"cancelled": cancelled}
        return cancelled

    def forget(self, name: str, *, reason: str, who: str | None = None) -> int:
        """Erase payloads, results, errors and keys of a tenant's jobs; return of how many (S52).

        Its names in budgets go, too: what it has spent stays counted, as that of others, and an account of
        its own is removed. Its schedules are removed; a worker that declares one makes it again. Waiting
        jobs are cancelled. Running jobs are asked to stop, and are not erased yet: a warning is logged, and
        `forget` must be called again when they have ended. Danger: this cannot be undone.
        """
        return self._client.portal.run(self.aforget(name, reason=reason, who=who))

    async def aforget(self, name: str, *, reason: str, who: str | None = None) -> int:
        """Erase what is of a tenant, in its jobs and in budgets; see `forget`."""
        scope, why, store = self._scope(self._subject(name)), reason_of(reason), self._client.store
        request = ForgetRequest(scope=scope, reason=why, who=actor(who))
        counts = await count_by_queue(store, scope)
        jobs = sum(number for queue in counts.values() for number in queue.values())
        bulk = BulkAction(action="tenants.forget", subject=f"tenant {name}", scope=scope, who=who, note=why)
        async with audited(store, bulk, matches=jobs) as end:
            schedules = await forget_schedules(store, name)  # first: they would make more jobs
            reply = await forget_all(store, request)
            end.result = {"erased": reply.erased, "running": reply.running}
            end.result |= {"schedules": schedules} if schedules else {}
        if reply.running:
            _log.warning(
                "tenant %s: %d running job(s) are not erased yet; call forget again when they have ended",
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
        subjects = [Subject(SubjectKind.QUEUE, name) for name in sorted(names)]
        # All tenants may read these: the policies of queues and of "*" are part of this tenant's limits.
        request = ReadRequest(scope=Scope.all(), subjects=(_EVERYONE, *subjects))
        rules = {one: found.effective for one, found in (await store.policies.read(request)).items()}
        everyone = rules[_EVERYONE]
        shared = everyone if isinstance(everyone, TenantRules) else TenantRules()
        queues = {one.name: found for one, found in rules.items() if isinstance(found, QueueRules)}
        return tenant_view(view, shared, queues, counts)
