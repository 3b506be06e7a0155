"""The breakers, budgets and gates of an application: those of its settings and those of decorators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, TypeAlias, TypeVar

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.task.declaration import Declaration
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Breaker, Budget, Gate

Kind: TypeAlias = Literal["breaker", "budget", "gate"]
"""What a task may name of it, one of each: also the name of the option."""

R = TypeVar("R", Breaker, Budget, Gate)

_SO: Final[Mapping[Kind, str]] = {
    "breaker": "nothing would open it",
    "budget": "it would bound nothing",
    "gate": "it would limit nothing",
}


def collected(kind: Kind, configured: Iterable[R], tasks: Iterable[Declaration]) -> dict[str, R]:
    """Return the rules of a kind by name, of settings and decorators; the settings win.

    `ConfigError` if two tasks declare one name with different values.
    """
    settings = {one.name: one for one in configured}
    found: dict[str, R] = {}
    for task in tasks:
        one: R | str | None = getattr(task, kind)
        if one is None or isinstance(one, str) or one.name in settings:
            continue
        if found.setdefault(one.name, one) != one:
            message = f"{kind} {one.name} is declared twice with different values"
            raise ConfigError(message, key=f"task {task.name}")
    return {**settings, **found}


def refuse_undeclared(kind: Kind, name: str, declared: Collection[str], where: str) -> None:
    """Raise `ConfigError`, which names those that there are, unless this one is declared."""
    if name not in declared:
        near = did_you_mean(name, list(declared))
        message = f"{kind} {name} is not declared, so {_SO[kind]}{near}"
        raise ConfigError(message, key=where, allowed=", ".join(declared))


def named_by(task: Declaration, kind: Kind, declared: Collection[str]) -> str | None:
    """Return the name of what a task names of a kind; `ConfigError` if that is not declared."""
    one: Breaker | Budget | Gate | str | None = getattr(task, kind)
    name = one if one is None or isinstance(one, str) else one.name
    if name is not None:
        refuse_undeclared(kind, name, declared, f"task {task.name}")
    return name
