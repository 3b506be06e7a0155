"""The values that a configuration source gives, and the problems of its keys. Reads no file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from fairlane.app.config.keys import TREE, Key, NamedEntries, Node
from fairlane.app.did_you_mean import did_you_mean
from fairlane.model.errors import ConfigError

Path: TypeAlias = tuple[str, ...]
"""The place of a value: ("queues", "bulk", "limits", "running")."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
_WIDTH: Final = 60


class GivenValue(msgspec.Struct, frozen=True):
    """A raw value from one source; `key` describes what it should be."""

    key: Key
    value: Any
    source: str


class ConfigProblem(msgspec.Struct, frozen=True):
    """One problem of a configuration."""

    path: Path
    message: str
    source: str = ""
    allowed: str = ""

    def error(self) -> ConfigError:
        """Return the error of this problem alone."""
        message = self.message if self.message.endswith("?") else f"{self.message}."
        return ConfigError(message, key=dotted(self.path), source=self.source, allowed=self.allowed)


def refuse(problems: Sequence[ConfigProblem]) -> None:
    """Raise `ConfigError` if there are problems: its key is the first one's, its message lists them all."""
    if not problems:
        return
    error = problems[0].error()
    if len(problems) > 1:
        lines = [f"  {problem.error()}" for problem in problems]
        error.args = ("\n".join([f"the configuration has {len(problems)} problems:", *lines]),)
    raise error


def dotted(path: Path) -> str:
    """Return the dotted name of a value, as a file would write it.

    >>> dotted(("tasks", "shop.mail", "timeout")), dotted(("tenants", "*", "weight"))
    ('tasks."shop.mail".timeout', 'tenants."*".weight')
    """
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in path)


def shown(value: object) -> str:
    """Return a bounded text of a value, for errors."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


class ConfigLayer:
    """The values of one source, the tables it opens, and the problems of its keys."""

    def __init__(self) -> None:
        self.given: dict[Path, GivenValue] = {}
        self.tables: dict[Path, str] = {}
        self.problems: list[ConfigProblem] = []

    def take(self, table: object, source: Callable[[Path], str]) -> None:
        """Add a whole configuration; each unknown key is a problem that suggests the closest known key."""
        self._take(TREE, table, (), source)

    def _take(self, node: Node, value: object, path: Path, source: Callable[[Path], str]) -> None:
        if isinstance(node, Key):
            self.given[path] = GivenValue(node, value, source(path))
        elif not isinstance(value, Mapping):
            self.problems.append(ConfigProblem(path, "it is not a table", source(path)))
        else:
            self.tables[path] = source(path)
            table = cast("Mapping[Any, object]", value)
            for name, inner in table.items():
                child = self.child(node, str(name), path, source((*path, str(name))))
                if child is not None:
                    self._take(child, inner, (*path, str(name)), source)

    def child(
        self, node: NamedEntries | Mapping[str, Node], name: str, path: Path, source: str
    ) -> Node | None:
        """Return the node for a name; None, with a problem added, if there is none."""
        here = (*path, name)
        if isinstance(node, NamedEntries):
            hint = node.hint(name)
            if hint is None:
                return node.entry
            self.problems.append(
                ConfigProblem(here, f"{shown(name)} is not a legal {node.what} name", source, hint)
            )
        elif name in node:
            return node[name]
        else:
            what = "table" if not path else "key"
            message = f"there is no such {what}{did_you_mean(name, list(node))}"
            self.problems.append(ConfigProblem(here, message, source, ", ".join(node)))
        return None


def references(value: object) -> list[str]:
    """Return the names of the environment variables that a value refers to.

    >>> references(["${HOME}/x", {"a": "${USER}"}, 5])
    ['HOME', 'USER']
    """
    match value:
        case str():
            return _REFERENCE.findall(value)
        case list():
            items = cast("list[object]", value)
        case Mapping():
            items = list(cast("Mapping[str, object]", value).values())
        case _:
            return []
    return [name for item in items for name in references(item)]


def resolved(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a value with its variables replaced; KeyError for one that is not set.

    >>> resolved(["${A}-${B}", 1], {"A": "x", "B": "y"})
    ['x-y', 1]
    """
    match value:
        case str():
            return _REFERENCE.sub(lambda found: environ[found[1]], value)
        case list():
            return [resolved(item, environ) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case Mapping():
            table = cast("Mapping[str, Any]", value)
            return {name: resolved(item, environ) for name, item in table.items()}
        case _:
            return value
