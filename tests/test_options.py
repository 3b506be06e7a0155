"""Every option of every public constructor is checked at once: the error names it and says what is allowed.

A wrong one that is accepted is found much later, in a worker, and by every tenant. The tables here are
compared with the signatures: a new class, or a new parameter, has to say what it refuses.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_overloads

import pytest

import fairlane
from fairlane import (
    Backoff,
    Breaker,
    Budget,
    ConfigError,
    ErrorClass,
    Fail,
    Fairlane,
    FairlaneError,
    Gate,
    Lane,
    Limits,
    Outbox,
    Queue,
    Rate,
    Relay,
    Retry,
    Share,
    Snooze,
    Tasks,
    chunks,
)
from fairlane.app.task.rules import declared_rules
from fairlane.testing import Trial
from fairlane.worker.worker import WorkerRuntime


class Foreign:
    """An object of a class that nobody knows."""


class Mute:
    """One that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


ANYTHING: tuple[object, ...] = (Foreign(), Mute(), object, b"bytes", 1j)
"""Wrong for every parameter that is checked at all."""

TEXT = ("", "No Name", " ", 5, True, ["a"], None)
OPTIONAL_NAME = ("", "No Name", 5, True, ["a"])
COUNT = (0, -1, 1.5, True, "5", math.nan, [1])
FROM_ZERO = (-1, 1.5, True, "5", math.nan, [1])
DURATION = (0, -1, True, "5", math.nan, math.inf, timedelta(0), [1])
AMOUNT = (-1, True, "much", math.nan, math.inf, 1e-7, 1e12, [1], None)
NUMBER = (-1, True, "5", math.nan, [1], None)
WORD: tuple[object, ...] = ("nonsense", 5, True, None, ["jobs"], {})
FLAG: tuple[object, ...] = (1, 0, "yes", None, [])
POLICY = (3, "exponential", [1, 2], {"timeout": 3}, {"nonsense": Backoff.never()}, {5: Backoff.never()}, True)
RATE = (5, "5/m", True, {"limit": 5}, [Rate(5)])
NAMED = (5, True, ["a"], "No Name", Rate(5))
TEXTS = (5, True, "one", [5], [None], [""])

_app = Fairlane("sqlite:////nowhere/fairlane.db")


def _handler() -> None: ...


async def _coroutine(error: BaseException, failures: int) -> int:
    return 5


def _task(**options: Any) -> object:
    return Fairlane().task(**{"name": "handler", **options})(_handler)


Wrong = dict[str, tuple[object, ...]]
Made = tuple[Callable[..., object], dict[str, Any], Wrong]

TASK: Wrong = {
    "name": ("", "has space", 5, True, ["a"]),
    "aliases": TEXTS,
    "version": COUNT,
    "queue": OPTIONAL_NAME,
    "priority": (101, -101, 1.5, True, "5"),
    "timeout": (0, -1, True, "5", math.nan, math.inf, 86_401),
    "soft_timeout": (0, -1, True, "5", math.nan, math.inf, 86_401),
    "max_attempts": (0, -1, 1.5, True, "5", 1_001),
    "retry": POLICY,
    "classify": (3, "timeout", True, ErrorClass.TIMEOUT, {ValueError: ErrorClass.TIMEOUT}),
    "retry_delay": (3, "5", True, timedelta(1), Backoff(), lambda: 5, lambda error: 5, _coroutine),
    "gate": NAMED,
    "breaker": NAMED,
    "budget": NAMED,
    "rate": RATE,
    "system": FLAG,
    "at_most_once": FLAG,
    "keep_result": FLAG,
    "on_bad_result": WORD,
    "on_shutdown": WORD,
    "dedup_until": WORD,
    "isolation": WORD,
    "max_memory": ("much", -1, 1.5, True, [], "4 MB of it"),
    "sensitive": TEXTS,
    "category": OPTIONAL_NAME,
    "stuck_after": (0, -1, 0.5, True, "5", math.nan, math.inf, timedelta(0), [1], 30 * 86_400 + 1),
    "on_stuck": tuple(word for word in WORD if word is not None),
}

QUEUE: Wrong = {
    "name": TEXT,
    "timeout": DURATION,
    "max_attempts": (*COUNT, None),
    "retry": (*POLICY, None),
    "limits": ({"running": 2}, 5, None, Rate(5), "5"),
    "max_waiting": FROM_ZERO,
    "rate": RATE,
    "cost": WORD,
    "stuck_after": DURATION,
    "on_stuck": WORD,
    "color": tuple(word for word in WORD if word is not None),
}

