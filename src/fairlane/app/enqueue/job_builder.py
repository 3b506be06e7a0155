"""Build new jobs from calls, or report everything that is wrong with them in one error (S3-S8, S10-S12).

Sends nothing: a batch with one bad field never reaches the store. What each field may be is in `job_fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from fairlane.app.ambient import Ambient
from fairlane.app.arguments.type_check import ArgumentCheck
from fairlane.app.enqueue import checks
from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.categories import check_needed, needed_arguments
from fairlane.app.enqueue.checks import ProblemList, kind_of
from fairlane.app.enqueue.job_fields import (
    correlation_id_of,
    created_by_of,
    label_of,
    max_attempts_of,
    on_duplicate_of,
    parent_of,
    priority_of,
    queue_of,
    stuck_after_of,
    tenant_of,
    timeout_of,
    timing_of,
)
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import TaskRegistry, with_task_settings
from fairlane.model.errors import Problem, invalid_job
from fairlane.model.job import NewJob
from fairlane.model.payload.encoding import (
    Encoded,
    Unencodable,
    encode_arguments,
    encode_numbers,
    fingerprint,
)
from fairlane.model.payload.sensitive import SensitiveValue, are_plain_numbers, check_sensitive
from fairlane.store.contract.jobs import MAX_BATCH_BYTES, MAX_BATCH_SIZE

_NOTHING: Final = Encoded(b"", 0, large=False)
_LIGHTER: Final = "send it in smaller parts, as fairlane.chunks(calls, size) makes them"
_SMALLER: Final = "send it in parts: for part in fairlane.chunks(calls): app.enqueue_many(part)"
_BLANK: Final = NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0)


class BuildContext(msgspec.Struct, frozen=True):
    """What building jobs needs besides the calls. `connection` is the one given for the whole batch.

    `without_tenant` is called with the tasks whose calls name no tenant and so belong to `system`.
    """

    settings: Settings
    registry: TaskRegistry
    ambient: Ambient | None
    next_ids: Callable[[int], Sequence[UUID]]
    connection: Any = None
    without_tenant: Callable[[set[str]], None] | None = None


class BuiltJob(msgspec.Struct, frozen=True, gc=False):
    """One new job, and what to warn about although it is legal."""

    job: NewJob
    size: int
    is_large: bool
    sensitive: Sequence[SensitiveValue]


def take_batch(calls: Iterable[Call[Any]]) -> list[Call[Any]]:
    """Return the calls of one batch; reads at most one too many, so that an endless iterable is refused."""
    return list(islice(calls, MAX_BATCH_SIZE + 1))


def connection_of(calls: Sequence[Call[Any]], given: Any) -> Any:
    """Return the connection of a batch: as given, else that of its calls; None means the store's own."""
    if given is not None:
        return given
    for call in calls:
        # What is not a Call is reported by `build`, not here.
        if isinstance(call, Call):  # pyright: ignore[reportUnnecessaryIsInstance] (callers need not be typed)
            connection = call.options.connection
            if connection is not UNSET and connection is not None:
                return connection
    return None


def build_jobs(calls: Iterable[Call[Any]], context: BuildContext, *, is_batch: bool = True) -> list[BuiltJob]:
    """Check all calls, and return their jobs in order.

    Raises `InvalidJob`, or its subclass if all problems are of one kind, with every bad field of every item.
    A well-formed batch that names another tenant from inside one raises `TenantMismatch`.
    """
    batch = take_batch(calls)
    builder = _JobBuilder(context, connection_of(batch, context.connection))
    within = batch[:MAX_BATCH_SIZE]
    built = list(map(builder.build, context.next_ids(len(within)), within))
    found = builder.problems.found + _batch_problems(len(batch), built)
    if found:
        raise invalid_job(found, is_batch=is_batch)
    if context.ambient is not None:
        for item in built:
            context.ambient.allow(item.job.tenant)
    if builder.problems.without_tenant and context.without_tenant is not None:
        context.without_tenant(builder.problems.without_tenant)
    return built


def _batch_problems(count: int, built: Sequence[BuiltJob]) -> list[Problem]:
    problems: list[Problem] = []
    if count > MAX_BATCH_SIZE:
        message = f"has more than {MAX_BATCH_SIZE:,} jobs"
        problems.append(Problem(MAX_BATCH_SIZE, "batch", message, _SMALLER, "too_large"))
    size = 0
    for index, item in enumerate(built):
        size += item.size
        if size > MAX_BATCH_BYTES:
            message = f"is over {MAX_BATCH_BYTES:,} bytes from this job on"
            problems.append(Problem(index, "batch", message, _LIGHTER, "too_large"))
            break
    return problems


# ── one job ──────────────────────────────────────────────────────────────────


class _JobTemplate(msgspec.Struct, frozen=True):
    """What all calls of one task with the same shared options have in common, and its problems.

    `extra_bytes` is the size of what is stored next to the arguments. `type_check` is None if there are no
    type hints to check, or the check is off. `needed` are the arguments that the task's category requires.
    """

    job: NewJob
    problems: Sequence[Problem]
    extra_bytes: int
    type_check: ArgumentCheck | None
    needed: Sequence[str]


