"""Make calls of a task by its name alone, as it is here or as workers have published it. Stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from fairlane.app import misuse
from fairlane.app.ambient import scope_for
from fairlane.app.call import Call
from fairlane.app.cards import declaration_of
from fairlane.app.checks import Sheet
from fairlane.app.client import Client
from fairlane.app.config.policy_kinds import nearest
from fairlane.app.declaration import Declaration
from fairlane.app.from_json import Schema, read_arguments
from fairlane.app.options import NO_OPTIONS, Options
from fairlane.app.schema import schema_of
from fairlane.model.errors import invalid_job
from fairlane.store.contract.registry import TasksRequest


class Named(NamedTuple):
    """A task that was found by its name, and what its arguments are to be."""

    task: Declaration
    schema: Schema

    def call(self, arguments: Mapping[str, Any], options: Options) -> Call[Any]:
        """Make a call of plain JSON values, typed by the schema; `InvalidJob` lists what does not fit."""
        sheet = Sheet(0)
        read = read_arguments(sheet, arguments, self.schema, self.task.handler.argument_enums)
        if sheet.problems:
            raise invalid_job(sheet.problems)
        bound = read if self.task.is_elsewhere else self.task.handler.bind((), read)
        return Call(self.task, options, bound)


async def find_by_name(client: Client, name: str, tenant: str | None) -> Named:
    """Find a task, here or among the published ones; `UnknownTask` names the nearest one."""
    task = client.registry.find(name)
    if task is not None:
        return Named(task, schema_of(task.handler))
    scope = scope_for(tenant)
    published = await client.store.registry.tasks(TasksRequest(scope=scope, names=(name,)))
    if not published:
        known = [view.card.name for view in await client.store.registry.tasks(TasksRequest(scope=scope))]
        known += [one.name for one in client.registry]
        sheet = Sheet(0)
        message = f"no worker has published a task {name[:80]!r}{nearest(name, known)}"
        sheet.add("task", message, "start a worker that knows it, or name another", "unknown_task")
        raise invalid_job(sheet.problems)
    card = published[0].card
    schema: Schema = msgspec.json.decode(card.schema)
    return Named(declaration_of(card, schema, client.settings), schema)


async def call_by_name(
    client: Client, name: str, arguments: Mapping[str, Any], tenant: str, options: Mapping[str, Any]
) -> Call[Any]:
    """Find the task and make a call of it, for this tenant."""
    unknown = {name for name in options if name == "manner" or name not in Options.__struct_fields__}
    if unknown:
        raise TypeError(misuse.options(sorted(unknown)))
    scope_for(tenant)  # before anything is looked up: another tenant is not to be named from inside one
    named = await find_by_name(client, name, tenant)
    return named.call(arguments, NO_OPTIONS.under(**{**options, "tenant": tenant}))
