"""Choose the fields of a new job from its call, the settings and the running job.

Each function checks one option, adds its problems to a list and goes on. Asks no store and reads no clock.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from fairlane.app.ambient import Ambient
from fairlane.app.enqueue import checks
from fairlane.app.enqueue.call import Call, Options
from fairlane.app.enqueue.checks import LONGEST_WAIT, ProblemList, kind_of
from fairlane.app.job import Job
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration, TaskRegistry
from fairlane.model.instants import DAY, SECOND, Instant, Micros, to_micros
from fairlane.model.job import OnDuplicate
from fairlane.model.names import check_name, name_hint, tenant_hint
from fairlane.model.policy.declared import Queue, Tenancy
from fairlane.model.scheduling.priority import at_edge
from fairlane.model.scope import SYSTEM

# ── whose job it is, and where (S7-S11) ──────────────────────────────────────


def tenant_of(problems: ProblemList, call: Call[Any], tenancy: Tenancy, ambient: Ambient | None) -> str:
    """Return the tenant: as given, else the ambient one, else `system` if tenancy is open (S10).

    A task declared `system` always belongs to `system` (S8).
    """
    given: object = call.options.tenant
    if given is not UNSET:
        hint = tenant_hint(given)
        if hint is not None:
            problems.take(check_name(problems.index, "tenant", given, hint))
        if call.task.system and given != SYSTEM:
            message = f"is given, but task {call.task.name} is declared system=True"
            problems.add("tenant", message, f"leave it out: the task runs in {SYSTEM}", "system_task")
        return str(given)
    if call.task.system:
        return SYSTEM
    if ambient is not None:
        return ambient.tenant
    if tenancy != "open":
        hint = 'name one with using(tenant=...) or `with app.tenant("...")`'
        problems.add("tenant", f"is missing, and tenancy is {tenancy}", hint, "tenant_required")
    problems.without_tenant.add(call.task.name)
    return SYSTEM


def queue_of(problems: ProblemList, call: Call[Any], settings: Settings, registry: TaskRegistry) -> str:
    """Return the queue: as given where that is allowed, else the task's home queue (S11)."""
    home, given = call.task.queue, call.options.queue
    queue = home if given is UNSET else given
    bad_name = check_name(problems.index, "queue", queue, name_hint(queue))
    if bad_name:
        problems.take(bad_name)
        return home
    if settings.fixed_queues and queue != home:
        message = f"is {queue}, but task {call.task.name} stays in its home queue {home}"
        problems.add("queue", message, "leave it out, or set fixed_queues to false", "fixed_queue")
    is_published = call.task.is_published_only and queue == home
    if not is_published and not _is_declared(queue, home, settings, registry):
        hint = f"declare it, or use one of: {', '.join(sorted(settings.queues))}"
        problems.add("queue", f"{queue} is not declared", hint, "unknown_queue")
    return queue


def _is_declared(queue: str, home: str, settings: Settings, registry: TaskRegistry) -> bool:
    if queue in settings.queues:
        return True
    return settings.has_open_queues and (queue == home or registry.has_queue(queue))


# ── when it may run (S2, S21) ────────────────────────────────────────────────


class Timing(msgspec.Struct, frozen=True):
    """The start and expiry of one job, absolute or relative, as a store takes them."""

    run_at: Instant | None
    delay: Micros
    expires_at: Instant | None
    expires_in: Micros | None


def timing_of(problems: ProblemList, options: Options) -> Timing:
    """Check the four times of an enqueue: at most one of each pair, and the start before the expiry.

    An absolute and a relative time are not compared: only the store's clock could do that.
    """
    timing = Timing(
        run_at=_instant(problems, options, "run_at"),
        delay=_duration(problems, options, "delay", 0) or 0,
        expires_at=_instant(problems, options, "expires_at"),
        expires_in=_duration(problems, options, "expires_in", 1),
    )
    _exclusive(problems, options, "run_at", "delay")
    _exclusive(problems, options, "expires_at", "expires_in")
    if not problems.found:
        _in_order(problems, timing)
    return timing


def _instant(problems: ProblemList, options: Options, field: str) -> Instant | None:
    value: Any = getattr(options, field)
    return None if value is UNSET else checks.instant(problems, field, value)


def _duration(problems: ProblemList, options: Options, field: str, least: Micros) -> Micros | None:
    value: Any = getattr(options, field)
    return None if value is UNSET else checks.duration(problems, field, value, least, LONGEST_WAIT)


def _exclusive(problems: ProblemList, options: Options, one: str, other: str) -> None:
    if getattr(options, one) is not UNSET and getattr(options, other) is not UNSET:
        problems.add(one, f"is given together with {other}", "give one of the two", "conflict")