BACKOFF: Wrong = {
    "base": (0, *NUMBER),
    "factor": (0.5, *NUMBER),
    "cap": (0, *NUMBER),
    "floor": NUMBER,
    "jitter": (1.5, *NUMBER),
}

APPLICATION: Wrong = {
    "url": (5, True, ["sqlite:///x"], Path("x")),
    "name": TEXT,
    "config": (5, True, ["x"]),
    "queues": (Queue("a"), "a", [5], ["a"], [Gate("a", 1)], {"a": Queue("a")}, 5, None),
    "lanes": (Lane("a", 1, ["q"]), "a", [5], ["a"], [Queue("a")], 5, None),
    "budgets": (Budget("a", 1, "USD"), "a", [5], ["a"], [Queue("a")], 5, None),
    "gates": (Gate("a", 1), "a", [5], ["a"], [Queue("a")], 5, None),
    "breakers": (Breaker("a"), "a", [5], ["a"], [Queue("a")], 5, None),
    "tenancy": WORD,
    "imports": ("one", [5], 5, None),
    "fixed_queues": FLAG,
    "priority": WORD,
    "priority_default": (101, -101, 1.5, True, "5", None),
    "payload": (5, True, "1MB", ["max_size"], {"max_size": 0}, {"max_size": "1MB"}, {"nonsense": 1},
                {"require": 5}, {"require": "correlation_id"}, {"require": ["nonsense"]},
                {"categories": 5}, {"categories": ["mail"]}, {"categories": {"No Name": ["a"]}},
                {"categories": {"mail": "a"}}, {"categories": {"mail": [5]}}, {"categories": None}),
    "errors": (5, True, "100", ["message"], {"nonsense": 1}, {5: 1}, {"message": 99}, {"message": 10**6},
               {"message": True}, {"message": "100"}, {"traceback": -1}, {"traceback": 1.5},
               {"traceback": 10**6}),
}  # fmt: skip

MADE: dict[str, Made] = {
    "Fairlane": (Fairlane, {}, APPLICATION),
    "Tasks": (Tasks, {}, {"prefix": ("has space", "-", 5, True, None), "queue": OPTIONAL_NAME}),
    "Queue": (Queue, {"name": "a"}, QUEUE),
    "Lane": (
        Lane,
        {"name": "a", "slots": 2, "queues": ["q"]},
        {
            "name": TEXT,
            "slots": (*COUNT, None),
            "queues": ("q", [], {}, [5], ["No Name"], ["q", "q"], 5, None, {"q": "x"}, {"q": 0}, {"q": None}),
            "order": WORD,
            "headroom": (*FROM_ZERO, 2),
            "prefetch": FROM_ZERO,
        },
    ),
    "Share": (
        Share,
        {},
        {"weight": (0, 1_001, *NUMBER), "max_slots": COUNT, "min_share": (1.5, *NUMBER)},
    ),
    "Gate": (Gate, {"name": "a", "limit": 1}, {"name": TEXT, "limit": FROM_ZERO, "rate": RATE}),
    "Breaker": (
        Breaker,
        {"name": "a"},
        {
            "name": TEXT,
            "failures": (*COUNT, 1_001, None),
            "window": (*DURATION, None),
            "open_for": (*DURATION, None),
            "per": WORD,
            "on_open": WORD,
            "ramp": (*COUNT, None),
            "errors": (5, "x", (), ValueError, [5], (KeyboardInterrupt,), None),
        },
    ),
    "Budget": (
        Budget,
        {"name": "a", "ceiling": 1, "currency": "USD"},
        {
            "name": TEXT,
            "ceiling": AMOUNT,
            "currency": ("usd", "US", 5, True, None, [1]),
            "per": WORD,
            "timezone": ("Mars", 5, True, None, [1]),
            "estimate": (2, *AMOUNT),
            "on_spent": WORD,
            "per_tenant": FLAG,
            "alert_at": (0.8, "0.8", [0], [1.5], ["much"], [None], None),
        },
    ),
    "Rate": (
        Rate,
        {"limit": 1},
        {"limit": (*COUNT, None), "per": WORD, "burst": (*COUNT, None)},
    ),
    "Limits": (
        Limits,
        {},
        {"waiting": FROM_ZERO, "on_full": WORD, "running": FROM_ZERO, "rate": RATE},
    ),
    "Backoff": (
        Backoff,
        {},
        {**BACKOFF, "steps": (5, "5", [1, 2], ("1",), (-1,), (None,), (math.inf,), (True,))},
    ),
    "Backoff.exponential": (Backoff.exponential, {}, BACKOFF),
    "Outbox": (Outbox, {"app": _app}, {"app": (5, None, Tasks()), "paramstyle": WORD}),
    "Relay": (
        Relay,
        {"app": _app, "connect": _handler},
        {
            "app": (5, None, Tasks()),
            "connect": (5, None, "sqlite:///x"),
            "paramstyle": WORD,
            "poll": (*DURATION, None),
            "batch": (*COUNT, 1_001, None),
        },
    ),
    "Trial": (
        Trial,
        {"app": _app},
        {"app": (5, None, Tasks()), "url": (5, True), "at": (5, "today", datetime(2026, 1, 1))},  # noqa: DTZ001
    ),
    "WorkerRuntime": (
        WorkerRuntime,
        {"app": _app},
        {
            "app": (5, None, Tasks()),
            "lanes": ("main", 5, [5], ["nobody"], [Queue("a")]),
            "burst": FLAG,
            "duties": (1, 0, "yes", []),
            "settings": ({"lease": 5}, 5, "quick"),
            "resources": ({"kind": 5}, 5, True, "all", [object]),
            "paused": FLAG,
        },
    ),
    "Retry": (Retry, {}, {"after": (-1, True, "soon", [5]), "error_class": WORD}),
    "Snooze": (Snooze, {"delay": 5}, {"delay": (0, -1, True, "5", None, math.nan, math.inf, timedelta(0))}),
    "Fail": (Fail, {}, {"error_class": WORD}),
    "chunks": (lambda **options: list(chunks(**options)), {"items": [1]}, {"size": (*COUNT, None)}),
    "task": (_task, {}, TASK),
}
"""By public name: how to make one, what it cannot be made without, and what each parameter refuses."""

