"""Failures are sorted into a closed set of classes, and described whatever the error does (S27, S28)."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.model.failure import (
    BUILT_IN,
    MESSAGE_CHARS,
    RETRIED,
    TRACEBACK_CHARS,
    TYPE_CHARS,
    Classified,
    Classifier,
    ClassMap,
    ErrorClass,
    bounded,
    classify,
    describe,
    shown,
)

CLASSES = {
    "transient": True,
    "retryable": True,
    "rate_limited": True,
    "timeout": True,
    "crash": True,
    "non_retryable": False,
    "stuck": False,
    "budget": False,
    "undecodable": False,
    "unknown_task": False,
}


def test_the_classes_are_closed_and_five_are_retried() -> None:
    """Adding a class means deciding whether it is retried."""
    assert {one.value: one in RETRIED for one in ErrorClass} == CLASSES


def _deep(depth: int) -> RecursionError:
    """Raise through so many frames."""

    def sink(left: int) -> None:
        if not left:
            message = "deep"
            raise RecursionError(message)
        sink(left - 1)

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 1_000)
    try:
        sink(depth)
    except RecursionError as error:
        return error
    finally:
        sys.setrecursionlimit(before)
    raise AssertionError


def _chained(links: int) -> BaseException:
    last = ValueError("link 0")
    for number in range(1, links):
        error = ValueError(f"link {number}")
        error.__context__ = last
        last = error
    return last


@pytest.mark.parametrize(
    "error",
    [_deep(20_000), _chained(20_000), ExceptionGroup("all", [ValueError(f"{n}") for n in range(20_000)])],
    ids=["frames", "causes", "members"],
)
def test_an_error_without_end_is_described_by_its_innermost_frames(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would format every frame: of a recursion through millions for minutes, and serve nobody."""
    seen: list[int] = []
    real = traceback.FrameSummary

    def summary(*args: Any, **named: Any) -> traceback.FrameSummary:
        seen.append(1)
        return real(*args, **named)

    monkeypatch.setattr(traceback, "FrameSummary", summary)
    found = describe(error, ErrorClass.RETRYABLE)
    assert len(seen) <= 100
    assert "too deep to be shown whole" in str(found.traceback)
    assert str(found.traceback).endswith(f"{type(error).__name__}: {error}")


def test_a_traceback_of_usual_depth_is_python_s_own() -> None:
    """With its causes, also if one of them is its own cause in the end."""
    error = _deep(200)
    error.__cause__ = ValueError("first")
    error.__cause__.__context__ = error
    trace = str(describe(error, ErrorClass.RETRYABLE).traceback)
    assert "too deep" not in trace
    assert "direct cause" in trace


# ── order ────────────────────────────────────────────────────────────────────

LEVELS: list[ClassMap] = [
    {ValueError: ErrorClass.RATE_LIMITED},
    {ValueError: ErrorClass.NON_RETRYABLE},
    {ValueError: ErrorClass.BUDGET},
    {ValueError: ErrorClass.TRANSIENT},
]


@pytest.mark.parametrize("speaking", range(4))
def test_the_most_specific_mapping_that_speaks_decides(speaking: int) -> None:
    """Task, then queue, then application, then built-in: silent ones are passed over."""
    silent: list[ClassMap] = [{KeyError: ErrorClass.STUCK}] * speaking
    found = classify(ValueError(), None, [*silent, *LEVELS[speaking:]])
    assert found == Classified(LEVELS[speaking][ValueError])


def test_the_classifier_is_asked_before_any_mapping() -> None:
    """Its word beats even the task's own mapping, and it sees the error itself."""
    seen: list[BaseException] = []

    def classifier(error: BaseException) -> ErrorClass:
        seen.append(error)
        return ErrorClass.TIMEOUT

    error = ValueError()
    assert classify(error, classifier, LEVELS) == Classified(ErrorClass.TIMEOUT)
    assert seen == [error]


def test_a_silent_classifier_leaves_the_word_to_the_mappings() -> None:
    """None means that it has nothing to say."""
    assert classify(ValueError(), lambda _: None, LEVELS) == Classified(ErrorClass.RATE_LIMITED)


def test_a_classifier_may_answer_with_the_plain_word() -> None:
    """The class comes back as one of the set."""
    answer: Any = "budget"
    found = classify(ValueError(), lambda _: answer, [])
    assert found.error_class is ErrorClass.BUDGET


def raising(error: BaseException) -> Classifier:
    """Make a classifier that raises."""

    def classifier(_: BaseException) -> NoReturn:
        raise error

    return classifier


class Mute(Exception):  # noqa: N818 (it says nothing)
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError

    def __repr__(self) -> str:
        """Fail."""
        raise RuntimeError


