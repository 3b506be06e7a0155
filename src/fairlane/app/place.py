"""Whose job a call makes, and in which queue (S7-S11). Notes problems on a sheet; asks no store."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec import UNSET

from fairlane.app.ambient import Ambient
from fairlane.app.call import Call
from fairlane.app.checks import Sheet, kind_of
from fairlane.app.declaration import Registry
from fairlane.app.job import Job
from fairlane.app.settings import Settings
from fairlane.model.names import check_name, name_hint, tenant_hint
from fairlane.model.policy import Tenancy
from fairlane.model.scope import SYSTEM


def tenant_of(sheet: Sheet, call: Call[Any], tenancy: Tenancy, ambient: Ambient | None) -> str:
    """Choose the tenant: the named one, else the ambient one, else `system` where tenancy is open (S10).

    A task declared `system` runs in `system` and nowhere else (S8).
    """
    named: object = call.options.tenant
    if named is not UNSET:
        hint = tenant_hint(named)
        if hint is not None:
            sheet.take(check_name(sheet.index, "tenant", named, hint))
        if call.task.system and named != SYSTEM:
            message = f"is given, but task {call.task.name} is declared system=True"
            sheet.add("tenant", message, f"leave it out: the task runs in {SYSTEM}", "system_task")
        return str(named)
    if call.task.system:
        return SYSTEM
    if ambient is not None:
        return ambient.tenant
    if tenancy != "open":
        hint = 'name one with using(tenant=...) or `with app.tenant("...")`'
        sheet.add("tenant", f"is missing, and tenancy is {tenancy}", hint, "tenant_required")
    sheet.tenantless.add(call.task.name)
    return SYSTEM


def queue_of(sheet: Sheet, call: Call[Any], settings: Settings, registry: Registry) -> str:
    """Choose the queue: the named one where that is allowed, else the task's home (S11)."""
    home, named = call.task.queue, call.options.queue
    queue = home if named is UNSET else named
    problems = check_name(sheet.index, "queue", queue, name_hint(queue))
    if problems:
        sheet.take(problems)
        return home
    if settings.fixed_queues and queue != home:
        message = f"is {queue}, but task {call.task.name} stays in its home queue {home}"
        sheet.add("queue", message, "leave it out, or set fixed_queues to false", "fixed_queue")
    is_published = call.task.is_elsewhere and queue == home
    if not is_published and not _is_declared(queue, home, settings, registry):
        known = ", ".join(sorted(settings.queues))
        sheet.add("queue", f"{queue} is not declared", f"declare it, or use one of: {known}", "unknown_queue")
    return queue


def _is_declared(queue: str, home: str, settings: Settings, registry: Registry) -> bool:
    if queue in settings.queues:
        return True
    return settings.has_open_queues and (queue == home or registry.has_queue(queue))


def parent_of(sheet: Sheet, parent: object, tenant: str, running: Job[Any] | None) -> UUID | None:
    """Give the id of the parent: the one named, else the running job if it is of the same tenant (S22)."""
    if parent is UNSET:
        return running.id if running is not None and running.tenant == tenant else None
    if isinstance(parent, UUID):
        return parent
    if not isinstance(parent, Job):
        sheet.add("parent", f"is of type {kind_of(parent)}", "give a job or its UUID", "type")
        return None
    if parent.tenant != tenant:
        hint = "link jobs within one tenant"
        sheet.add("parent", f"is a job of another tenant than {tenant}", hint, "parent")
    return parent.id
