"""Check the shape of the tree: layers, a pure model, one home for dangerous words, small files.

Each check is a function from source text to findings, so that tests can show it bad sources and it must
object. Knows no test framework and changes nothing.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "src" / "fairlane"

LAYERS: Final = (
    ("model",),
    ("store.contract",),
    ("store",),
    ("store.sqlite", "store.postgres", "store.redis"),
    ("runtime",),
    ("app",),
    ("outbox",),
    ("face",),  # the public names
    ("",),  # fairlane/__init__.py, which loads them
    ("duties",),
    ("worker",),  # it does the duties beside its jobs; they know no worker
    ("stage",),  # real workers and what was seen of them, for the two below
    ("demo", "bench"),
    ("web",),
    ("cli",),
    ("__main__",),  # `python -m fairlane`
    ("contrib",),
    ("testing",),
)
"""Each entry imports only itself and entries of lines above. A new package is refused until it is listed."""

RANK: Final = {entry: rank for rank, line in enumerate(LAYERS) for entry in line}

# fmt: off
PURE_MODULES: Final = frozenset({
    "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "hmac", "inspect",
    "itertools", "json", "math", "msgspec", "operator", "pathlib", "random", "re", "string", "struct",
    "types", "typing", "unicodedata", "uuid", "zlib", "zoneinfo",
})
# fmt: on
"""All that `fairlane.model` may import besides itself."""

PURE_EXCEPTIONS: Final = {
    ("fairlane.model.failure", "traceback"): "formats an exception that is already there; decides nothing",
}

IMPURE: Final = re.compile(
    r"""(datetime\.)?datetime\.(now|utcnow|today) | (datetime\.)?date\.today
    | random\.(?!Random\b)\w+ | pathlib\.(?!Pure)\w+ | uuid\.(uuid[1-8]|getnode)
    | open | input | print | exec | eval | breakpoint | __import__""",
    re.VERBOSE,
)
"""Dotted names that read a clock, draw at random or touch the world; the model gets these as arguments."""

HOMES: Final[dict[str, tuple[str, ...]]] = {
    # SQLite asks its busy handler to wait, in the thread that it has called. A loop gives others their turn.
    "sleep": ("fairlane.runtime.clock", "fairlane.runtime.loops", "fairlane.store.sqlite.connect"),
    # A hint to other processes is sent after the verb that gives it has answered.
    "create_task": ("fairlane.runtime.loops", "fairlane.store.postgres.post"),
    "utcnow": (),
    # The first runs the application's classifier and `__str__`, the second carries what a verb raised from
    # its thread to its caller, the third makes an ending of whatever a handler raises, the relay outlasts
    # whatever the application's database library raises, the duties outlast a fault in one of them. The
    # endings outlast a result's own code, the
    # floor settles the attempt around which anything was raised, the salvage the one that a store could not
    # take, the report outlasts the application's log handlers. A handler that ends in `raise` swallows
    # nothing and may stand anywhere.
    "except Exception": (
        "fairlane.model.failure",
        "fairlane.store.sqlite.writer",
        "fairlane.worker.run",
        "fairlane.worker.endings",
        "fairlane.worker.floor",
        "fairlane.worker.salvage",
        "fairlane.worker.report",
        "fairlane.outbox.relay",
        "fairlane.duties.duties",
    ),
}
"""The modules in which each of these may stand, each with its reason."""

LONGEST_FILE: Final = 400
NAMELESS: Final = frozenset({"utils", "util", "helpers", "common", "misc", "base"})
UNSAFE: Final = frozenset({"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"})


class Source(NamedTuple):
    """A module's full name and its text."""

    module: str
    text: str

    def found(self, line: int, what: str) -> str:
        """Word one finding."""
        return f"{self.module}:{line}: {what}"


def sources(*folders: Path) -> Iterator[Source]:
    """Read every Python file below these folders, named from src or from the root."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            start = ROOT / "src" if folder == PACKAGE else ROOT
            parts = path.relative_to(start).with_suffix("").parts
            yield Source(".".join(parts).removesuffix(".__init__"), path.read_text(encoding="utf-8"))


def entry_of(module: str) -> str | None:
    """Name the entry of `LAYERS` that a module belongs to; None if it is in none."""
    _, *parts = module.split(".")
    pair = ".".join(parts[:2])
    if pair in RANK:
        return pair
    first = parts[0] if parts else ""
    return first if first in RANK else None


def imports(tree: ast.AST) -> Iterator[tuple[int, str, int]]:
    """Give line, full dotted target and relative level of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (node.lineno, f"{node.module or ''}.{alias.name}", node.level) for alias in node.names
            )


