"""Make calls of a task by its name: as the application has it, or as workers have published it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import click
import msgspec

from fairlane import Fairlane, InvalidJob, Problem
from fairlane.app.by_name import call_by_name
from fairlane.app.call import Call
from fairlane.app.checks import Sheet
from fairlane.app.declaration import Declaration
from fairlane.app.options import NO_OPTIONS, Options
from fairlane.app.schema import check_arguments, schema_of
from fairlane.model.errors import invalid_job
from fairlane.model.scope import Scope
from fairlane.store.contract.registry import TasksRequest

Arguments: TypeAlias = dict[str, Any]

_TEXT: Final = {"type": "string"}


async def texts_of(app: Fairlane, task: str) -> set[str]:
    """Name the parameters of a task that take text and nothing else; none if the task is not known."""
    declared = app.registry.find(task)
    if declared is not None:
        schema: Mapping[str, Any] = schema_of(declared.handler)
    else:
        found = await app.client.store.registry.tasks(TasksRequest(scope=Scope.all(), names=(task,)))
        schema = msgspec.json.decode(found[0].card.schema) if found else {}
    return {name for name, described in schema.get("properties", {}).items() if described == _TEXT}


async def calls_of(
    app: Fairlane, task: str, rows: Sequence[Arguments], options: Mapping[str, Any], *, is_batch: bool
) -> list[Call[Any]]:
    """Make one call for each row of arguments; `InvalidJob` lists what is wrong with any of them."""
    declared = app.registry.find(task)
    if declared is None and options["tenant"] is None:
        message = "name the tenant with --tenant; `system` is the application itself"
        raise click.UsageError(message)
    said = {key: value for key, value in options.items() if value is not None}
    own = NO_OPTIONS.under(**said)
    named = {key: value for key, value in said.items() if key != "tenant"}
    calls: list[Call[Any]] = []
    problems: list[Problem] = []
    for index, row in enumerate(rows):
        try:
            if declared is None:
                calls.append(await call_by_name(app.client, task, row, options["tenant"], named))
            else:
                calls.append(_own(declared, row, own))
        except InvalidJob as error:
            problems += [replace(problem, index=index) for problem in error.problems]
    if problems:
        raise invalid_job(problems, is_batch=is_batch)
    return calls


def _own(declared: Declaration, row: Arguments, options: Options) -> Call[Any]:
    sheet = Sheet(0)
    check_arguments(sheet, row, schema_of(declared.handler))
    if sheet.problems:
        raise invalid_job(sheet.problems)
    return Call(declared, options, declared.handler.bind((), row))
