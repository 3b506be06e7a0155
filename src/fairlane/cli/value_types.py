"""The types of option values: each is parsed here, and refused with a hint. Asks no store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import click
import msgspec

from fairlane.cli.render.times import parse_duration, parse_time
from fairlane.model.identifiers import parse_id
from fairlane.model.lifecycle.states import State
from fairlane.model.names import label_hint, name_hint, task_hint, tenant_hint, text_hint

T = TypeVar("T")


class ValueType(click.ParamType[T], Generic[T]):
    """A value that a function parses; the text of its ValueError is shown to the user."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Parse a text; a value that is already parsed stays as it is."""
        if not isinstance(value, str):
            parsed: T = value
            return parsed
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _checked(hint: Callable[[object], str | None], refusal: str) -> Callable[[str], str]:
    """Return a parser that accepts text without a hint, else refuses it with `refusal` and the hint."""

    def parse(text: str) -> str:
        wrong = hint(text)
        if wrong is not None:
            message = f"{refusal.format(text=text[:80], size=len(text))}; {wrong}"
            raise ValueError(message)
        return text

    return parse


def _named(what: str, hint: Callable[[object], str | None]) -> ValueType[str]:
    return ValueType(what, _checked(hint, "{text!r} is not a valid " + what + " name"))


def _reason(text: str) -> str:
    if not text.strip():
        message = "it is empty; give a reason in a few words"
        raise ValueError(message)
    return _text(text)


def _time_or_age(text: str) -> datetime:
    """Parse a time, or a duration that is counted back from now."""
    try:
        seconds = parse_duration(text)
    except ValueError:
        return parse_time(text)
    return max(_EPOCH, datetime.now(UTC) - timedelta(seconds=seconds))


def _time_or_duration(text: str) -> datetime | timedelta:
    """Parse a time, or a duration that is counted back from the store's now."""
    try:
        return timedelta(seconds=parse_duration(text))
    except ValueError:
        return parse_time(text)


def _pair(text: str) -> tuple[str, Any]:
    """Parse a pair whose value is JSON where it can be, else text.

    >>> _pair("step=3"), _pair("plan=pro"), _pair("zip=007"), _pair('count="3"')
    (('step', 3), ('plan', 'pro'), ('zip', '007'), ('count', '3'))
    """
    name, separator, rest = text.partition("=")
    if not separator or not name:
        message = f"{text[:40]!r} is not KEY=VALUE"
        raise ValueError(message)
    try:
        value = msgspec.json.decode(rest)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return name, rest
    if isinstance(value, list | dict):
        message = f"{name[:40]}: use text, a number, true, false or null"
        raise ValueError(message)  # noqa: TRY004 (one error for every wrong value)
    return name, value


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_text: Final = _checked(text_hint, "a text of {size:,} characters cannot be stored")
_label: Final = _checked(label_hint, "{text!r} is not a valid correlation id, creator or tag")

JOB: Final = ValueType("id", parse_id)
QUEUE: Final = _named("queue", name_hint)
GATE: Final = _named("gate", name_hint)
BREAKER: Final = _named("breaker", name_hint)
BUDGET: Final = _named("budget", name_hint)
TENANT: Final = _named("tenant", tenant_hint)
TASK: Final = _named("task", task_hint)
LABEL: Final = ValueType("text", _label)
TEXT: Final = ValueType("text", _text)
REASON: Final = ValueType("text", _reason)
PAIR: Final = ValueType("KEY=VALUE", _pair)
DURATION: Final = ValueType("duration", parse_duration)
TIME: Final = ValueType("time", parse_time)
TIME_OR_AGE: Final = ValueType("time or age", _time_or_age)
TIME_OR_DURATION: Final = ValueType("time or age", _time_or_duration)
STATE: Final = click.Choice([state.value for state in State])
