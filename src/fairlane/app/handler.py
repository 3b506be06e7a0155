"""What a function must be to handle jobs: its name, its parameters, its types. Runs nothing of it."""

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

from fairlane.app.context import Context
from fairlane.app.fitting import Fits
from fairlane.app.shapes import Shape, shape_of, with_default
from fairlane.model.enums import enums_of
from fairlane.model.errors import ConfigError

_NAMED: Final = frozenset({Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY})
_CONTEXT: Final = "ctx"


class Handler:
    """A function that can handle jobs, taken apart once. `signature` is without the context."""

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
        self._usual = {one.name: one.default for one in given}
        self._required = frozenset(one.name for one in given if one.default is Parameter.empty)
        self._placed = tuple(one.name for one in given if one.kind is Parameter.POSITIONAL_OR_KEYWORD)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Give each argument its parameter's name, defaults filled in; TypeError as from a call."""
        if not args and tuple(kwargs) == self._names:  # most calls: a third of the time of the way below
            return dict(kwargs)
        bound = dict(zip(self._placed, args, strict=False), **kwargs)
        is_each_once = len(bound) == len(args) + len(kwargs)
        if is_each_once and self._required <= bound.keys() <= self._usual.keys():
            return {**self._usual, **bound}
        raise self._misfit(args, kwargs)

    def _misfit(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TypeError:
        """Let `inspect` say what does not fit; to ask it for every call would take twice as long."""
        reason: object = "takes other arguments"
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = error
        return TypeError(f"{self.name}() {reason}")

    # Hints are resolved at the first enqueue: names that a module defines further down are there by then.

    @cached_property
    def argument_enums(self) -> dict[str, type[Enum]]:
        """The Enum classes that arguments may hold."""
        return enums_of(self.argument_hints.values())

    @cached_property
    def argument_hints(self) -> dict[str, Any]:
        """The annotations of the parameters that have one, as far as they can be resolved."""
        hints = _hints(self.func)
        return {name: hints[name] for name in self.signature.parameters if name in hints}

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """What each parameter with a hint takes, by the hint and its default."""
        known = {name: shape_of(hint) for name, hint in self.argument_hints.items()}
        return {
            name: shape if (usual := self._usual[name]) is Parameter.empty else with_default(shape, usual)
            for name, shape in known.items()
        }

    @cached_property
    def fits(self) -> Fits:
        """Hold a call to the hints."""
        return Fits(self.shapes)

    @cached_property
    def result_enums(self) -> dict[str, type[Enum]]:
        """The Enum classes that a result may hold."""
        return enums_of([_hints(self.func).get("return")])


def name_of(func: Callable[..., Any]) -> str:
    """Derive a task's name: its module and its own name.

    For a script that is run, the module is what a worker would import it as, so that both agree.
    """
    if not isinstance(func, FunctionType):
        raise ConfigError(
            f"{_shown(func)} is no function; decorate the function that does the work", key="task"
        )
    if "<" in func.__qualname__:
        raise ConfigError(
            f"{_shown(func)} is inside another function or has no name, so it has no place to be found at; "
            "move it to the module's level, or give it a name=",
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
    # Imported for the type checker alone, perhaps: then the word is all there is.
    is_the_word = hint.rpartition(".")[2] == Context.__name__
    return _resolved(func, hint, Context if is_the_word else Parameter.empty)


def _refuse_unnamed(func: Callable[..., Any], name: str, parameter: Parameter) -> None:
    if parameter.kind not in _NAMED:
        shown = str(parameter.replace(annotation=Parameter.empty, default=Parameter.empty))
        why = "a job's arguments are stored by parameter name, so each needs a name of its own"
        what = "is positional-only" if parameter.kind is Parameter.POSITIONAL_ONLY else "has no fixed names"
        _refuse(name, f"parameter {shown} {what}; {why}")
    hint = _annotation(func, parameter)
    if _names_context(hint):
        _refuse(name, f"parameter {parameter.name} is annotated Context, but the context must come first")
    if parameter.name == _CONTEXT and hint is Parameter.empty:
        wanted = f"write {_CONTEXT}: Context, and put it first"
        _refuse(name, f"parameter {_CONTEXT} has no annotation that says what it is; {wanted}")


def _refuse_generator(func: Callable[..., Any], name: str) -> None:
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        _refuse(name, "the function yields; a handler does its work and returns")


def _refuse(name: str, message: str) -> NoReturn:
    raise ConfigError(message, key=f"task {name}")


def _hints(func: Callable[..., Any]) -> dict[str, Any]:
    """Resolve what hints can be resolved; one name that only a type checker sees must not hide the others."""
    return {name: _resolved(func, hint, None) for name, hint in inspect.get_annotations(func).items()}


def _resolved(func: Callable[..., Any], hint: Any, otherwise: Any) -> Any:
    # A decorator's wrapper has the annotations of what it wraps, but not the names that these use.
    names: dict[str, Any] = getattr(inspect.unwrap(func), "__globals__", {})
    probe = FunctionType((lambda: None).__code__, names)
    probe.__annotations__ = {"hint": hint}
    try:
        return typing.get_type_hints(probe, include_extras=True)["hint"]
    except (NameError, AttributeError, TypeError, SyntaxError):
        return otherwise
