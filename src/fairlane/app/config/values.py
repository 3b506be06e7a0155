"""Read the given values by their kinds, and collect every problem. Builds no settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fairlane.app.config.sources import ConfigProblem, GivenValue, Path, references, resolved, shown

T = TypeVar("T")


class ConfigValues:
    """The given values by path. A value that a higher layer replaces is not read, so it cannot be wrong."""

    def __init__(
        self, given: Mapping[Path, GivenValue], tables: Mapping[Path, str], environ: Mapping[str, str]
    ) -> None:
        self._given = given
        self._tables = tables
        self.problems: list[ConfigProblem] = []
        self._values = {
            path: value for path, one in given.items() for value in self._read(path, one, environ)
        }

    def _read(self, path: Path, one: GivenValue, environ: Mapping[str, str]) -> list[Any]:
        names = references(one.value)
        missing = [name for name in names if name not in environ]
        if missing:
            message = f"environment variable {missing[0]} is not set"
            self.problems.append(ConfigProblem(path, message, one.source))
            return []
        try:
            return [one.key.kind.read(resolved(one.value, environ))]
        except ValueError as error:
            message = str(error) or f"it is {shown(one.value)}"
            if names:
                message = f"the value of ${{{names[0]}}} is not allowed"
            elif one.key.kind.is_secret:
                message = str(error) or "it is not text"
            self.problems.append(ConfigProblem(path, message, one.source, one.key.kind.allowed))
            return []

    def at(self, *path: str) -> dict[str, Any]:
        """Return the values of a table by key."""
        return {found[-1]: value for found, value in self._values.items() if found[:-1] == path}

    def names(self, *path: str) -> list[str]:
        """Return the names below a table, also those of empty tables."""
        depth = len(path)
        below = [*self._tables, *self._given]
        return list(dict.fromkeys(one[depth] for one in below if len(one) > depth and one[:depth] == path))

    def is_given(self, *path: str) -> bool:
        """Whether a value was given, legal or not."""
        return path in self._given

    def is_whole(self, *path: str) -> bool:
        """Whether every given value of a table could be read."""
        return all(one in self._values for one in self._given if one[:-1] == path)

    def source(self, *path: str) -> str:
        """Return the source of a value, or else of its table."""
        if path in self._given:
            return self._given[path].source
        below = (one.source for found, one in self._given.items() if found[: len(path)] == path)
        return self._tables.get(path) or next(below, "")

    def problem(self, path: Path, message: str, allowed: str = "") -> None:
        """Add a problem of a value or a table."""
        self.problems.append(ConfigProblem(path, message, self.source(*path), allowed))

    def build(self, path: Path, make: Callable[[], T], fallback: T | None) -> T | None:
        """Return what `make` builds; if its parts do not fit together, add a problem, return `fallback`."""
        try:
            return make()
        except ValueError as error:
            self.problem(path, str(error))
            return fallback
