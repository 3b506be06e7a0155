"""Suggest what to write instead of a name from another job library, or of a misspelt option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.enqueue.call import Options

FOREIGN_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delay", "send", "defer", "kiq"), "enqueue(...)"),
    **dict.fromkeys(("defer_async", "asend"), "aenqueue(...)"),
    **dict.fromkeys(("apply_async", "send_with_options"), "using(tenant=..., delay=...).enqueue(...)"),
    **dict.fromkeys(("configure", "kicker"), "using(...)"),
    **dict.fromkeys(("s", "si", "signature", "message"), "bind(...)"),
    **dict.fromkeys(("apply", "fn", "call_local"), "func(...), which runs it here"),
}
"""Attributes of tasks in other libraries, and what to write here."""

_OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("countdown", "defer_by", "schedule_in", "wait"), "delay"),
    **dict.fromkeys(("eta", "at", "schedule_at", "defer_until", "wait_until"), "run_at"),
    **dict.fromkeys(("expires", "ttl", "max_age"), "expires_in"),
    **dict.fromkeys(("retries", "max_retries"), "max_attempts"),
    **dict.fromkeys(("task_id", "job_id", "key", "idempotent_key"), "idempotency_key"),
    **dict.fromkeys(("unique", "unique_key", "debounce_key"), "dedup_key"),
    **dict.fromkeys(("time_limit", "job_timeout"), "timeout"),
    **dict.fromkeys(("queue_name", "routing_key"), "queue"),
}
"""Options of other libraries, and their names here."""


def called(task: str) -> str:
    """Return the error of a task that was called like a function."""
    return (
        f"task {task} is not called: write .enqueue(...) to store a job of it, "
        "or .func(...) to run its function here, as a unit test does"
    )


class ForeignName:
    """An attribute that tasks of other libraries have: reading it raises what to write here."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, task: object, owner: type | None = None) -> NoReturn:
        """Raise AttributeError with the suggestion."""
        message = f"a task has no {self._name}; write .{FOREIGN_NAMES[self._name]}"
        raise AttributeError(message)


def options(unknown: Iterable[str]) -> str:
    """Return the error for unknown options, with a suggestion for each.

    >>> print(options(["tennant"]))
    there is no option tennant; did you mean 'tenant'?
    >>> print(options(["countdown", "colour"]))
    there is no option countdown; write delay, nor colour
    """
    known = [field for field in Options.__struct_fields__ if field != "batch_key"]
    hints = (
        f"{name}; write {_OPTIONS[name]}" if name in _OPTIONS else f"{name}{did_you_mean(name, known)}"
        for name in unknown
    )
    return f"there is no option {', nor '.join(hints)}"