def layer_findings(source: Source) -> list[str]:
    """Find relative imports, imports from a layer below, and modules in no layer."""
    own = entry_of(source.module)
    # Modules lie directly in store; a package inside it is an entry of its own.
    if own is None or (
        own == "store" and len(source.module.split(".")) > len(("fairlane", "store", "opening"))
    ):
        return [source.found(1, "is in no layer; list it in LAYERS")]
    findings = []
    for line, target, level in imports(ast.parse(source.text)):
        if level:
            findings.append(source.found(line, "relative import; spell the full name"))
        elif target.split(".")[0] == "fairlane":
            # `from fairlane import Queue` takes a name of the face, `from fairlane import model` a package.
            other = entry_of(target) or ("" if target.count(".") == 1 else None)
            if other is None:
                findings.append(source.found(line, f"imports {target}, which is in no layer"))
            elif other != own and RANK[other] >= RANK[own]:
                findings.append(source.found(line, f"imports {target}, which is not above it"))
    return findings


def purity_findings(source: Source) -> list[str]:
    """Find what a pure module must not import or name, also under another name."""
    tree = ast.parse(source.text)
    findings = []
    for line, target, _ in imports(tree):
        top = target.split(".")[0]
        if top != "fairlane" and top not in PURE_MODULES and (source.module, top) not in PURE_EXCEPTIONS:
            findings.append(source.found(line, f"imports {top}; the model is pure"))
    origins = dict(_origins(tree))
    for node in ast.walk(tree):
        name = _dotted(node, origins)
        if name and IMPURE.fullmatch(name):
            findings.append(source.found(getattr(node, "lineno", 0), f"names {name}; pass the value in"))
    return findings


def _origins(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Map each name bound by an import to what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _dotted(node: ast.AST, origins: dict[str, str]) -> str | None:
    """Spell `a.b.c` with `a` replaced by what it was imported from; None for anything else."""
    if isinstance(node, ast.Name):
        return origins.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value, origins)
        return inner and f"{inner}.{node.attr}"
    return None


def homeless_findings(source: Source) -> list[str]:
    """Find the words of `HOMES` outside their one home."""
    return [
        source.found(line, f"{word} belongs in {' or '.join(HOMES[word]) or 'no module'} alone")
        for word, line in marked(source.text)
        if source.module not in HOMES[word]
    ]


def marked(text: str) -> Iterator[tuple[str, int]]:
    """Give each use of a word of `HOMES` in code, with its line; comments and strings do not count."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in HOMES:
            yield token.string, token.start[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or _dotted(kind, {}) in {"Exception", "BaseException"} for kind in kinds):
                yield "except Exception", node.lineno


def unsafe_findings(source: Source) -> list[str]:
    """Find imports of modules that run code while reading data."""
    return [
        source.found(line, f"imports {target}; payloads are JSON, never pickles")
        for line, target, _ in imports(ast.parse(source.text))
        if UNSAFE & set(target.split("."))
    ]


def form_findings(source: Source) -> list[str]:
    """Find modules without a docstring, and names that answer no "why open me?"."""
    # An empty file in the tests only marks a folder as a package; in the package, the face is documented.
    is_marker = not source.text and source.module.split(".")[0] == "tests"
    has_docstring = is_marker or ast.get_docstring(ast.parse(source.text))
    findings = [] if has_docstring else [source.found(1, "has no docstring")]
    if NAMELESS & set(source.module.split(".")):
        findings.append(source.found(1, "is named after nothing; name it after its noun"))
    return findings


def length_findings(name: str, text: str) -> list[str]:
    """Find a file in which a second noun has moved in."""
    lines = text.count("\n")
    return [f"{name}: {lines} lines; which second noun moved in?"] if lines > LONGEST_FILE else []


def all_findings(check: Callable[[Source], list[str]], *folders: Path) -> str:
    """Run a check over folders; the findings, one a line."""
    return "\n".join(finding for source in sources(*folders) for finding in check(source))
