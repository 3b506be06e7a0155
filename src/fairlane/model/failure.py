"""Classify exceptions and record them as failures (S27). Does not know what follows from a class."""

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

MAX_FRAMES: Final = 1_000
"""Up to this many frames of an error and its causes are formatted in full, else only the innermost."""

_INNERMOST: Final = 50


class ErrorClass(StrEnum):
    """The kind of a failure; a closed set."""

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
"""The classes that are retried; with any other a job is dead at once."""

Classifier: TypeAlias = Callable[[BaseException], ErrorClass | None]
ClassMap: TypeAlias = Mapping[type[BaseException], ErrorClass]

BUILT_IN: Final[ClassMap] = {
    ConnectionError: ErrorClass.TRANSIENT,
    TimeoutError: ErrorClass.TRANSIENT,
    InterruptedError: ErrorClass.TRANSIENT,
    BlockingIOError: ErrorClass.TRANSIENT,
}


class Failure(msgspec.Struct, frozen=True):
    """The record of a failed attempt: bounded text, and the class that decides what follows.

    `fingerprint` is the same for failures with one cause; see `model.fingerprint`.
    """

    error_class: ErrorClass
    error_type: str
    message: str
    traceback: str | None = None
    fingerprint: str = ""


class ErrorBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an error is stored: characters of its message and of its traceback; 0 stores none."""

    message: int = MESSAGE_CHARS
    traceback: int = TRACEBACK_CHARS

    def cut(self, failure: Failure) -> Failure:
        """Return a failure within these bounds: the beginning of its message, the end of its traceback.

        >>> failure = Failure(ErrorClass.CRASH, "E", "too long", "line: no")
        >>> cut = ErrorBounds(message=5, traceback=4).cut(failure)
        >>> cut.message, cut.traceback
        ('too l', ': no')
        """
        trace = failure.traceback
        if len(failure.message) <= self.message and len(trace or "") <= self.traceback:
            return failure
        kept = trace[-self.traceback :] if trace is not None and self.traceback else None
        return msgspec.structs.replace(failure, message=failure.message[: self.message], traceback=kept)


class Classified(msgspec.Struct, frozen=True):
    """An error class, and what the classifier itself raised, for the caller to log."""

    error_class: ErrorClass
    classifier_error: str | None = None


def classify(error: BaseException, classifier: Classifier | None, maps: Iterable[ClassMap]) -> Classified:
    """Ask the task's classifier, then the mappings, in order.

    In a mapping the nearest base class wins. A classifier that raises or returns no class is ignored. If
    nothing matches, the failure is `retryable`.

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
        except BaseException as broken:  # noqa: BLE001 (a user's function; S27: ignored then)
            trouble = shown(broken)
    for known in maps:
        for kind in type(error).__mro__:
            if kind in known:
                return Classified(known[kind], trouble)
    return Classified(ErrorClass.RETRYABLE, trouble)


def describe(error: BaseException, error_class: ErrorClass) -> Failure:
    """Record type, message and traceback of an exception, even if its `__str__` fails.

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


def text_of(value: object, limit: int, write: Callable[[object], str] = str) -> str:
    """Return the text of any value, bounded, even if its own code fails.

    >>> text_of(ValueError("no"), 80), text_of("no", 80, repr)
    ('no', "'no'")
    """
    try:
        return bounded(write(value), limit)
    except BaseException:  # noqa: BLE001 (a user's __str__)
        return f"<{bounded(type(value).__name__, TYPE_CHARS)} without text>"


def shown(error: BaseException) -> str:
    """Return the error's text, bounded; its type instead if it has no text.

    >>> class Mute(Exception):
    ...     def __str__(self): raise RuntimeError
    >>> shown(Mute())
    '<Mute without text>'
    """
    return text_of(error, MESSAGE_CHARS)


def bounded(text: str, limit: int) -> str:
    r"""Cut free text, and escape what not every store accepts: NUL and lone surrogates.

    An error's text must never keep its attempt from being settled.

    >>> print(bounded("no\x00byte, no \udc80, not endless", 24))
    no\x00byte, no \udc80, n
    """
    escaped = text[:limit].encode("utf-8", "backslashreplace").decode()
    return escaped.replace("\x00", "\\x00")[:limit]


def _trace(error: BaseException) -> str:
    """Format an error's traceback in bounded time, however deep it is.

    Python takes fifteen seconds for a million frames, and meanwhile the caller's event loop is blocked.
    """
    if _is_modest(error):
        return "".join(tracebacks.format_exception(error))
    inner = tracebacks.format_tb(_innermost(error.__traceback__))
    return "".join(
        ["(too deep to be shown whole; its end is)\n", *inner, f"{type(error).__name__}: {shown(error)}"]
    )


def _is_modest(error: BaseException) -> bool:
    """Whether an error, its causes and its group have at most `MAX_FRAMES` frames; reads no more of them."""
    left, rest = MAX_FRAMES, [error]
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
            rest += cast("BaseExceptionGroup[BaseException]", one).exceptions[:MAX_FRAMES]
    return left > 0


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the last frames on."""
    ahead, skipped = trace, 0
    while ahead is not None:
        ahead, skipped = ahead.tb_next, skipped + 1
        if skipped > _INNERMOST and trace is not None:
            trace = trace.tb_next
    return trace


def _tail(trace: str) -> str:
    """Return the end of a long traceback: it has the innermost frames and the error."""
    if len(trace) > TRACEBACK_CHARS:
        trace = "...\n" + trace[-(TRACEBACK_CHARS - 4) :]
    return bounded(trace, TRACEBACK_CHARS)
