"""Sort failures into classes (S27). Knows exception types, not what follows from a class."""

from __future__ import annotations

import traceback as tracebacks
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Final, TypeAlias, cast

import msgspec

TYPE_CHARS: Final = 200
MESSAGE_CHARS: Final = 2_000
REASON_CHARS: Final = 2_000
TRACEBACK_CHARS: Final = 16_000

MOST_FRAMES: Final = 1_000
"""Frames of an error and its causes that are formatted as Python does; of more only the innermost are."""

_INNERMOST: Final = 50


class ErrorClass(StrEnum):
    """What kind of failure it was; the set is closed."""

    TRANSIENT = "transient"
    RETRYABLE = "retryable"
    RATE_LIMITED = "rate_limited"
    NON_RETRYABLE = "non_retryable"
    TIMEOUT = "timeout"
    CRASH = "crash"
    STUCK = "stuck"
    BUDGET = "budget"
    UNDECODABLE = "undecodable"
    UNKNOWN_TASK = "unknown_task"


RETRIED: Final = frozenset(
    {
        ErrorClass.TRANSIENT,
        ErrorClass.RETRYABLE,
        ErrorClass.RATE_LIMITED,
        ErrorClass.TIMEOUT,
        ErrorClass.CRASH,
    }
)
"""The classes that get another attempt; the others are dead at once."""

Classifier: TypeAlias = Callable[[BaseException], ErrorClass | None]
ClassMap: TypeAlias = Mapping[type[BaseException], ErrorClass]

BUILT_IN: Final[ClassMap] = {
    ConnectionError: ErrorClass.TRANSIENT,
    TimeoutError: ErrorClass.TRANSIENT,
    InterruptedError: ErrorClass.TRANSIENT,
    BlockingIOError: ErrorClass.TRANSIENT,
}


class Failure(msgspec.Struct, frozen=True):
    """What is kept of a failed attempt: bounded text, and the class that decides what follows."""

    error_class: ErrorClass
    error_type: str
    message: str
    traceback: str | None = None


class Classified(msgspec.Struct, frozen=True):
    """A class, and what the classifier itself raised, for the caller to log."""

    error_class: ErrorClass
    classifier_error: str | None = None


def classify(error: BaseException, classifier: Classifier | None, maps: Iterable[ClassMap]) -> Classified:
    """Ask the task's classifier, then the mappings of task, queue, application and built-in.

    In a mapping the nearest ancestor wins. A classifier that raises, or answers with no class, counts as
    silent. If nobody speaks, the failure is `retryable`.

    >>> classify(ConnectionResetError(), None, [BUILT_IN]).error_class.value
    'transient'
    >>> classify(KeyError("x"), lambda e: ErrorClass.NON_RETRYABLE, []).error_class.value
    'non_retryable'
    """
    trouble = None
    if classifier is not None:
        try:
            answer = classifier(error)
            if answer is not None:
                return Classified(ErrorClass(answer))
        except BaseException as broken:  # noqa: BLE001 (a user's function; S27: it then counts as silent)
            trouble = shown(broken)
    for known in maps:
        for kind in type(error).__mro__:
            if kind in known:
                return Classified(known[kind], trouble)
    return Classified(ErrorClass.RETRYABLE, trouble)


def describe(error: BaseException, error_class: ErrorClass) -> Failure:
    """Keep type, message and traceback of an exception, whatever its `__str__` does.

    >>> describe(ValueError("no such page"), ErrorClass.RETRYABLE).message
    'no such page'
    """
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        trace = _trace(error)
    except BaseException:  # noqa: BLE001 (formatting runs the error's own code)
        trace = ""
    return Failure(error_class, bounded(name, TYPE_CHARS), shown(error), _tail(trace) or None)


def text_of(value: object, most: int, write: Callable[[object], str] = str) -> str:
    """Give the text of anything, bounded, whatever its own code does.

    >>> text_of(ValueError("no"), 80), text_of("no", 80, repr)
    ('no', "'no'")
    """
    try:
        return bounded(write(value), most)
    except BaseException:  # noqa: BLE001 (a user's __str__)
        return f"<{bounded(type(value).__name__, TYPE_CHARS)} without text>"


def shown(error: BaseException) -> str:
    """Give the error's text, bounded; an error whose own text fails is named instead.

    >>> class Mute(Exception):
    ...     def __str__(self): raise RuntimeError
    >>> shown(Mute())
    '<Mute without text>'
    """
    return text_of(error, MESSAGE_CHARS)


def bounded(text: str, most: int) -> str:
    r"""Cut free text, and escape the few characters that not every store can hold: NUL, lone surrogates.

    An error's text must never be what keeps its attempt from being settled.

    >>> print(bounded("no\x00byte, no \udc80, not endless", 24))
    no\x00byte, no \udc80, n
    """
    kept = text[:most].encode("utf-8", "backslashreplace").decode()
    return kept.replace("\x00", "\\x00")[:most]


def _trace(error: BaseException) -> str:
    """Write an error's traceback in a time that does not depend on how deep it was.

    A million frames take Python fifteen seconds to format, and whoever calls this serves nobody meanwhile.
    """
    if _is_modest(error):
        return "".join(tracebacks.format_exception(error))
    inner = tracebacks.format_tb(_innermost(error.__traceback__))
    return "".join(
        ["(too deep to be shown whole; its end is)\n", *inner, f"{type(error).__name__}: {shown(error)}"]
    )


def _is_modest(error: BaseException) -> bool:
    """Whether an error, its causes and what is grouped in it have few frames; looks at no more than these."""
    left, rest = MOST_FRAMES, [error]
    seen: set[int] = set()
    while rest and left > 0:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        left -= 1
        trace = one.__traceback__
        while trace is not None and left > 0:
            trace, left = trace.tb_next, left - 1
        rest += [other for other in (one.__cause__, one.__context__) if other is not None]
        if isinstance(one, BaseExceptionGroup):
            rest += cast("BaseExceptionGroup[BaseException]", one).exceptions[:MOST_FRAMES]
    return left > 0


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    """Skip all but the last frames."""
    ahead, skipped = trace, 0
    while ahead is not None:
        ahead, skipped = ahead.tb_next, skipped + 1
        if skipped > _INNERMOST and trace is not None:
            trace = trace.tb_next
    return trace


def _tail(trace: str) -> str:
    """Keep the end of a long traceback: the innermost frames and the error stand there."""
    if len(trace) > TRACEBACK_CHARS:
        trace = "...\n" + trace[-(TRACEBACK_CHARS - 4) :]
    return bounded(trace, TRACEBACK_CHARS)