@pytest.mark.parametrize(
    ("broken", "trouble"),
    [
        (RuntimeError("no such table"), "no such table"),
        (SystemExit("bye"), "bye"),
        (KeyboardInterrupt(), ""),
        (Mute(), "<Mute without text>"),
        (RuntimeError("x" * 10**6), "x" * MESSAGE_CHARS),
    ],
)
def test_a_classifier_that_raises_counts_as_silent_and_can_be_logged(
    broken: BaseException, trouble: str
) -> None:
    """The mappings decide as if there were no classifier; what it raised is stored, up to a limit."""
    assert classify(ValueError(), raising(broken), LEVELS) == Classified(ErrorClass.RATE_LIMITED, trouble)
    assert classify(ValueError(), raising(broken), []) == Classified(ErrorClass.RETRYABLE, trouble)


@pytest.mark.parametrize("answer", ["nonsense", 7, "", True, object(), ["transient"]])
def test_an_answer_that_is_no_class_counts_as_silent_too(answer: Any) -> None:
    """A classifier's mistake never keeps an attempt from being settled."""
    found = classify(ValueError(), lambda _: answer, LEVELS)
    assert found.error_class is ErrorClass.RATE_LIMITED
    assert "is not a valid ErrorClass" in str(found.classifier_error)


class Reset(ConnectionError):  # noqa: N818 (as libraries name theirs)
    """A subclass of something built-in."""


class LateReset(Reset):
    """A subclass of that."""


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({}, ErrorClass.RETRYABLE),
        ({ConnectionError: ErrorClass.TRANSIENT}, ErrorClass.TRANSIENT),
        ({OSError: ErrorClass.BUDGET, ConnectionError: ErrorClass.TRANSIENT}, ErrorClass.TRANSIENT),
        ({ConnectionError: ErrorClass.TRANSIENT, OSError: ErrorClass.BUDGET}, ErrorClass.TRANSIENT),
        ({Reset: ErrorClass.RATE_LIMITED, ConnectionError: ErrorClass.BUDGET}, ErrorClass.RATE_LIMITED),
        ({LateReset: ErrorClass.STUCK, Reset: ErrorClass.RATE_LIMITED}, ErrorClass.STUCK),
        ({Exception: ErrorClass.NON_RETRYABLE}, ErrorClass.NON_RETRYABLE),
        ({BaseException: ErrorClass.NON_RETRYABLE}, ErrorClass.NON_RETRYABLE),
        ({ValueError: ErrorClass.NON_RETRYABLE}, ErrorClass.RETRYABLE),
    ],
)
def test_the_nearest_ancestor_in_a_mapping_wins(mapping: ClassMap, expected: ErrorClass) -> None:
    """Not the first entry, and never a sibling."""
    assert classify(LateReset(), None, [mapping]).error_class is expected


def test_a_distant_ancestor_at_the_task_beats_the_class_itself_at_the_queue() -> None:
    """Levels come first, nearness only inside a level."""
    found = classify(LateReset(), None, [{OSError: ErrorClass.BUDGET}, {LateReset: ErrorClass.STUCK}])
    assert found.error_class is ErrorClass.BUDGET


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(), "transient"),
        (BrokenPipeError(), "transient"),
        (TimeoutError(), "transient"),
        (InterruptedError(), "transient"),
        (BlockingIOError(), "transient"),
        (FileNotFoundError(), "retryable"),
        (PermissionError(), "retryable"),
        (ValueError(), "retryable"),
        (MemoryError(), "retryable"),
        (RecursionError(), "retryable"),
        (SystemExit(1), "retryable"),
        (KeyboardInterrupt(), "retryable"),
        (GeneratorExit(), "retryable"),
        (asyncio.CancelledError(), "retryable"),
        (BaseExceptionGroup("several", [SystemExit()]), "retryable"),
    ],
)
def test_what_nobody_mapped_has_its_built_in_class(error: BaseException, expected: str) -> None:
    """Trouble with connections is transient, all else retryable, `BaseException`s too (S28)."""
    assert classify(error, None, [BUILT_IN]).error_class.value == expected


# ── descriptions ─────────────────────────────────────────────────────────────


def caught(error: BaseException, depth: int = 0) -> BaseException:
    """Return the error a traceback."""

    def fall(left: int) -> NoReturn:
        if left:
            fall(left - 1)
        raise error

    try:
        fall(depth)
    except BaseException as thrown:  # noqa: BLE001 (any error is a case)
        return thrown


def test_a_failure_keeps_type_message_traceback_and_class() -> None:
    """What an operator needs to see of an attempt (seed B, CP3.4)."""
    failure = describe(caught(ValueError("no such page")), ErrorClass.TRANSIENT)
    assert failure.error_class is ErrorClass.TRANSIENT
    assert failure.error_type == "ValueError"
    assert failure.message == "no such page"
    assert failure.traceback is not None
    assert failure.traceback.startswith("Traceback (most recent call last):")
    assert failure.traceback.endswith("ValueError: no such page\n")


def test_a_type_from_a_module_is_named_with_it() -> None:
    """Two libraries may both have a `Reset`."""
    assert describe(Reset(), ErrorClass.RETRYABLE).error_type == f"{__name__}.Reset"