UNCHECKED = {
    ("Retry", "reason"): "anything, as its text",
    ("Snooze", "reason"): "anything, as its text",
    ("Fail", "reason"): "anything, as its text",
    ("chunks", "items"): "whatever can be iterated over",
    ("WorkerRuntime", "clock"): "a protocol, for tests",
    ("WorkerRuntime", "observer"): "a protocol, for supervised workers",
}

NOT_MADE_BY_USERS = [
    "Attempt",
    "Call",
    "Cancel",
    "CancelReply",
    "Context",
    "Counts",
    "Duration",
    "ErrorClass",
    "Audit",
    "AuditEntry",
    "AuditProblem",
    "AuditReport",
    "BreakerOpen",
    "BreakerView",
    "Breakers",
    "BulkResult",
    "ForcedBreaker",
    "DeadGroup",
    "DeadLetters",
    "DeadLetterView",
    "DeadNote",
    "DeadStatistics",
    "EventView",
    "Events",
    "NewToken",
    "RateView",
    "RefusedLetter",
    "RetryReport",
    "Role",
    "Schedules",
    "ScheduleView",
    "ScheduleEdit",
    "SchedulePreview",
    "SlotView",
    "Session",
    "Sessions",
    "SharedQueue",
    "SlotHolder",
    "TaskRetries",
    "EventData",
    "EventDecorator",
    "FailureReport",
    "ReportedDuties",
    "History",
    "ExportResult",
    "ImportResult",
    "DutyView",
    "BudgetAccount",
    "BudgetView",
    "Budgets",
    "GateView",
    "SpendView",
    "Gates",
    "Held",
    "Job",
    "Jobs",
    "Json",
    "LaneStatus",
    "Outcome",
    "Overridden",
    "Page",
    "Problem",
    "Progress",
    "PublishedTask",
    "PublishedTasks",
    "QueueShare",
    "QueueStats",
    "QueueView",
    "Queues",
    "RetryPolicy",
    "SYSTEM",
    "Skip",
    "SlotStatus",
    "SoftTimeout",
    "State",
    "Task",
    "TaskDecorator",
    "TaskFailures",
    "TaskVersion",
    "Token",
    "Tokens",
    "Trace",
    "TracedJob",
    "Tenant",
    "TenantShare",
    "TenantShares",
    "Tenants",
    "User",
    "Users",
    "Waiting",
    "Worker",
    "WorkerLane",
    "WorkerStatus",
    "Workers",
    "current_job",
    "current_tenant",
]
"""Handed out, words and types, or without anything that could be wrong."""


def _signature(name: str) -> inspect.Signature:
    if name == "task":
        return inspect.signature(get_overloads(Tasks.task)[-1])
    if name == "chunks":
        return inspect.signature(chunks)
    return inspect.signature(MADE[name][0])


