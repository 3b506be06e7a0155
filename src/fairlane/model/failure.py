"""Sort failures into classes (S27). Knows exception types, not what follows from a class."""

from __future__ import annotations

import traceback as tracebacks
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

TYPE_CHARS: Final = 200
MESSAGE_CHARS: Final = 2_000
TRACEBACK_CHARS: Final = 16_000


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
        trace = "".join(tracebacks.format_exception(error))
    except BaseException:  # noqa: BLE001 (formatting runs the error's own code)
        trace = ""
    return Failure(error_class, bounded(name, TYPE_CHARS), shown(error), _tail(trace) or None)


def shown(error: BaseException) -> str:
    """Give the error's text, bounded; an error whose own text fails is named instead.

    >>> class Mute(Exception):
    ...     def __str__(self): raise RuntimeError
    >>> shown(Mute())
    '<Mute without text>'
    """
    try:
        return bounded(str(error), MESSAGE_CHARS)
    except BaseException:  # noqa: BLE001 (a user's __str__)
        return f"<{bounded(type(error).__name__, TYPE_CHARS)} without text>"


def bounded(text: str, most: int) -> str:
    r"""Cut free text, and escape the few characters that not every store can hold: NUL, lone surrogates.

    An error's text must never be what keeps its attempt from being settled.

    >>> print(bounded("no\x00byte, no \udc80, not endless", 24))
    no\x00byte, no \udc80, n
    """
    kept = text[:most].encode("utf-8", "backslashreplace").decode()
    return kept.replace("\x00", "\\x00")[:most]


def _tail(trace: str) -> str:
    """Keep the end of a long traceback: the innermost frames and the error stand there."""
    if len(trace) > TRACEBACK_CHARS:
        trace = "...\n" + trace[-(TRACEBACK_CHARS - 4) :]
    return bounded(trace, TRACEBACK_CHARS)
