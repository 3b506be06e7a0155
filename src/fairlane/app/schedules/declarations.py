"""The schedules that code declares, by name. Checks what can be checked without the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.schedules.options import WORDS
from fairlane.app.schedules.reading import when_problems
from fairlane.app.task.declaration import Declaration
from fairlane.model.checking import shown
from fairlane.model.errors import ConfigError
from fairlane.model.names import name_hint


class DeclaredSchedule(msgspec.Struct, frozen=True):
    """A schedule as its decorator has it: its name, and everything that is said of it, by word."""

    name: str
    words: Mapping[str, Any]


class ScheduleRegistry:
    """The declared schedules of an application by name. Each name is unique."""

    def __init__(self) -> None:
        self._by_name: dict[str, DeclaredSchedule] = {}

    def __iter__(self) -> Iterator[DeclaredSchedule]:
        return iter(self._by_name.values())

    def add(self, *schedules: DeclaredSchedule) -> None:
        """Add schedules; none of them if one name is taken."""
        for one in schedules:
            if self._by_name.get(one.name, one) is not one:
                message = "the name is taken by another schedule; give one of the two a name="
                raise ConfigError(message, key=f"schedule {one.name}")
        self._by_name.update({one.name: one for one in schedules})


def declare_schedule(task: Declaration | None, words: Mapping[str, Any]) -> DeclaredSchedule:
    """Return a declared schedule; `ConfigError` lists what is wrong with its times.

    The rest needs the configuration: it is checked when a worker starts.
    """
    if not isinstance(task, Declaration):
        raise ConfigError("it is no task; put @app.schedule(...) above @app.task", key="schedule")
    name = words.get("name")
    chosen = task.name if name is None else name
    hint = name_hint(chosen)
    if hint is not None:
        what = f"name {shown(chosen)}" if name is not None else f"{shown(chosen)}, the name of its task,"
        raise ConfigError(f"{what} is no legal name of a schedule; {hint}, as in name=", key="schedule")
    unknown = [word for word in words if word not in {*WORDS, "name"} or word == "task"]
    if unknown:
        near = did_you_mean(unknown[0], list(WORDS))
        raise ConfigError(
            f"{unknown[0]} is not known{near}.", key=f"schedule {chosen}", allowed=", ".join(WORDS)
        )
    problems = when_problems(words)
    if problems:
        lines = "; ".join(problem.text for problem in problems)
        raise ConfigError(lines, key=f"schedule {chosen}")
    kept = {word: value for word, value in words.items() if word != "name"}
    return DeclaredSchedule(str(chosen), {**kept, "task": task.name})
