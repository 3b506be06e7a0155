"""Turn calls into well-formed new jobs, or say everything that is wrong with them at once (S3-S8, S10-S12).

Nothing is sent from here: a batch with one bad field leaves the store unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from fairlane.app import checks
from fairlane.app.ambient import Ambient
from fairlane.app.call import Call
from fairlane.app.checks import Sheet, kind_of
from fairlane.app.declaration import Declaration, Registry, in_force
from fairlane.app.fitting import Fits
from fairlane.app.job import Job
from fairlane.app.options import Options
from fairlane.app.place import parent_of, queue_of, tenant_of
from fairlane.app.settings import Settings
from fairlane.app.timing import timing_of
from fairlane.model.errors import Problem, invalid_job
from fairlane.model.instants import DAY, SECOND, Micros, to_micros
from fairlane.model.job import NewJob, OnDuplicate
from fairlane.model.payload import Encoded, Unencodable, encode_arguments, encode_numbers, fingerprint
from fairlane.model.policy import Queue
from fairlane.model.priority import at_edge
from fairlane.model.sensitive import Finding, are_plain_numbers, check_sensitive
from fairlane.store.contract.jobs import BATCH_BYTES, BATCH_MOST

_NOTHING: Final = Encoded(b"", 0, large=False)
_LIGHTER: Final = "send it in smaller parts, as fairlane.chunks(calls, size) makes them"
_SMALLER: Final = "send it in parts: for part in fairlane.chunks(calls): app.enqueue_many(part)"


class About(msgspec.Struct, frozen=True):
    """What a form is filled in with besides the calls. `connection` is that of the whole batch, if given.

    `tenantless` hears which tasks' calls named no tenant, where that is allowed and makes them `system`'s.
    """

    settings: Settings
    registry: Registry
    ambient: Ambient | None
    next_ids: Callable[[int], Sequence[UUID]]
    connection: Any = None
    tenantless: Callable[[set[str]], None] | None = None


class Formed(msgspec.Struct, frozen=True, gc=False):
    """One item: the job, and what somebody should hear of although it may go."""

    job: NewJob
    size: int
    is_large: bool
    findings: Sequence[Finding]


class _Pattern(msgspec.Struct, frozen=True):
    """What holds for all calls of one task whose options are of one manner, and what is wrong with it.

    `beside` counts the bytes that are stored beside the arguments of each. `fits` is None where nothing says
    of which types they are, or nobody asks.
    """

    job: NewJob
    problems: Sequence[Problem]
    beside: int
    fits: Fits | None


def taken_from(calls: Iterable[Call[Any]]) -> list[Call[Any]]:
    """Take the calls of one batch; one more than fits is enough to know, of an endless iterable too."""
    return list(islice(calls, BATCH_MOST + 1))


def connection_of(calls: Sequence[Call[Any]], given: Any) -> Any:
    """Give the connection that a batch goes to: given, or named by its calls, None if it is the store's."""
    if given is not None:
        return given
    for call in calls:
        # What is no call is found by the form, and not here.
        if isinstance(call, Call):  # pyright: ignore[reportUnnecessaryIsInstance] (callers need not be typed)
            named = call.options.connection
            if named is not UNSET and named is not None:
                return named
    return None


def form(calls: Iterable[Call[Any]], about: About, *, is_batch: bool = True) -> list[Formed]:
    """Check all calls and give the jobs they make, in order.

    `InvalidJob`, or the narrower error if all problems are of one kind, lists every bad field of every item.
    A well-formed batch that names another tenant from inside one raises `TenantMismatch`.
    """
    taken = taken_from(calls)
    shaper = _Shaper(about, connection_of(taken, about.connection))
    fitting = taken[:BATCH_MOST]
    formed = list(map(shaper.shape, about.next_ids(len(fitting)), fitting))
    problems = shaper.sheet.problems + _batch_problems(len(taken), formed)
    if problems:
        raise invalid_job(problems, is_batch=is_batch)
    if about.ambient is not None:
        for item in formed:
            about.ambient.allow(item.job.tenant)
    if shaper.sheet.tenantless and about.tenantless is not None:
        about.tenantless(shaper.sheet.tenantless)
    return formed


