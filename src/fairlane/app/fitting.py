"""Hold the arguments of a call to the hints of its handler (S5): say what does not fit. Refuses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from fairlane.app.shapes import ANYTHING, Shape
from fairlane.model.errors import Problem
from fairlane.model.trail import Trail, path_of
from fairlane.model.writing import MOST_PROBLEMS


class Fits:
    """The parameters of one handler whose hints say something, and what they allow."""

    __slots__ = ("_checks", "_shapes")

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = {name: shape for name, shape in shapes.items() if shape is not ANYTHING}
        # Looked at for every job of a batch: no attribute is looked up but these three.
        self._checks: tuple[tuple[str, frozenset[type], Callable[[Any], bool]], ...] = tuple(
            (name, shape.quick, shape.fits) for name, shape in self._shapes.items()
        )

    def __bool__(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self._checks)

    def allow(self, arguments: Mapping[str, Any]) -> bool:
        """Whether all arguments are of the types that the hints name."""
        for name, quick, fits in self._checks:
            value = arguments[name]
            if type(value) not in quick and not fits(value):
                return False
        return True

    def problems(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """Name every value that does not fit, by its path, and what would; the first 100.

        >>> from fairlane.app.shapes import shape_of
        >>> print(*Fits({"rows": shape_of(list[int])}).problems({"rows": [1, "2"]}))
        [0] arguments.rows[1]: is of type str; give int
        """
        root: Trail = (None, "arguments")
        found = (
            Problem(0, path_of(at), shape.blame(value), f"give {shape.wanted}", "arguments")
            for name, whole in self._shapes.items()
            for at, value, shape in _misfits(arguments[name], whole, (root, name))
        )
        return list(islice(found, MOST_PROBLEMS))


def _misfits(value: Any, shape: Shape, at: Trail) -> Iterator[tuple[Trail, Any, Shape]]:
    """Go down to the innermost values that do not fit."""
    if shape.fits(value):
        return
    found = False
    for step, item, inner in shape.inside(value):
        for misfit in _misfits(item, inner, (at, step)):
            found = True
            yield misfit
    if not found:
        yield at, value, shape