def _in_order(problems: ProblemList, timing: Timing) -> None:
    hint = "let it expire after it may start"
    if timing.run_at is not None and timing.expires_at is not None and timing.run_at >= timing.expires_at:
        problems.add("expires_at", "is not after run_at", hint, "conflict")
    if timing.delay and timing.expires_in is not None and timing.delay >= timing.expires_in:
        problems.add("expires_in", "is not longer than delay", hint, "conflict")


# ── how it runs: the call's value, else the task's, else the queue's ─────────


def priority_of(problems: ProblemList, call: Call[Any], settings: Settings) -> int:
    """Return the priority, higher first whatever the application's direction (S19)."""
    given = call.options.priority
    if given is not UNSET:
        checked = checks.priority(problems, "priority", given)
    else:
        checked = settings.priority_default if call.task.priority is None else call.task.priority
    return at_edge(checked, lower_first=settings.is_lower_first)


def max_attempts_of(problems: ProblemList, options: Options, task: Declaration, queue: Queue) -> int:
    """Return how many attempts the job has (S25)."""
    if options.max_attempts is not UNSET:
        return checks.attempts(problems, "max_attempts", options.max_attempts)
    return task.implied_attempts() or queue.max_attempts


def timeout_of(problems: ProblemList, options: Options, task: Declaration, queue: Queue) -> Micros | None:
    """Return the timeout of an attempt; None for no timeout (S31)."""
    given = options.timeout
    if given is not UNSET:
        return None if given is None else checks.duration(problems, "timeout", given, SECOND, DAY)
    inherited = queue.timeout if task.timeout is UNSET else task.timeout
    return None if inherited is None else to_micros(inherited)


def stuck_after_of(
    problems: ProblemList, task: Declaration, queue: Queue, timeout: Micros | None
) -> Micros | None:
    """Return how old a claim may be: the task's limit, else the queue's; None for twice its timeout (S31)."""
    given = queue.stuck_after if task.stuck_after is None else task.stuck_after
    if given is None:
        return None
    limit = to_micros(given)
    if timeout is not None and timeout >= limit:
        message = f"is not below stuck_after, {limit / SECOND:g} s: the job would be taken back before"
        problems.add("timeout", message, "use a shorter timeout, or raise stuck_after", "range")
    return limit


# ── what links it to others: keys, correlation id, creator, parent ───────────


def on_duplicate_of(problems: ProblemList, options: Options) -> OnDuplicate:
    """Return what to do if the idempotency key is taken (S13)."""
    match options.on_duplicate:
        case "raise" | "replace_dead" as given:
            return given
        case "return" | msgspec.UnsetType():
            return "return"
        case _:
            hint = "use return, raise or replace_dead"
            problems.add("on_duplicate", "is not one of its values", hint, "type")
            return "return"


def label_of(problems: ProblemList, options: Options, field: str, settings: Settings) -> str | None:
    """Return a key or a correlation id as given; a problem if it is missing and `payload.require` has it."""
    value = getattr(options, field)
    if value is not UNSET:
        return checks.label(problems, field, value)
    if field in settings.require:
        problems.add(field, "is missing", "give one: this application requires it", "required")
    return None


def correlation_id_of(
    problems: ProblemList, options: Options, settings: Settings, running: Job[Any] | None
) -> str | None:
    """Return the running job's correlation id; outside a handler, the one given (S22)."""
    if running is None:
        return label_of(problems, options, "correlation_id", settings)
    if options.correlation_id is not UNSET:
        checks.label(problems, "correlation_id", options.correlation_id)
    return running.correlation_id


def created_by_of(problems: ProblemList, options: Options, running: Job[Any] | None) -> str | None:
    """Return who asked for the job: as given, else the running job's (S22)."""
    if options.created_by is not UNSET:
        return checks.label(problems, "created_by", options.created_by)
    return None if running is None else running.created_by


def parent_of(problems: ProblemList, parent: object, tenant: str, running: Job[Any] | None) -> UUID | None:
    """Return the parent's id: as given, else the running job if it has the same tenant (S22)."""
    if parent is UNSET:
        return running.id if running is not None and running.tenant == tenant else None
    if isinstance(parent, UUID):
        return parent
    if not isinstance(parent, Job):
        problems.add("parent", f"is of type {kind_of(parent)}", "give a job or its UUID", "type")
        return None
    if parent.tenant != tenant:
        hint = "link jobs within one tenant"
        problems.add("parent", f"is a job of another tenant than {tenant}", hint, "parent")
    return parent.id