def _batch_problems(count: int, formed: Sequence[Formed]) -> list[Problem]:
    problems: list[Problem] = []
    if count > BATCH_MOST:
        message = f"has more than {BATCH_MOST:,} jobs"
        problems.append(Problem(BATCH_MOST, "batch", message, _SMALLER, "too_large"))
    size = 0
    for index, item in enumerate(formed):
        size += item.size
        if size > BATCH_BYTES:
            message = f"is over {BATCH_BYTES:,} bytes from this job on"
            problems.append(Problem(index, "batch", message, _LIGHTER, "too_large"))
            break
    return problems


class _Shaper:
    """Makes the jobs of one batch. What calls have in common is judged once: it is most of the work."""

    def __init__(self, about: About, connection: Any) -> None:
        self.sheet = Sheet(-1)
        self._about = about
        self._connection = connection
        self._running = None if about.ambient is None else about.ambient.job
        self._is_asking = self._running is not None or bool(about.settings.require)
        self._patterns: dict[tuple[int, object], _Pattern] = {}

    def shape(self, id: UUID, call: Call[Any]) -> Formed:
        """Run every check, whatever the others found; the job is worth something if there was no problem."""
        sheet = self.sheet
        sheet.index += 1
        if not isinstance(call, Call):  # pyright: ignore[reportUnnecessaryIsInstance] (callers need not be typed)
            sheet.add("call", f"is of type {kind_of(call)}", "make it with task.bind(...)", "type")
            return Formed(_BLANK, 0, is_large=False, findings=())
        settings, options, pattern = self._about.settings, call.options, self._pattern(call)
        tenant = tenant_of(sheet, call, settings.tenancy, self._about.ambient)
        if pattern.problems:
            sheet.take(pattern.problems)
        encoded, findings = _payload(sheet, call, settings, pattern.beside)
        if pattern.fits is not None and not pattern.fits.allow(call.arguments):
            _take_misfits(sheet, pattern.fits.problems(call.arguments))
        data = encoded.data
        job = replace(pattern.job, id=id, tenant=tenant, payload=data, checksum=encoded.checksum)
        if self._is_asking or options.has_ties:
            job = self._tied(call, job)
        return Formed(job, len(data) + pattern.beside, encoded.large, findings)

    def _tied(self, call: Call[Any], job: NewJob) -> NewJob:
        """Fill in what ties a job to others: its keys, its correlation id, its parent."""
        sheet, settings, options = self.sheet, self._about.settings, call.options
        key = _label(sheet, options, "idempotency_key", settings)
        job = replace(
            job,
            idempotency_key=key,
            dedup_key=_label(sheet, options, "dedup_key", settings),
            correlation_id=_correlation(sheet, options, settings, self._running),
            parent_id=parent_of(sheet, options.parent, job.tenant, self._running),
        )
        if key is None or sheet.problems:  # of this job or of one before: none will be sent
            return job
        return replace(job, fingerprint=fingerprint(job.task, call.arguments))

    def _pattern(self, call: Call[Any]) -> _Pattern:
        key = (id(call.task), call.options.manner)  # both live as long as the calls do
        found = self._patterns.get(key)
        if found is None:
            found = self._patterns[key] = _pattern_of(call, self._about, self._connection)
        return found


_BLANK: Final = NewJob(id=UUID(int=0), tenant="", queue="", task="", payload=b"", checksum=0)


