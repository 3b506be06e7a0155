"""The options by which entries of a journal are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fairlane.app.journals.reading import EVENT_KINDS, EventFilters, JournalFilters
from fairlane.cli import value_types

F = TypeVar("F", bound=Callable[..., Any])


def with_journal_filters(*, of_events: bool) -> Callable[[F], F]:
    """Add the filters of `app.audit.find` or of `app.events.find` as options."""
    kinds: Any = click.Choice(EVENT_KINDS) if of_events else value_types.TEXT
    text = "Of this kind" if of_events else "Of this kind, such as queues.pause"
    options: list[Callable[[Any], Any]] = [
        click.option(
            "--kind", "kinds", type=kinds, metavar="KIND", multiple=True, help=f"{text}; may be repeated."
        ),
        click.option("--subject", type=value_types.TEXT, help="About this, exactly as it is shown."),
        click.option("--tenant", type=value_types.TENANT, help="Of this tenant."),
        click.option("--since", type=value_types.TIME_OR_AGE, help="Since this time, or this long ago (2h)."),
        click.option(
            "--until", type=value_types.TIME_OR_AGE, help="Before this time, or longer ago than this (2h)."
        ),
    ]
    if of_events:
        options += [
            click.option("--queue", type=value_types.QUEUE, help="About this queue or a job in it."),
            click.option("--task", type=value_types.TASK, help="About this task or a job of it."),
        ]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def event_filters(options: dict[str, Any]) -> EventFilters:
    """Return the given filters as `app.events` takes them."""
    return {**journal_filters(options), "queue": options["queue"], "task": options["task"]}


def journal_filters(options: dict[str, Any]) -> JournalFilters:
    """Return the given filters as `app.audit` takes them."""
    return {
        "kind": options["kinds"] or None,
        "subject": options["subject"],
        "tenant": options["tenant"],
        "since": options["since"],
        "until": options["until"],
    }
