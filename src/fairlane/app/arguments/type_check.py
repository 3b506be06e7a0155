"""Check the arguments of a call against the type hints of its handler (S5). Reports; raises nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from fairlane.app.arguments.type_hints import ANYTHING, Shape
from fairlane.model.errors import Problem
from fairlane.model.payload.paths import Trail, path_of
from fairlane.model.payload.writing import MAX_PROBLEMS


class ArgumentCheck:
    """The type check of one handler's parameters, of those whose hints are understood."""

    __slots__ = ("_checks", "_shapes")

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = {name: shape for name, shape in shapes.items() if shape is not ANYTHING}
        # Read for every job of a batch: a tuple of these three saves attribute lookups.
        self._checks: tuple[tuple[str, frozenset[type], Callable[[Any], bool]], ...] = tuple(
            (name, shape.fast_types, shape.fits) for name, shape in self._shapes.items()
        )

    def __bool__(self) -> bool:
        """Whether there is anything to check."""
        return bool(self._checks)

    def allow(self, arguments: Mapping[str, Any]) -> bool:
        """Whether all arguments match their hints."""
        for name, fast_types, fits in self._checks:
            value = arguments[name]
            if type(value) not in fast_types and not fits(value):
                return False
        return True

    def problems(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Return a problem with path and expected type for each value that does not fit; at most 100.

        >>> from fairlane.app.arguments.type_hints import shape_of
        >>> print(*ArgumentCheck({"rows": shape_of(list[int])}).problems({"rows": [1, "2"]}))
        [0] arguments.rows[1]: is of type str; give int
        """
        root: Trail = (None, "arguments")
        found = (
            Problem(0, path_of(at), shape.problem(value), f"give {shape.wanted}", "arguments")
            for name, whole in self._shapes.items()
            for at, value, shape in _misfits(arguments[name], whole, (root, name))
        )
        return list(islice(found, MAX_PROBLEMS))


def _misfits(value: Any, shape: Shape, at: Trail) -> Iterator[tuple[Trail, Any, Shape]]:
    """Yield the innermost values that do not fit."""
    if shape.fits(value):
        return
    found = False
    for step, item, inner in shape.inside(value):
        for misfit in _misfits(item, inner, (at, step)):
            found = True
            yield misfit
    if not found:
        yield at, value, shape
