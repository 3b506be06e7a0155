"""Read FAIRLANE_* environment variables: one underscore inside a word, two between the levels of a key.

`FAIRLANE_WORKER__LEASE=20` is `worker.lease`. Names of queues and the like match regardless of case and
punctuation, since variable names have neither.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlane.app.acting import ACTOR
from fairlane.app.config.keys import TREE, Key, NamedEntries, Node
from fairlane.app.config.sources import ConfigLayer, ConfigProblem, GivenValue, Path
from fairlane.app.config.value_kinds import ValueKind
from fairlane.app.did_you_mean import did_you_mean

PREFIX: Final = "FAIRLANE_"
CONFIG: Final = "FAIRLANE_CONFIG"

_SHORT: Final[Mapping[str, Path]] = {
    "FAIRLANE_URL": ("app", "url"),
    "FAIRLANE_APP": ("app", "import"),
    "FAIRLANE_AUDIT_KEY": ("audit", "key"),
}
_NOT_OURS: Final = re.compile(r"FAIRLANE_(TEST_.*|FAULTS|SEED|MACHINE_RUNS)")
"""Variables of the project's own tests."""


def read_environment(environ: Mapping[str, str], known: Iterable[Path]) -> ConfigLayer:
    """Return the values of all FAIRLANE_* variables; `known` are the paths used by code and file."""
    layer = ConfigLayer()
    paths = set(known)
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in {CONFIG, ACTOR} and not _NOT_OURS.fullmatch(name):
            _take(layer, name, environ[name], paths)
    return layer


def from_text(kind: ValueKind, text: str) -> Any:
    """Return a text from outside as it is where the key takes text, else as a TOML value.

    >>> from fairlane.app.config.value_kinds import TEXT, count
    >>> from_text(count(1), "20"), from_text(TEXT, "20")
    (20, '20')
    """
    if kind.is_text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text  # the key's kind refuses it


def _take(layer: ConfigLayer, name: str, text: str, known: set[Path]) -> None:
    node: Node = TREE
    path: Path = ()
    for part in _SHORT.get(name) or name.removeprefix(PREFIX).lower().split("__"):
        if isinstance(node, Key):
            layer.problems.append(ConfigProblem((*path, part), "there is nothing below this key", name))
            return
        if not path and part not in TREE:
            layer.problems.append(_unknown(name))
            return
        spelled = _spelled(layer, name, part, path, known) if isinstance(node, NamedEntries) else part
        child = layer.child(node, spelled, path, name)
        if child is None:
            return
        node, path = child, (*path, spelled)
    if not isinstance(node, Key):
        message = "it names a table, not a key"
        layer.problems.append(ConfigProblem(path, message, name, f"{name}__KEY for one of its keys"))
        return
    layer.given[path] = GivenValue(node, from_text(node.kind, text), name)


def _unknown(name: str) -> ConfigProblem:
    first, *rest = name.split("__")
    heads = [PREFIX + table.upper() for table in TREE]
    candidates = [*_SHORT, CONFIG, ACTOR, *heads] if not rest else heads
    allowed = f"{', '.join([CONFIG, *_SHORT, ACTOR])}, and {PREFIX}TABLE__KEY"
    return ConfigProblem(
        (), f"{name} is not a Fairlane variable{did_you_mean(first, candidates)}", "the environment", allowed
    )


def _spelled(layer: ConfigLayer, variable: str, part: str, path: Path, known: set[Path]) -> str:
    """Return the name that is meant: one that code or file uses, or else the part as it is."""
    names = {one[len(path)] for one in known if len(one) > len(path) and one[: len(path)] == path}
    matches = sorted(name for name in names if _plain(name) == _plain(part))
    if len(matches) > 1:
        message = f"it could mean {' or '.join(matches)}"
        layer.problems.append(ConfigProblem((*path, part), message, variable, "this one in the file"))
    return matches[0] if matches else part


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.lower())
