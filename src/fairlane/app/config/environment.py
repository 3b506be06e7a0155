"""What FAIRLANE_* variables say: one underscore inside a word, two between the levels of a key.

`FAIRLANE_WORKER__LEASE=20` is `worker.lease`. Names of queues and the like are found whatever their case and
punctuation, since a shell cannot spell them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlane.app.config.given import Fault, Given, Path, Sheet
from fairlane.app.config.keys import TREE, Key, Named, Node
from fairlane.app.config.kinds import Kind
from fairlane.app.config.policy_kinds import nearest

PREFIX: Final = "FAIRLANE_"
CONFIG: Final = "FAIRLANE_CONFIG"

_SHORT: Final[Mapping[str, Path]] = {
    "FAIRLANE_URL": ("app", "url"),
    "FAIRLANE_NAMESPACE": ("app", "namespace"),
    "FAIRLANE_APP": ("app", "import"),
}
_NOT_OURS: Final = re.compile(r"FAIRLANE_(TEST_.*|FAULTS|SEED|MACHINE_RUNS)")
"""What the project's own tests are steered by."""


def read_environment(environ: Mapping[str, str], known: Iterable[Path]) -> Sheet:
    """Take every FAIRLANE_* variable in; `known` are the paths that code and file speak of."""
    sheet = Sheet()
    paths = set(known)
    for name in sorted(environ):
        if name.startswith(PREFIX) and name != CONFIG and not _NOT_OURS.fullmatch(name):
            _take(sheet, name, environ[name], paths)
    return sheet


def from_text(kind: Kind, text: str) -> Any:
    """Read a text from outside: as it stands where texts are meant, else as a TOML value.

    >>> from fairlane.app.config.kinds import TEXT, count
    >>> from_text(count(1), "20"), from_text(TEXT, "20")
    (20, '20')
    """
    if kind.is_text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text  # its kind will refuse it


def _take(sheet: Sheet, name: str, text: str, known: set[Path]) -> None:
    node: Node = TREE
    path: Path = ()
    for part in _SHORT.get(name) or name.removeprefix(PREFIX).lower().split("__"):
        if isinstance(node, Key):
            sheet.faults.append(Fault((*path, part), "there is nothing below this key", name))
            return
        if not path and part not in TREE:
            sheet.faults.append(_unknown(name))
            return
        spelled = _spelled(sheet, name, part, path, known) if isinstance(node, Named) else part
        child = sheet.child(node, spelled, path, name)
        if child is None:
            return
        node, path = child, (*path, spelled)
    if not isinstance(node, Key):
        message = "it names a table, not a key"
        sheet.faults.append(Fault(path, message, name, f"{name}__KEY for one of its keys"))
        return
    sheet.given[path] = Given(node, from_text(node.kind, text), name)


def _unknown(name: str) -> Fault:
    first, *rest = name.split("__")
    heads = [PREFIX + table.upper() for table in TREE]
    words = [*_SHORT, CONFIG, *heads] if not rest else heads
    allowed = f"{', '.join([CONFIG, *_SHORT])}, and {PREFIX}TABLE__KEY"
    return Fault((), f"{name} is no variable of Fairlane{nearest(first, words)}", "the environment", allowed)


def _spelled(sheet: Sheet, variable: str, part: str, path: Path, known: set[Path]) -> str:
    """Find the name that is meant: one that code or file uses, or else the part as it stands."""
    names = {one[len(path)] for one in known if len(one) > len(path) and one[: len(path)] == path}
    meant = sorted(name for name in names if _plain(name) == _plain(part))
    if len(meant) > 1:
        message = f"it could mean {' or '.join(meant)}"
        sheet.faults.append(Fault((*path, part), message, variable, "this one in the file"))
    return meant[0] if meant else part


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", name.lower())
