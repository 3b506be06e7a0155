"""Read what is given, each value by its kind, and note everything that does not fit. Builds nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fairlane.app.config.given import Fault, Given, Path, references, resolved, shown
from fairlane.app.config.kinds import SECRET

T = TypeVar("T")


class Values:
    """The values in force, by path. Only what is in force is read: what a higher layer replaced is not."""

    def __init__(
        self, given: Mapping[Path, Given], tables: Mapping[Path, str], environ: Mapping[str, str]
    ) -> None:
        self._given = given
        self._tables = tables
        self.faults: list[Fault] = []
        self._values = {
            path: value
            for path, one in given.items()
            if one.key.kind is not SECRET  # of no use to anybody here, and so its variable need not be set
            for value in self._read(path, one, environ)
        }

    def _read(self, path: Path, one: Given, environ: Mapping[str, str]) -> list[Any]:
        names = references(one.value)
        missing = [name for name in names if name not in environ]
        if missing:
            message = f"environment variable {missing[0]} is not set"
            self.faults.append(Fault(path, message, one.source))
            return []
        try:
            return [one.key.kind.read(resolved(one.value, environ))]
        except ValueError as error:
            message = str(error) or f"it is {shown(one.value)}"
            if names:
                message = f"what ${{{names[0]}}} stands for does not fit"
            elif one.key.kind.is_secret:
                message = "it is no text"
            self.faults.append(Fault(path, message, one.source, one.key.kind.allowed))
            return []

    def at(self, *path: str) -> dict[str, Any]:
        """Give the values of a table, by key."""
        return {found[-1]: value for found, value in self._values.items() if found[:-1] == path}

    def names(self, *path: str) -> list[str]:
        """Name what stands below a table, whether or not anything is said of it."""
        depth = len(path)
        below = [*self._tables, *self._given]
        return list(dict.fromkeys(one[depth] for one in below if len(one) > depth and one[:depth] == path))

    def is_given(self, *path: str) -> bool:
        """Whether a value was given, legal or not."""
        return path in self._given

    def is_whole(self, *path: str) -> bool:
        """Whether every value that was given of a table could be read."""
        return all(one in self._values for one in self._given if one[:-1] == path)

    def source(self, *path: str) -> str:
        """Say where a value, or else its table, was given."""
        if path in self._given:
            return self._given[path].source
        below = (one.source for found, one in self._given.items() if found[: len(path)] == path)
        return self._tables.get(path) or next(below, "")

    def fault(self, path: Path, message: str, allowed: str = "") -> None:
        """Note what is wrong with a value or a table."""
        self.faults.append(Fault(path, message, self.source(*path), allowed))

    def build(self, path: Path, make: Callable[[], T], otherwise: T | None) -> T | None:
        """Make a value whose parts fit each by itself; what does not fit together is noted."""
        try:
            return make()
        except ValueError as error:
            self.fault(path, str(error))
            return otherwise