def _is_error(name: str) -> bool:
    kind = getattr(fairlane, name)
    return isinstance(kind, type) and issubclass(kind, FairlaneError)


def test_every_public_constructor_is_here() -> None:
    """A new one must say what it refuses."""
    known = {*MADE, *NOT_MADE_BY_USERS}
    assert [name for name in fairlane._public.__all__ if name not in known and not _is_error(name)] == []


@pytest.mark.parametrize("name", MADE)
def test_every_parameter_of_a_constructor_is_here(name: str) -> None:
    """A new one must say what it refuses."""
    parameters = {one for one in _signature(name).parameters if one != "self"}
    unchecked = {parameter for owner, parameter in UNCHECKED if owner == name}
    assert parameters - unchecked == set(MADE[name][2])


def _cases() -> Iterator[Any]:
    for name, (_, _, wrong) in MADE.items():
        for field, values in wrong.items():
            for number, value in enumerate((*ANYTHING, *values)):
                yield pytest.param(name, field, value, id=f"{name}-{field}-{number}")


@pytest.mark.parametrize(("name", "field", "value"), list(_cases()))
def test_a_wrong_option_is_refused_where_it_is_given(name: str, field: str, value: object) -> None:
    """With its name; an outcome's is the handler's error, any other a `ConfigError`."""
    make, needed, _ = MADE[name]
    if (name, field) == ("task", "classify") and callable(value):
        return  # any function may be a classifier
    if (name, field) == ("Relay", "connect") and callable(value):
        return
    expected = ValueError if name in {"Retry", "Snooze", "Fail", "chunks"} else ConfigError
    with pytest.raises(expected) as caught:
        make(**{**needed, field: value})
    words = {"delay": ("nooze",), "queues": ("queue", "weight")}.get(field, (field,))
    assert any(word in str(caught.value) for word in words)
    assert len(str(caught.value)) < 500


def test_the_options_that_once_stopped_a_worker_are_refused() -> None:
    """Each was accepted, and met by a worker when the first handler failed, or at its start."""
    for policy in (3, "exponential", [1, 2]):
        with pytest.raises(ConfigError, match=r"task handler: retry must be a Backoff"):
            _task(retry=policy)
    for option, value in {"queue": 5, "classify": 3, "rate": 5, "gate": 5}.items():
        with pytest.raises(ConfigError, match=option):
            _task(**{option: value})


def test_the_policies_that_once_stopped_a_worker_are_refused() -> None:
    """The same of a queue, which speaks for every task in it."""
    with pytest.raises(ConfigError, match="retry must be a Backoff"):
        Queue("mail", retry=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="limits must be Limits"):
        Queue("mail", limits={"running": 2})  # type: ignore[arg-type]


def test_backoff_delays_are_checked_one_by_one() -> None:
    """They have no names of their own."""
    for wrong in (-1, True, "5", math.nan, math.inf, None, Foreign()):
        with pytest.raises(ConfigError, match="steps of a Backoff"):
            Backoff.delays(1, wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="jitter of a Backoff"):
        Backoff.delays(1, jitter="much")  # type: ignore[arg-type]


# ── what fits alone, and not together ────────────────────────────────────────


def test_a_soft_timeout_above_the_timeout_is_refused() -> None:
    """Nobody would ever hear of it."""
    with pytest.raises(ConfigError, match=r"task handler: soft_timeout is 20 s, above its timeout, 10 s"):
        _task(timeout=10, soft_timeout=20)
    _task(timeout=10, soft_timeout=10)
    _task(timeout=None, soft_timeout=20)
    _task(soft_timeout=20)


@pytest.mark.parametrize(
    ("options", "config", "words"),
    [
        (
            {"soft_timeout": 20},
            {"queues": {"default": {"timeout": 10}}},
            "the timeout of queue default, 10 s",
        ),
        ({"soft_timeout": 7_200}, {}, "the timeout of queue default, 1800 s"),
        ({"timeout": 30, "soft_timeout": 20}, {"tasks": {"handler": {"timeout": 10}}}, "its timeout, 10 s"),
        ({"timeout": 30}, {"tasks": {"handler": {"soft_timeout": 40}}}, "its timeout, 30 s"),
    ],
)
def test_a_soft_timeout_is_compared_with_what_is_in_force(
    options: dict[str, Any], config: dict[str, Any], words: str
) -> None:
    """The queue's timeout, and what the configuration lays over, are known when a worker starts."""
    app = Fairlane("sqlite:////nowhere/fairlane.db", config=config)
    app.task(name="handler", **options)(_handler)
    with pytest.raises(ConfigError, match=words):
        declared_rules(app)
