"""Make a call of a task by its name alone, as workers have published it. Stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlane.app import misuse
from fairlane.app.ambient import scope_for
from fairlane.app.call import Call
from fairlane.app.cards import declaration_of
from fairlane.app.checks import Sheet
from fairlane.app.client import Client
from fairlane.app.config.policy_kinds import nearest
from fairlane.app.options import NO_OPTIONS, Options
from fairlane.app.schema import check_arguments, schema_of
from fairlane.model.errors import invalid_job
from fairlane.store.contract.registry import TasksRequest


async def call_by_name(
    client: Client, name: str, arguments: Mapping[str, Any], tenant: str, options: Mapping[str, Any]
) -> Call[Any]:
    """Find the task, here or among the published ones, and check the arguments against its schema.

    `UnknownTask` names the nearest one; `InvalidJob` lists every argument that does not fit.
    """
    unknown = {name for name in options if name == "manner" or name not in Options.__struct_fields__}
    if unknown:
        raise TypeError(misuse.options(sorted(unknown)))
    scope = scope_for(tenant)
    sheet = Sheet(0)
    task = client.registry.find(name)
    if task is not None:
        schema: Mapping[str, Any] = schema_of(task.handler)
    else:
        published = await client.store.registry.tasks(TasksRequest(scope=scope, names=(name,)))
        if not published:
            known = [view.card.name for view in await client.store.registry.tasks(TasksRequest(scope=scope))]
            known += [one.name for one in client.registry]
            message = f"no worker has published a task {name[:80]!r}{nearest(name, known)}"
            sheet.add("task", message, "start a worker that knows it, or name another", "unknown_task")
            raise invalid_job(sheet.problems)
        card = published[0].card
        task, schema = declaration_of(card, client.settings), msgspec.json.decode(card.schema)
    check_arguments(sheet, arguments, schema)
    if sheet.problems:
        raise invalid_job(sheet.problems)
    bound = dict(arguments) if task.is_elsewhere else task.handler.bind((), arguments)
    return Call(task, NO_OPTIONS.under(**{**options, "tenant": tenant}), bound)