def test_the_cause_of_an_error_is_in_its_traceback() -> None:
    """`raise … from …` shows both."""
    error = caught(ValueError("second"))
    error.__cause__ = KeyError("first")
    trace = describe(error, ErrorClass.RETRYABLE).traceback
    assert trace is not None
    assert "KeyError: 'first'" in trace
    assert "direct cause" in trace


class Vicious(Exception):  # noqa: N818 (it attacks)
    """An error that ends the process from wherever it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        """Leave, if the formatter asks for notes."""
        if name == "__notes__":
            raise SystemExit
        return super().__getattribute__(name)

    def __str__(self) -> str:
        """Leave."""
        raise SystemExit

    def __repr__(self) -> str:
        """Leave."""
        raise SystemExit


class Numeric(Exception):  # noqa: N818 (its text is none)
    """An error whose text is no text."""

    def __str__(self) -> str:
        """Return a number."""
        return 7  # type: ignore[return-value]  # noqa: PLE0307 (that is the point)


class Deep(Exception):  # noqa: N818 (it never ends)
    """An error whose text needs its text."""

    def __str__(self) -> str:
        """Go round in circles."""
        return f"{self}"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Mute(), "<Mute without text>"),
        (Vicious(), "<Vicious without text>"),
        (Numeric(), "<Numeric without text>"),
        (Deep(), "<Deep without text>"),
        (ValueError(Mute()), "<ValueError without text>"),
        (type("x" * 999, (Mute,), {})(), f"<{'x' * TYPE_CHARS} without text>"),
        (ValueError(), ""),
    ],
)
def test_an_error_whose_own_text_fails_is_named_instead(error: BaseException, message: str) -> None:
    """Describing a failure never fails."""
    assert shown(error) == message
    assert describe(caught(error), ErrorClass.RETRYABLE).message == message


def test_a_traceback_that_cannot_be_had_is_left_out() -> None:
    """The rest of the failure is stored."""
    failure = describe(Vicious(), ErrorClass.RETRYABLE)
    assert failure.traceback is None
    assert failure.error_type.endswith("Vicious")


def test_a_text_of_a_foreign_type_is_kept_as_plain_text() -> None:
    """Stores know `str`, not what a library made of it."""

    class Fancy(str):
        __slots__ = ()

    failure = describe(ValueError(Fancy("boom")), ErrorClass.RETRYABLE)
    assert type(failure.message) is str


def test_everything_that_is_kept_is_bounded() -> None:
    """A failure of any size costs a bounded number of bytes, however many attempts fail."""
    monster = type("T" * 5_000, (ValueError,), {})("m" * 10**6)
    failure = describe(caught(monster, depth=300), ErrorClass.RETRYABLE)
    assert (TYPE_CHARS, MESSAGE_CHARS, TRACEBACK_CHARS) == (200, 2_000, 16_000)
    assert len(failure.error_type) == TYPE_CHARS
    assert failure.message == "m" * MESSAGE_CHARS
    assert failure.traceback is not None
    assert len(failure.traceback) == TRACEBACK_CHARS


def test_of_a_long_traceback_the_end_is_kept() -> None:
    """The innermost frames and the error stand there."""

    def chain(length: int) -> Iterator[BaseException]:
        before: BaseException | None = None
        for number in range(length):
            error = caught(ValueError(f"number {number} {'x' * 200}"))
            error.__cause__ = before
            before = error
            yield error

    *_, last = chain(200)
    trace = describe(last, ErrorClass.RETRYABLE).traceback
    assert trace is not None
    assert len(trace) == TRACEBACK_CHARS
    assert trace.startswith("...\n")
    assert trace.endswith(f"number 199 {'x' * 200}\n")


@pytest.mark.parametrize("length", [TRACEBACK_CHARS - 200, TRACEBACK_CHARS, TRACEBACK_CHARS * 3])
def test_a_traceback_full_of_odd_characters_stays_bounded(length: int) -> None:
    """Escapes are longer than what they stand for."""
    trace = describe(ValueError("\x00" * length), ErrorClass.RETRYABLE).traceback
    assert trace is not None
    assert len(trace) <= TRACEBACK_CHARS
    assert "\x00" not in trace


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("naïve 日本語 🚚", "naïve 日本語 🚚"),
        ("line\nbreak\ttab", "line\nbreak\ttab"),
        ("a\x00b", "a\\x00b"),
        ("\ud800", "\\ud800"),
        ("a\udcffb", "a\\udcffb"),
        ("", ""),
    ],
)
def test_text_that_a_store_cannot_hold_is_escaped(text: str, kept: str) -> None:
    """NUL and lone surrogates, and nothing else: an error's text never keeps an attempt from settling."""
    assert bounded(text, 100) == kept
    failure = describe(caught(ValueError(text)), ErrorClass.RETRYABLE)
    assert failure.message == kept


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=[])), st.integers(0, 30))
def test_bounded_text_can_be_stored_and_is_no_longer_than_asked(text: str, limit: int) -> None:
    """For every text that Python can make."""
    kept = bounded(text, limit)
    assert len(kept) <= limit
    assert "\x00" not in kept
    kept.encode()
