"""Sort failures into classes (S27). Knows exception types, not what follows from a class."""

from __future__ import annotations

import traceback as tracebacks
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

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
    """Ask the task's classifier, then each mapping (task, queue, application, built-in), then say `retryable`.

    In a mapping the nearest ancestor wins. A classifier that raises counts as silent.

    >>> classify(ConnectionResetError(), None, [BUILT_IN]).error_class.value
    'transient'
    >>> classify(KeyError("x"), lambda e: ErrorClass.NON_RETRYABLE, []).error_class.value
    'non_retryable'
    """
    trouble = None
    if classifier is not None:
        try:
            answer = classifier(error)
        except Exception as broken:  # noqa: BLE001 (a user's function; S27 says that it then counts as silent)
            trouble = shown(broken)
        else:
            if answer is not None:
                return Classified(ErrorClass(answer))
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
    except Exception:  # noqa: BLE001 (formatting runs the error's own code)
        trace = None
    return Failure(error_class, name[:200], shown(error)[:MESSAGE_CHARS], trace and _tail(trace))


def shown(error: BaseException) -> str:
    """Give the error's text; an error whose own text fails is named instead.

    >>> class Mute(Exception):
    ...     def __str__(self): raise RuntimeError
    >>> shown(Mute())
    '<Mute without text>'
    """
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (a user's __str__)
        return f"<{type(error).__name__} without text>"


def _tail(trace: str) -> str:
    """Keep the end of a long traceback: the innermost frames and the error stand there."""
    return trace if len(trace) <= TRACEBACK_CHARS else "...\n" + trace[-(TRACEBACK_CHARS - 4) :]