def _pattern_of(call: Call[Any], about: About, connection: Any) -> _Pattern:
    sheet = Sheet(0)
    settings, task, options = about.settings, call.task, call.options
    if not task.is_elsewhere and not about.registry.has(task):
        message = f"{task.name} is not registered in this application"
        sheet.add("task", message, "bring it in with app.include()", "unknown_task")
    named = None if options.connection is UNSET else options.connection
    if named is not connection and (named is not None or about.connection is None):
        sheet.add("connection", "is not that of the batch", "send a batch for each connection", "conflict")
    task = in_force(task, settings.tasks)
    queue = settings.queue(queue_of(sheet, call, settings, about.registry))
    timing = timing_of(sheet, options)
    tags = () if options.tags is UNSET else checks.tags(sheet, options.tags)
    metadata = b"{}" if options.metadata is UNSET else checks.metadata(sheet, options.metadata)
    job = replace(
        _BLANK,
        queue=queue.name,
        task=task.name,
        version=task.version,
        priority=_priority(sheet, call, settings),
        run_at=timing.run_at,
        delay=timing.delay,
        expires_at=timing.expires_at,
        expires_in=timing.expires_in,
        on_duplicate=_on_duplicate(sheet, options),
        dedup_until=task.dedup_until,
        max_attempts=_max_attempts(sheet, options, task, queue),
        timeout=_timeout(sheet, options, task, queue),
        at_most_once=task.at_most_once,
        tags=tags,
        metadata=metadata,
    )
    beside = len(metadata) + sum(len(tag.encode("utf-8", "replace")) for tag in tags)
    fits = (call.task.handler.fits or None) if settings.check_types else None
    return _Pattern(job, sheet.problems, beside, fits)


def _take_misfits(sheet: Sheet, misfits: Iterable[Problem]) -> None:
    """Note what is of another type, unless the payload has refused it with advice of its own."""
    refused = {problem.field for problem in sheet.problems if problem.index == sheet.index}
    sheet.take(one for one in misfits if one.field not in refused)


def _payload(
    sheet: Sheet, call: Call[Any], settings: Settings, beside: int
) -> tuple[Encoded, Sequence[Finding]]:
    arguments, rules = call.arguments, settings.payload
    try:
        if not call.task.sensitive and are_plain_numbers(arguments):
            return encode_numbers(arguments, rules, beside), ()
        problems, findings = check_sensitive(arguments, settings.sensitive, call.task.sensitive)
        sheet.take(problems)
        enums = call.task.handler.argument_enums
        return encode_arguments(arguments, rules=rules, enums=enums, beside=beside), findings
    except Unencodable as refused:
        sheet.take(refused.problems)
        return _NOTHING, ()


def _label(sheet: Sheet, options: Options, field: str, settings: Settings) -> str | None:
    value = getattr(options, field)
    if value is not UNSET:
        return checks.label(sheet, field, value)
    if field in settings.require:
        sheet.add(field, "is missing", "give one: this application requires it", "required")
    return None


def _correlation(sheet: Sheet, options: Options, settings: Settings, running: Job[Any] | None) -> str | None:
    """Inherit from the running job, else take what was given (S22)."""
    if running is None:
        return _label(sheet, options, "correlation_id", settings)
    if options.correlation_id is not UNSET:
        checks.label(sheet, "correlation_id", options.correlation_id)
    return running.correlation_id


def _on_duplicate(sheet: Sheet, options: Options) -> OnDuplicate:
    match options.on_duplicate:
        case "raise" | "replace_dead" as given:
            return given
        case "return" | msgspec.UnsetType():
            return "return"
        case _:
            hint = "use return, raise or replace_dead"
            sheet.add("on_duplicate", "is not one of its values", hint, "type")
            return "return"


def _priority(sheet: Sheet, call: Call[Any], settings: Settings) -> int:
    given = call.options.priority
    if given is not UNSET:
        checked = checks.priority(sheet, "priority", given)
    else:
        checked = settings.priority_default if call.task.priority is None else call.task.priority
    return at_edge(checked, lower_first=settings.is_lower_first)


def _max_attempts(sheet: Sheet, options: Options, task: Declaration, queue: Queue) -> int:
    if options.max_attempts is not UNSET:
        return checks.attempts(sheet, "max_attempts", options.max_attempts)
    return task.implied_attempts() or queue.max_attempts


def _timeout(sheet: Sheet, options: Options, task: Declaration, queue: Queue) -> Micros | None:
    given = options.timeout
    if given is not UNSET:
        return None if given is None else checks.duration(sheet, "timeout", given, SECOND, DAY)
    asked = queue.timeout if task.timeout is UNSET else task.timeout
    return None if asked is None else to_micros(asked)
