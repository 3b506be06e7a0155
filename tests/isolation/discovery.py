"""Find every public callable: of the public names, and of all that their types lead to."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from types import FunctionType, GenericAlias, UnionType
from typing import Any, Final

import fairlane
from fairlane import _public, testing
from fairlane.app.client import Client
from fairlane.app.config.configuration import Configuration
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration, TaskRegistry
from fairlane.app.worker_settings import WorkerSettings
from fairlane.contrib import row_security
from fairlane.worker.worker import WorkerRuntime

INTERNALS: Final = (Client, Configuration, Declaration, TaskRegistry, Settings, WorkerSettings)
"""Where public objects lead to, and what nobody is promised: who goes there has left the public names."""

ENTERING: Final = {"__enter__", "__exit__", "__aenter__", "__aexit__", "__call__", "__iter__"}


def public_callables() -> set[str]:
    """Name them all: functions, constructors, and methods as `Class.method`."""
    roots: list[Any] = [getattr(fairlane, name) for name in _public.__all__]
    roots += [WorkerRuntime, *_own_names(testing), *_own_names(row_security)]
    found: set[str] = set()
    seen: set[type] = set()
    ahead = [root for root in roots if inspect.isclass(root) or isinstance(root, FunctionType)]
    while ahead:
        one = ahead.pop()
        if isinstance(one, FunctionType):
            found.add(one.__name__)
            ahead += _types_in(_hints(one).get("return"))
        elif one not in seen and _is_ours(one):
            seen.add(one)
            found.add(one.__name__)
            for name, member in _members(one):
                found.add(f"{one.__name__}.{name}")
                ahead += _types_in(_hints(member).get("return"))
            for field, hint in _hints(one).items():  # as in `jobs: Jobs`
                ahead += [] if field.startswith("_") else _types_in(hint)
    return found


def twin_of(name: str) -> str:
    """Name the async twin: `Jobs.get` has `Jobs.aget`."""
    owner, _, verb = name.rpartition(".")
    return f"{owner}.a{verb}" if owner else f"a{verb}"


def _own_names(module: Any) -> list[Any]:
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _is_ours(kind: type) -> bool:
    is_value = issubclass(kind, BaseException | Enum)
    return kind.__module__.startswith("fairlane.") and kind not in INTERNALS and not is_value


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, _ in inspect.getmembers(kind):
        if name.startswith("_") and name not in ENTERING:
            continue
        member = inspect.getattr_static(kind, name)
        if isinstance(member, classmethod | staticmethod):
            yield name, member.__func__
        elif isinstance(member, FunctionType):
            yield name, member
        elif isinstance(member, cached_property):
            yield name, member.func
        elif isinstance(member, property) and member.fget is not None:
            yield name, member.fget


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing)
    except NameError:  # a name that only type checkers import
        return {}


def _types_in(hint: Any) -> list[type]:
    if typing.get_origin(hint) is not None or isinstance(hint, GenericAlias | UnionType):
        origin = typing.get_origin(hint)
        inner = [one for argument in typing.get_args(hint) for one in _types_in(argument)]
        return [*inner, *([origin] if inspect.isclass(origin) else [])]
    return [hint] if inspect.isclass(hint) else []
