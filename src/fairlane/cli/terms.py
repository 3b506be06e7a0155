"""Options that several commands share: whom a change is about, why, and until when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

import click

from fairlane.cli import kinds
from fairlane.model.instants import Instant, to_instant, to_micros
from fairlane.model.layers import Kind, Subject
from fairlane.model.names import name_hint, task_hint, tenant_hint

F = TypeVar("F", bound=Callable[..., Any])

_HINTS: Final = {Kind.QUEUE: name_hint, Kind.TENANT: tenant_hint, Kind.TASK: task_hint, Kind.GATE: name_hint}

required_note: Final = click.option(
    "--note", "--reason", "note", type=kinds.REASON, required=True, help="Why; others will want to know."
)
note: Final = click.option(
    "--note", "--reason", "note", type=kinds.TEXT, default="", help="Why; others will want to know."
)
log: Final = click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    help="The log's form; by default as --json says.",
)
log_tracebacks: Final = click.option(
    "--log-tracebacks", is_flag=True, help="Log the traceback of every failed attempt."
)


def about(*allowed: Kind) -> Callable[[F], F]:
    """Take the kind and the name of what a command is about."""

    def decorate(command: F) -> F:
        named = click.argument("name")(command)
        return click.argument("kind", type=click.Choice([kind.value for kind in allowed]))(named)

    return decorate


def subject_of(kind: str, name: str) -> Subject:
    """Give the subject that was named; a usage error says what a name needs."""
    hint = _HINTS[Kind(kind)](name)
    if hint is not None:
        message = f"{name[:80]!r} is no name of a {kind}; {hint}"
        raise click.BadParameter(message, param_hint="NAME")
    return Subject(Kind(kind), name)


def ending(command: F) -> F:
    """Take an end, as a time or as a duration."""
    at = click.option("--until", type=kinds.MOMENT, help="It ends by itself at this time.")(command)
    return click.option(
        "--for", "lasting", type=kinds.DURATION, help="It ends by itself after so long (2h)."
    )(at)


def end_of(until: datetime | None, lasting: float | None, now: Instant) -> Instant | None:
    """Give the instant at which a change ends, if it does; a duration is counted from the store's now."""
    if until is not None and lasting is not None:
        message = "give --until or --for: one of the two"
        raise click.UsageError(message)
    if lasting is not None:
        return now + to_micros(lasting)
    return None if until is None else to_instant(until)
