"""The kinds of values that options take, each refused with what it should be. Asks no store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import click

from fairlane.cli.moments import read_duration, read_moment
from fairlane.model.identifiers import parse_id
from fairlane.model.lifecycle import State
from fairlane.model.names import label_hint, name_hint, task_hint, tenant_hint, text_hint

T = TypeVar("T")


class Kind(click.ParamType[T], Generic[T]):
    """A value that a function reads; what it says in its ValueError is what the user is told."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Read a text; a value that was read before stays as it is."""
        if not isinstance(value, str):
            read: T = value
            return read
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _named(what: str, hint: Callable[[object], str | None]) -> Callable[[str], str]:
    def read(text: str) -> str:
        wrong = hint(text)
        if wrong is not None:
            message = f"{text[:80]!r} is no name of a {what}; {wrong}"
            raise ValueError(message)
        return text

    return read


def _before(text: str) -> datetime:
    """Read a time, or a duration as a time so long ago."""
    try:
        seconds = read_duration(text)
    except ValueError:
        return read_moment(text)
    return max(_EPOCH, datetime.now(UTC) - timedelta(seconds=seconds))


def _labelled(text: str) -> str:
    wrong = label_hint(text)
    if wrong is not None:
        message = f"{text[:80]!r} can be no correlation id and no tag; {wrong}"
        raise ValueError(message)
    return text


def _text(text: str) -> str:
    wrong = text_hint(text)
    if wrong is not None:
        message = f"a text of {len(text):,} characters cannot be kept; {wrong}"
        raise ValueError(message)
    return text


def _reason(text: str) -> str:
    if not text.strip():
        message = "it is empty; say why, in a few words"
        raise ValueError(message)
    return _text(text)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

JOB: Final = Kind("id", parse_id)
QUEUE: Final = Kind("queue", _named("queue", name_hint))
GATE: Final = Kind("gate", _named("gate", name_hint))
TENANT: Final = Kind("tenant", _named("tenant", tenant_hint))
TASK: Final = Kind("task", _named("task", task_hint))
LABEL: Final = Kind("text", _labelled)
TEXT: Final = Kind("text", _text)
DURATION: Final = Kind("duration", read_duration)
REASON: Final = Kind("text", _reason)
MOMENT: Final = Kind("time", read_moment)
BEFORE: Final = Kind("time or age", _before)
STATE: Final = click.Choice([state.value for state in State])