class _JobBuilder:
    """Builds the jobs of one batch. What calls have in common is checked once: it is most of the work."""

    def __init__(self, context: BuildContext, connection: Any) -> None:
        self.problems = ProblemList(-1)
        self._context = context
        self._connection = connection
        self._running = None if context.ambient is None else context.ambient.job
        self._always_links = self._running is not None or bool(context.settings.require)
        self._templates: dict[tuple[int, object], _JobTemplate] = {}

    def build(self, id: UUID, call: Call[Any]) -> BuiltJob:
        """Run every check, whatever the others found. The job is valid only if there was no problem."""
        problems = self.problems
        problems.index += 1
        if not isinstance(call, Call):  # pyright: ignore[reportUnnecessaryIsInstance] (callers need not be typed)
            problems.add("call", f"is of type {kind_of(call)}", "make it with task.bind(...)", "type")
            return BuiltJob(_BLANK, 0, is_large=False, sensitive=())
        settings, template = self._context.settings, self._template(call)
        tenant = tenant_of(problems, call, settings.tenancy, self._context.ambient)
        if template.problems:
            problems.take(template.problems)
        encoded, sensitive = _payload(problems, call, settings, template.extra_bytes)
        if template.type_check is not None and not template.type_check.allow(call.arguments):
            _add_type_problems(problems, template.type_check.problems(call.arguments))
        if template.needed:
            check_needed(problems, call, template.needed)
        data = encoded.data
        job = replace(template.job, id=id, tenant=tenant, payload=data, checksum=encoded.checksum)
        if self._always_links or call.options.has_links:
            job = self._linked(call, job)
        return BuiltJob(job, len(data) + template.extra_bytes, encoded.large, sensitive)

    def _linked(self, call: Call[Any], job: NewJob) -> NewJob:
        """Fill in what links a job to others: keys, correlation id, creator, parent."""
        problems, settings, options = self.problems, self._context.settings, call.options
        key = label_of(problems, options, "idempotency_key", settings)
        job = replace(
            job,
            idempotency_key=key,
            dedup_key=label_of(problems, options, "dedup_key", settings),
            correlation_id=correlation_id_of(problems, options, settings, self._running),
            created_by=created_by_of(problems, options, self._running),
            parent_id=parent_of(problems, options.parent, job.tenant, self._running),
        )
        if key is None or problems.found:  # with any problem nothing is sent, so no fingerprint is needed
            return job
        return replace(job, fingerprint=fingerprint(job.task, call.arguments))

    def _template(self, call: Call[Any]) -> _JobTemplate:
        key = (id(call.task), call.options.batch_key)  # both live as long as the calls: no id is reused
        found = self._templates.get(key)
        if found is None:
            found = self._templates[key] = _template_of(call, self._context, self._connection)
        return found


def _template_of(call: Call[Any], context: BuildContext, connection: Any) -> _JobTemplate:
    problems = ProblemList(0)
    settings, task, options = context.settings, call.task, call.options
    if not task.is_published_only and not context.registry.has(task):
        message = f"{task.name} is not registered in this application"
        problems.add("task", message, "bring it in with app.include()", "unknown_task")
    own = None if options.connection is UNSET else options.connection
    if own is not connection and (own is not None or context.connection is None):
        problems.add("connection", "is not that of the batch", "send a batch for each connection", "conflict")
    task = with_task_settings(task, settings.tasks)
    queue = settings.queue(queue_of(problems, call, settings, context.registry))
    timing = timing_of(problems, options)
    tags = () if options.tags is UNSET else checks.tags(problems, options.tags)
    metadata = b"{}" if options.metadata is UNSET else checks.metadata(problems, options.metadata)
    timeout = timeout_of(problems, options, task, queue)
    job = replace(
        _BLANK,
        queue=queue.name,
        task=task.name,
        version=task.version,
        priority=priority_of(problems, call, settings),
        run_at=timing.run_at,
        delay=timing.delay,
        expires_at=timing.expires_at,
        expires_in=timing.expires_in,
        on_duplicate=on_duplicate_of(problems, options),
        dedup_until=task.dedup_until,
        max_attempts=max_attempts_of(problems, options, task, queue),
        timeout=timeout,
        stuck_after=stuck_after_of(problems, task, queue, timeout),
        on_stuck=task.on_stuck or queue.on_stuck,
        at_most_once=task.at_most_once,
        tags=tags,
        metadata=metadata,
    )
    needed = needed_arguments(problems, call.task, settings)
    extra_bytes = len(metadata) + sum(len(tag.encode("utf-8", "replace")) for tag in tags)
    type_check = (call.task.handler.type_check or None) if settings.check_types else None
    return _JobTemplate(job, problems.found, extra_bytes, type_check, needed)


def _payload(
    problems: ProblemList, call: Call[Any], settings: Settings, extra_bytes: int
) -> tuple[Encoded, Sequence[SensitiveValue]]:
    arguments, rules = call.arguments, settings.payload
    try:
        if not call.task.sensitive and are_plain_numbers(arguments):
            return encode_numbers(arguments, rules, extra_bytes), ()
        refused, sensitive = check_sensitive(arguments, settings.sensitive, call.task.sensitive)
        problems.take(refused)
        enums = call.task.handler.argument_enums
        return encode_arguments(arguments, rules=rules, enums=enums, beside=extra_bytes), sensitive
    except Unencodable as error:
        problems.take(error.problems)
        return _NOTHING, ()


def _add_type_problems(problems: ProblemList, wrong_types: Iterable[Problem]) -> None:
    """Add values of the wrong type, except those that the payload check has reported already."""
    reported = {problem.field for problem in problems.found if problem.index == problems.index}
    problems.take(one for one in wrong_types if one.field not in reported)
