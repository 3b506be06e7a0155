"""Turn what is said of a schedule into a checked one, or report everything that is wrong with it (S106).

The job of its slots is built by the enqueue's own checks, so a schedule cannot be saved whose jobs would be
refused. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from fairlane.app.client import Client
from fairlane.app.config.units import seconds_of
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.enqueue.by_name import FoundTask, find_by_name
from fairlane.app.enqueue.call import NO_OPTIONS, Call
from fairlane.app.enqueue.checks import ProblemList, kind_of
from fairlane.app.schedules import reading
from fairlane.app.schedules.options import WORDS
from fairlane.model.errors import InvalidJob
from fairlane.model.instants import Instant, Micros
from fairlane.model.job import NewJob
from fairlane.model.names import check_name, label_hint, name_hint, text_hint
from fairlane.model.payload.encoding import Undecodable, decode_arguments
from fairlane.model.schedule.errors import InvalidSchedule
from fairlane.model.schedule.problems import problems as timing_problems
from fairlane.model.schedule.spec import LOOK_BACK, ScheduleSpec
from fairlane.model.schedule.timing import Timing
from fairlane.model.scope import SYSTEM

_NOBODY: Final = UUID(int=0)
_MOST_FAILURES: Final = 1_000
_OF_JOB: Final = ("queue", "priority", "max_attempts", "timeout", "expires_in", "tags", "metadata")
_KEY: Final = "slot"
"""Stands for the keys that an application may require: a slot brings its own."""


async def build_schedule(
    client: Client,
    name: str,
    given: Mapping[str, Any],
    *,
    before: ScheduleSpec | None = None,
    now: Instant | None = None,
) -> ScheduleSpec:
    """Return a checked schedule; `InvalidSchedule` lists every problem.

    Without `arguments` it keeps the arguments of the one `before`. With `now`, a single run must be later.
    """
    problems = ProblemList(0)
    problems.take(check_name(0, "name", name, name_hint(name)))
    for unknown in sorted(set(given) - set(WORDS)):
        hint = f"there are {', '.join(WORDS)}"
        problems.add(str(unknown)[:60], f"is not known{did_you_mean(unknown, list(WORDS))}", hint, "unknown")
    words = {word: value for word, value in given.items() if value is not None or word == "timeout"}
    timing = _timing(problems, words, now)
    zone = str(words.get("timezone", "UTC"))
    starts = reading.moment(problems, "starts", words.get("starts"), zone)
    ends = reading.moment(problems, "ends", words.get("ends"), zone)
    if starts is not None and ends is not None and starts > ends:
        problems.add("ends", "is before starts", "let it end after it starts", "conflict")
    spread = reading.span(problems, "spread", words.get("spread", 0))
    labels = _labels(problems, words)
    job = await _job(client, problems, words, None if before is None else before.job)
    note: Any = words.get("note", "")
    if text_hint(note) is not None:
        problems.add("note", "cannot be stored", str(text_hint(note)), "type")
    pause_after = reading.count(problems, "pause_after", words.get("pause_after"), 1, _MOST_FAILURES)
    spec = ScheduleSpec(
        name=name,
        job=job,
        timing=cast("Timing", timing),
        for_tenants=labels,
        spread=spread,
        starts=starts,
        ends=ends,
        catch_up=reading.catch_up(problems, words.get("catch_up", "latest")),
        look_back=_look_back(problems, words),
        overlap=reading.overlap(problems, words.get("overlap", "allow")),
        unique_for=reading.span(problems, "unique_for", words.get("unique_for", 0)),
        pause_after=pause_after,
        note=note,
    )
    if problems.found or timing is None:
        raise InvalidSchedule(problems.found, name)
    return spec


def _timing(problems: ProblemList, words: Mapping[str, Any], now: Instant | None) -> Timing | None:
    timing = reading.timing_of(problems, words)
    if timing is None:
        return None
    problems.take(timing_problems(timing, now))
    return timing


def _look_back(problems: ProblemList, words: Mapping[str, Any]) -> Micros:
    return reading.span(problems, "look_back", words["look_back"]) if "look_back" in words else LOOK_BACK


def _labels(problems: ProblemList, words: Mapping[str, Any]) -> dict[str, str] | None:
    """Return for which tenants it makes jobs; None for one."""
    labels = reading.labels(problems, words.get("for_tenants"))
    if labels is not None and "tenant" in words:
        problems.add("for_tenants", "is given together with tenant", "give one of the two", "conflict")
    for key, label in (labels or {}).items():
        hint = label_hint(key) or label_hint(label)
        if hint is not None:
            problems.take(check_name(0, "for_tenants", f"{key}={label}", hint))
    return labels


# ── the job of its slots ─────────────────────────────────────────────────────


async def _job(
    client: Client, problems: ProblemList, words: Mapping[str, Any], before: NewJob | None
) -> NewJob:
    """Return what a slot enqueues, without id, keys and times of its own."""
    blank = NewJob(id=_NOBODY, tenant=SYSTEM, queue="", task="", payload=b"", checksum=0)
    task = words.get("task")
    if not isinstance(task, str):
        message = "is missing" if task is None else f"is of type {kind_of(task)}"
        problems.add("task", message, "name the task of its jobs", "required")
        return blank
    try:
        found = await find_by_name(client, task, None)
        arguments = _arguments(problems, found, words, before)
        if arguments is None:
            return blank
        if "for_tenants" in words and found.task.system:
            message = f"is given, but task {found.task.name} is declared system=True"
            problems.add("for_tenants", message, f"leave it out: the task runs in {SYSTEM}", "system_task")
        call = _call(problems, found, words, arguments)
        (job,) = client.new_jobs([call], is_batch=False)
    except InvalidJob as error:
        problems.take(error.problems)
        return blank
    return msgspec.structs.replace(
        job,
        id=_NOBODY,
        idempotency_key=None,
        fingerprint=b"",
        correlation_id=None,
        created_by=None,
        parent_id=None,
    )


def _call(
    problems: ProblemList, found: FoundTask, words: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Call[Any]:
    options: dict[str, Any] = {name: words[name] for name in _OF_JOB if name in words}
    for name in ("timeout", "expires_in"):
        if isinstance(options.get(name), str):
            options[name] = _seconds(problems, name, options[name])
    if isinstance(options.get("tags"), str):
        options["tags"] = reading.texts(problems, "tags", options["tags"])
    tenant = words.get("tenant", SYSTEM)
    keys = {"idempotency_key": _KEY, "correlation_id": _KEY}
    return found.call(arguments, NO_OPTIONS.with_options(**options, tenant=tenant, **keys))


def _seconds(problems: ProblemList, field: str, value: str) -> float | None:
    try:
        return seconds_of(value)
    except ValueError:
        problems.add(field, f"is {value[:40]!r}", 'write it as "90s" or "5m"', "type")
        return None


def _arguments(
    problems: ProblemList, found: FoundTask, words: Mapping[str, Any], before: NewJob | None
) -> Mapping[str, Any] | None:
    """Return the arguments as given, else as they were before, in the task's version."""
    given = words.get("arguments")
    if isinstance(given, Mapping):
        return cast("Mapping[str, Any]", given)
    if given is not None:
        problems.add("arguments", f"is of type {kind_of(given)}", "give a table of arguments by name", "type")
        return None
    if before is None or before.task != found.task.name:
        return {}
    try:
        stored = decode_arguments(before.payload, enums=found.task.handler.argument_enums)
        return found.task.upcasters.upcast(stored, before.version, found.task.version)
    except Undecodable as error:
        problems.add(
            "arguments", f"cannot be read as they are stored: {error}", "give them anew", "undecodable"
        )
        return None
