"""Convert a declaration to the record that workers publish, and back for callers without a handler (S33)."""

from __future__ import annotations

import msgspec

from fairlane.app.arguments.from_json import Schema, enums_in
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration, with_task_settings
from fairlane.app.task.handler import Handler, schema_of
from fairlane.model.instants import SECOND, to_micros
from fairlane.model.payload.upcast import Upcasters
from fairlane.model.scheduling.priority import at_edge
from fairlane.store.contract.registry import TaskRecord


def task_record_of(task: Declaration, settings: Settings) -> TaskRecord:
    """Return the record of a task with its effective values, so that a job enqueued by name is the same."""
    declared, queue = with_task_settings(task, settings.tasks), settings.queue(task.queue)
    timeout = queue.timeout if isinstance(declared.timeout, msgspec.UnsetType) else declared.timeout
    stuck_after = queue.stuck_after if declared.stuck_after is None else declared.stuck_after
    priority = settings.priority_default if declared.priority is None else declared.priority
    return TaskRecord(
        name=declared.name,
        queue=declared.queue,
        version=declared.version,
        schema=msgspec.json.encode(_published_schema(declared, settings)),
        aliases=declared.aliases,
        sensitive=declared.sensitive,
        priority=at_edge(priority, lower_first=settings.is_lower_first),
        timeout=None if timeout is None else to_micros(timeout),
        max_attempts=declared.implied_attempts() or queue.max_attempts,
        dedup_until=declared.dedup_until,
        at_most_once=declared.at_most_once,
        system=declared.system,
        module=declared.handler.func.__module__ or "",
        stuck_after=None if stuck_after is None else to_micros(stuck_after),
        on_stuck=declared.on_stuck or queue.on_stuck,
        events=declared.events,
    )


def _published_schema(task: Declaration, settings: Settings) -> Schema:
    """Return the schema of the arguments; what the task's category needs is required of callers by name."""
    schema = schema_of(task.handler)
    needed = settings.categories.get(task.category or "", ())
    return {**schema, "required": list(dict.fromkeys([*schema["required"], *needed]))}


def declaration_from_record(record: TaskRecord, schema: Schema, settings: Settings) -> Declaration:
    """Return the declaration of a published task, with Enum classes made from its schema."""
    handler = Handler(_not_here, record.name)
    handler.argument_enums = enums_in(schema)
    return Declaration(
        name=record.name,
        handler=handler,
        upcasters=Upcasters(record.name),
        queue=record.queue,
        version=record.version,
        sensitive=record.sensitive,
        priority=at_edge(record.priority, lower_first=settings.is_lower_first),
        timeout=None if record.timeout is None else record.timeout / SECOND,
        max_attempts=record.max_attempts,
        dedup_until=record.dedup_until,
        at_most_once=record.at_most_once,
        system=record.system,
        stuck_after=None if record.stuck_after is None else record.stuck_after / SECOND,
        on_stuck=record.on_stuck,
        is_published_only=True,
    )


def _not_here() -> None:
    """Stand in for a handler that only workers have."""
