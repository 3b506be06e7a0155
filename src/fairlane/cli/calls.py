"""Make calls of a task by its name: as the application has it, or as workers have published it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import click

from fairlane import Fairlane, InvalidJob, Problem
from fairlane.app.by_name import Named, find_by_name
from fairlane.app.call import Call
from fairlane.app.options import NO_OPTIONS
from fairlane.model.errors import invalid_job

Arguments: TypeAlias = dict[str, Any]
Rows: TypeAlias = Callable[[Named], Sequence[Arguments]]
"""Reads the arguments of each call, for a task that is known by then."""


async def calls_of(
    app: Fairlane, task: str, rows: Rows, options: Mapping[str, Any], *, is_batch: bool
) -> list[Call[Any]]:
    """Make one call for each row of arguments; `InvalidJob` lists what is wrong with any of them."""
    if app.registry.find(task) is None and options["tenant"] is None:
        message = "name the tenant with --tenant; `system` is the application itself"
        raise click.UsageError(message)
    named = await find_by_name(app.client, task, options["tenant"])
    said = NO_OPTIONS.under(**{key: value for key, value in options.items() if value is not None})
    calls: list[Call[Any]] = []
    problems: list[Problem] = []
    for index, row in enumerate(rows(named)):
        try:
            calls.append(named.call(row, said))
        except InvalidJob as error:
            problems += [replace(problem, index=index) for problem in error.problems]
    if problems:
        raise invalid_job(problems, is_batch=is_batch)
    return calls
