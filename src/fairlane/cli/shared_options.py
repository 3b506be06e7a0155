"""Options that several commands share: the subject of a change, its reason, and its end."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

import click

from fairlane.cli import value_types
from fairlane.cli.invocation import Invocation
from fairlane.model.errors import ConfigError
from fairlane.model.instants import Instant, to_instant, to_micros
from fairlane.model.names import name_hint, task_hint, tenant_hint
from fairlane.model.policy.overrides import Subject, SubjectKind

F = TypeVar("F", bound=Callable[..., Any])

_HINTS: Final = {
    SubjectKind.QUEUE: name_hint,
    SubjectKind.TENANT: tenant_hint,
    SubjectKind.TASK: task_hint,
    SubjectKind.GATE: name_hint,
    SubjectKind.BREAKER: name_hint,
}

required_note: Final = click.option(
    "--note", "--reason", "note", type=value_types.REASON, required=True, help="The reason, shown to others."
)
note: Final = click.option(
    "--note", "--reason", "note", type=value_types.TEXT, default="", help="The reason, shown to others."
)
log: Final = click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    help="The log's format; JSON by default with --json, else text.",
)
log_tracebacks: Final = click.option(
    "--log-tracebacks", is_flag=True, help="Log the traceback of every failed attempt."
)


def paged(what: str, most: int | None = None) -> Callable[[F], F]:
    """Add --limit and --cursor of a list."""

    def decorate(command: F) -> F:
        cursor = click.option("--cursor", help="Continue where the previous page ended.")(command)
        text = f"The maximum number of {what}."
        limit = click.option(
            "--limit", type=click.IntRange(1, most), default=50, show_default=True, help=text
        )
        return limit(cursor)

    return decorate


@contextmanager
def refuse_cursor() -> Generator[None]:
    """Report a cursor from elsewhere by its option; every other value was checked before."""
    try:
        yield
    except ConfigError:
        raise
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--cursor") from None


def write_to(file: str, invocation: Invocation, write: Callable[[Any], int]) -> int:
    """Write into a file, or to standard output if it is `-`; return how many lines were written."""
    try:
        return write(invocation.output.out if file == "-" else file)
    except OSError as error:
        raise click.FileError(file, error.strerror) from None


def subject_arguments(*allowed: SubjectKind) -> Callable[[F], F]:
    """Add the arguments KIND and NAME of the subject."""

    def decorate(command: F) -> F:
        named = click.argument("name")(command)
        return click.argument("kind", type=click.Choice([kind.value for kind in allowed]))(named)

    return decorate


def subject_of(kind: str, name: str) -> Subject:
    """Return the named subject; a usage error explains what a name needs."""
    hint = _HINTS[SubjectKind(kind)](name)
    if hint is not None:
        message = f"{name[:80]!r} is not a valid {kind} name; {hint}"
        raise click.BadParameter(message, param_hint="NAME")
    return Subject(SubjectKind(kind), name)


def with_end(command: F) -> F:
    """Add --until and --for, the end of a change."""
    at = click.option("--until", type=value_types.TIME, help="End automatically at this time.")(command)
    return click.option(
        "--for", "duration", type=value_types.DURATION, help="End automatically after this long (2h)."
    )(at)


def end_of(until: datetime | None, duration: float | None, now: Instant) -> Instant | None:
    """Return the instant at which a change ends, if any. A duration starts at the store's current time."""
    if until is not None and duration is not None:
        message = "give either --until or --for, not both"
        raise click.UsageError(message)
    if duration is not None:
        return now + to_micros(duration)
    return None if until is None else to_instant(until)


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        message = f"{text[:40]!r} is not KEY=VALUE"
        raise ValueError(message)
    return key, value


labels_option: Final = click.option(
    "--label",
    "labels",
    type=value_types.ValueType("key=value", _label),
    multiple=True,
    help="With this label.",
)
