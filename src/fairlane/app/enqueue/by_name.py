"""Make calls of a task from its name and JSON arguments, for tasks declared here or published by workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from fairlane.app.ambient import scope_for
from fairlane.app.arguments.from_json import Schema, read_arguments
from fairlane.app.client import Client
from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.enqueue import suggestions
from fairlane.app.enqueue.call import NO_OPTIONS, Call, Options
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.task.declaration import Declaration
from fairlane.app.task.handler import schema_of
from fairlane.app.task.record import declaration_from_record
from fairlane.model.errors import invalid_job
from fairlane.store.contract.registry import TasksRequest


class FoundTask(NamedTuple):
    """A task found by its name, and the JSON Schema of its arguments."""

    task: Declaration
    schema: Schema

    def call(self, arguments: Mapping[str, Any], options: Options) -> Call[Any]:
        """Return a call with these JSON values, typed by the schema; `InvalidJob` lists what does not fit."""
        problems = ProblemList(0)
        read = read_arguments(problems, arguments, self.schema, self.task.handler.argument_enums)
        if problems.found:
            raise invalid_job(problems.found)
        bound = read if self.task.is_published_only else self.task.handler.bind((), read)
        return Call(self.task, options, bound)


async def find_by_name(client: Client, name: str, tenant: str | None) -> FoundTask:
    """Return a task that is declared here or published; `UnknownTask` suggests the closest name."""
    task = client.registry.find(name)
    if task is not None:
        return FoundTask(task, schema_of(task.handler))
    scope = scope_for(tenant)
    published = await client.store.registry.tasks(TasksRequest(scope=scope, names=(name,)))
    if not published:
        known = [view.record.name for view in await client.store.registry.tasks(TasksRequest(scope=scope))]
        known += [one.name for one in client.registry]
        problems = ProblemList(0)
        message = f"no worker has published a task {name[:80]!r}{did_you_mean(name, known)}"
        problems.add("task", message, "start a worker that knows it, or name another", "unknown_task")
        raise invalid_job(problems.found)
    record = published[0].record
    schema: Schema = msgspec.json.decode(record.schema)
    return FoundTask(declaration_from_record(record, schema, client.settings), schema)


async def call_by_name(
    client: Client, name: str, arguments: Mapping[str, Any], tenant: str, options: Mapping[str, Any]
) -> Call[Any]:
    """Find a task and return a call of it for this tenant."""
    unknown = {name for name in options if name == "batch_key" or name not in Options.__struct_fields__}
    if unknown:
        raise TypeError(suggestions.options(sorted(unknown)))
    scope_for(tenant)  # refuses another tenant's name before anything is looked up
    named = await find_by_name(client, name, tenant)
    return named.call(arguments, NO_OPTIONS.with_options(**{**options, "tenant": tenant}))
