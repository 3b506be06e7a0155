"""What the sources of a configuration say, laid over each other, and what is wrong with it. Reads no file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from fairlane.app.config.keys import TREE, Key, Named, Node
from fairlane.app.config.policy_kinds import nearest
from fairlane.model.errors import ConfigError

Path: TypeAlias = tuple[str, ...]
"""Where a value stands: ("queues", "bulk", "limits", "running")."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
_WIDTH: Final = 60


class Given(msgspec.Struct, frozen=True):
    """A value as one source gives it, not yet read; `key` says what it should be."""

    key: Key
    value: Any
    source: str


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong with a configuration."""

    path: Path
    message: str
    source: str = ""
    allowed: str = ""

    def error(self) -> ConfigError:
        """Make the error of it."""
        message = self.message if self.message.endswith("?") else f"{self.message}."
        return ConfigError(message, key=dotted(self.path), source=self.source, allowed=self.allowed)


def refuse(faults: Sequence[Fault]) -> None:
    """Raise `ConfigError` if there are any: it has the first one's key, and its message lists them all."""
    if not faults:
        return
    error = faults[0].error()
    if len(faults) > 1:
        lines = [f"  {fault.error()}" for fault in faults]
        error.args = ("\n".join([f"the configuration has {len(faults)} problems:", *lines]),)
    raise error


def dotted(path: Path) -> str:
    """Write where a value stands as a file would.

    >>> dotted(("tasks", "shop.mail", "timeout")), dotted(("tenants", "*", "weight"))
    ('tasks."shop.mail".timeout', 'tenants."*".weight')
    """
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in path)


def shown(value: object) -> str:
    """Show a value in an error, in a bounded way."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


class Sheet:
    """What one source gives, the tables it opens, and what is wrong with its keys."""

    def __init__(self) -> None:
        self.given: dict[Path, Given] = {}
        self.tables: dict[Path, str] = {}
        self.faults: list[Fault] = []

    def take(self, table: object, source: Callable[[Path], str]) -> None:
        """Take in a whole configuration; every key that is not known is noted with the nearest that is."""
        self._take(TREE, table, (), source)

    def _take(self, node: Node, value: object, path: Path, source: Callable[[Path], str]) -> None:
        if isinstance(node, Key):
            self.given[path] = Given(node, value, source(path))
        elif not isinstance(value, Mapping):
            self.faults.append(Fault(path, "it is no table", source(path)))
        else:
            self.tables[path] = source(path)
            table = cast("Mapping[Any, object]", value)
            for name, inner in table.items():
                child = self.child(node, str(name), path, source((*path, str(name))))
                if child is not None:
                    self._take(child, inner, (*path, str(name)), source)

    def child(self, node: Named | Mapping[str, Node], name: str, path: Path, source: str) -> Node | None:
        """Give what belongs under a name; None, and a fault is noted, if nothing does."""
        here = (*path, name)
        if isinstance(node, Named):
            hint = node.hint(name)
            if hint is None:
                return node.entry
            self.faults.append(Fault(here, f"{shown(name)} is no legal name of a {node.what}", source, hint))
        elif name in node:
            return node[name]
        else:
            what = "table" if not path else "key"
            message = f"there is no such {what}{nearest(name, list(node))}"
            self.faults.append(Fault(here, message, source, ", ".join(node)))
        return None


def references(value: object) -> list[str]:
    """Name the environment variables that a value refers to.

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
    """Put the variables in; KeyError for one that is not set.

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
