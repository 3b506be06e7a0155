"""Merge new arguments into those of a stored job, and hold the result to the rules of an enqueue.

New arguments replace those of the same name and keep the others. The result is checked against the task's
schema, the rules of sensitive values and the size, and is encoded in the task's current version. Sends
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.client import Client
from fairlane.app.enqueue.by_name import find_by_name
from fairlane.app.enqueue.call import NO_OPTIONS
from fairlane.app.enqueue.checks import ProblemList, kind_of
from fairlane.model.errors import InvalidJob
from fairlane.model.job import JobRecord
from fairlane.model.payload.encoding import Undecodable, decode_arguments, verify


class MergedPayload(NamedTuple):
    """A whole new payload; UNSET where nothing changes, or a problem was found."""

    payload: bytes | UnsetType = UNSET
    checksum: int | UnsetType = UNSET
    version: int | UnsetType = UNSET


async def merge_arguments(
    client: Client,
    problems: ProblemList,
    record: JobRecord,
    given: object,
    tags: tuple[str, ...] | UnsetType = UNSET,
) -> MergedPayload:
    """Return the whole new payload, built by the enqueue's own checks; `tags` are new ones, for its size."""
    changes = _changes(problems, given)
    if changes is None:
        return MergedPayload()
    try:
        found = await find_by_name(client, record.task, record.tenant)
        task = found.task
        verify(record.payload, record.checksum)
        stored = decode_arguments(record.payload, enums=task.handler.argument_enums)
        current = task.upcasters.upcast(stored, record.version, task.version)
        options = NO_OPTIONS.with_options(
            tenant=record.tenant,
            tags=record.tags if isinstance(tags, UnsetType) else tags,
            metadata=msgspec.json.decode(record.metadata, type=dict[str, Any]),
            idempotency_key=record.idempotency_key,
            correlation_id=record.correlation_id,
        )
        (job,) = client.new_jobs([found.call({**current, **changes}, options)], is_batch=False)
    except Undecodable as error:
        hint = "cancel the job, and enqueue a new one"
        problems.add("arguments", f"cannot be read as they are stored: {error}", hint, "undecodable")
    except InvalidJob as error:
        known = {problem.field for problem in problems.found}
        problems.take(problem for problem in error.problems if problem.field not in known)
    else:
        return MergedPayload(job.payload, job.checksum, job.version)
    return MergedPayload()


def _changes(problems: ProblemList, given: object) -> dict[str, Any] | None:
    if not isinstance(given, Mapping):
        hint = "give a dict of the arguments to change, by name"
        problems.add("arguments", f"is of type {kind_of(given)}", hint, "arguments")
        return None
    changes = dict(cast("Mapping[object, object]", given))
    for name in changes:
        if not isinstance(name, str):
            problems.add("arguments", f"has a name of type {kind_of(name)}", "use texts", "arguments")
            return None
    return cast("dict[str, Any]", changes)
