"""Inspect a handler function: its name, its parameters, its type hints. Never runs it."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property
from inspect import Parameter, Signature
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NoReturn

from fairlane.app.arguments.type_check import ArgumentCheck
from fairlane.app.arguments.type_hints import ANYTHING, Shape, shape_of, with_default
from fairlane.app.task.context import Context
from fairlane.model.errors import ConfigError
from fairlane.model.payload.enums import enums_of

_NAMED: Final = frozenset({Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY})
_CONTEXT: Final = "ctx"


class Handler:
    """A function that can handle jobs, inspected once. `signature` leaves out the context."""

    def __init__(self, func: Callable[..., Any], name: str) -> None:
        self.func = func
        self.name = name
        _refuse_generator(func, name)
        parameters = list(inspect.signature(func).parameters.values())
        self.takes_context = bool(parameters) and _is_context(func, parameters[0])
        given = parameters[1:] if self.takes_context else parameters
        for parameter in given:
            _refuse_unnamed(func, name, parameter)
        self.signature = Signature(given)
        self.is_async = inspect.iscoroutinefunction(func)
        self._names = tuple(one.name for one in given)
        self._defaults = {one.name: one.default for one in given}
        self._required = frozenset(one.name for one in given if one.default is Parameter.empty)
        self._positional = tuple(one.name for one in given if one.kind is Parameter.POSITIONAL_OR_KEYWORD)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, with defaults; TypeError as from a call."""
        if not args and tuple(kwargs) == self._names:  # the usual call, three times as fast
            return dict(kwargs)
        bound = dict(zip(self._positional, args, strict=False), **kwargs)
        is_each_once = len(bound) == len(args) + len(kwargs)
        if is_each_once and self._required <= bound.keys() <= self._defaults.keys():
            return {**self._defaults, **bound}
        raise self._bind_error(args, kwargs)

    def _bind_error(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TypeError:
        """Return the TypeError that `inspect` words; binding every call with it would take twice as long."""
        reason: object = "takes other arguments"
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = error
        return TypeError(f"{self.name}() {reason}")

    # Hints are resolved at the first enqueue, when names defined further down in the module exist.

    @cached_property
    def argument_enums(self) -> dict[str, type[Enum]]:
        """The Enum classes that arguments may hold."""
        return enums_of(self.argument_hints.values())

    @cached_property
    def argument_hints(self) -> dict[str, Any]:
        """The resolved annotations of the parameters; those that cannot be resolved are None."""
        hints = _hints(self.func)
        return {name: hints[name] for name in self.signature.parameters if name in hints}

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The values that each parameter with a hint accepts, its default included."""
        known = {name: shape_of(hint) for name, hint in self.argument_hints.items()}
        return {
            name: shape
            if (default := self._defaults[name]) is Parameter.empty
            else with_default(shape, default)
            for name, shape in known.items()
        }

    @cached_property
    def type_check(self) -> ArgumentCheck:
        """The type check of a call's arguments."""
        return ArgumentCheck(self.shapes)

    @cached_property
    def result_enums(self) -> dict[str, type[Enum]]:
        """The Enum classes that a result may hold."""
        return enums_of([_hints(self.func).get("return")])


def schema_of(handler: Handler) -> dict[str, Any]:
    """Return the JSON Schema of a handler's arguments; a hint that is not understood allows anything.

    >>> def send(to: str, pages: int = 1, days: "list[date]" = (), at: object = None) -> None: ...
    >>> schema_of(Handler(send, "send"))["properties"]
    {'to': {'type': 'string'}, 'pages': {'type': 'integer'}, 'days': {}, 'at': {}}
    """
    parameters = handler.signature.parameters
    shapes = handler.shapes
    return {
        "type": "object",
        "properties": {name: shapes.get(name, ANYTHING).schema for name in parameters},
        "required": [name for name, one in parameters.items() if one.default is Parameter.empty],
        "additionalProperties": False,
    }


def task_name_of(func: Callable[..., Any]) -> str:
    """Return the default name of a task: module and qualified name of its function.

    In a script run as `__main__`, the module is the name under which a worker would import it.
    """
    if not isinstance(func, FunctionType):
        raise ConfigError(
            f"{_shown(func)} is not a function; decorate the function that does the work", key="task"
        )
    if "<" in func.__qualname__:
        raise ConfigError(
            f"{_shown(func)} is defined inside another function or has no name, so a worker cannot find it; "
            "move it to module level, or give it a name=",
            key="task",
        )
    module = func.__module__
    return f"{_run_as(func) if module == '__main__' else module}.{func.__qualname__}"


def _run_as(func: FunctionType) -> str:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name)
    return Path(func.__code__.co_filename).stem


def _shown(func: object) -> str:
    return str(getattr(func, "__qualname__", None) or repr(func)[:80])


def _is_context(func: Callable[..., Any], parameter: Parameter) -> bool:
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD, Parameter.KEYWORD_ONLY}:
        return False
    return _names_context(_annotation(func, parameter))


def _names_context(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Context)


def _annotation(func: Callable[..., Any], parameter: Parameter) -> Any:
    hint = parameter.annotation
    if not isinstance(hint, str):
        return hint
    # Perhaps imported under TYPE_CHECKING only: then the word is all there is.
    is_the_word = hint.rpartition(".")[2] == Context.__name__
    return _resolved(func, hint, Context if is_the_word else Parameter.empty)


def _refuse_unnamed(func: Callable[..., Any], name: str, parameter: Parameter) -> None:
    if parameter.kind not in _NAMED:
        shown = str(parameter.replace(annotation=Parameter.empty, default=Parameter.empty))
        why = "a job's arguments are stored by parameter name, so each parameter needs a name"
        what = "is positional-only" if parameter.kind is Parameter.POSITIONAL_ONLY else "has no fixed names"
        _refuse(name, f"parameter {shown} {what}; {why}")
    hint = _annotation(func, parameter)
    if _names_context(hint):
        _refuse(name, f"parameter {parameter.name} is annotated Context, but the context must come first")
    if parameter.name == _CONTEXT and hint is Parameter.empty:
        wanted = f"write {_CONTEXT}: Context, and put it first"
        _refuse(name, f"parameter {_CONTEXT} has no annotation; {wanted}")


def _refuse_generator(func: Callable[..., Any], name: str) -> None:
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        _refuse(name, "the function is a generator; a handler does its work and returns")


def _refuse(name: str, message: str) -> NoReturn:
    raise ConfigError(message, key=f"task {name}")


def _hints(func: Callable[..., Any]) -> dict[str, Any]:
    """Resolve each hint on its own: one name that exists only for type checkers must not hide the others."""
    return {name: _resolved(func, hint, None) for name, hint in inspect.get_annotations(func).items()}


def _resolved(func: Callable[..., Any], hint: Any, fallback: Any) -> Any:
    # A wrapper has the annotations of the wrapped function, but not the globals that these refer to.
    names: dict[str, Any] = getattr(inspect.unwrap(func), "__globals__", {})
    probe = FunctionType((lambda: None).__code__, names)
    probe.__annotations__ = {"hint": hint}
    try:
        return typing.get_type_hints(probe, include_extras=True)["hint"]
    except (NameError, AttributeError, TypeError, SyntaxError):
        return fallback
