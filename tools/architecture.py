"""Check the architecture: layers, a pure model, one place for dangerous words, small files.

Each check is a function from source text to findings, so that tests can show it bad sources. Knows no test
framework and changes nothing.
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
    ("diagnosis",),  # what `doctor` looks at: by hand, and as a duty
    ("outbox",),
    ("_public",),  # the public names
    ("",),  # fairlane/__init__.py, which loads them
    ("supervisor",),  # imports no application; `worker` has the other end of its protocol
    ("duties",),
    ("worker",),  # it does the duties beside its jobs; they know no worker
    ("lab",),  # the laboratory, which nothing above knows:
    ("lab.ledger",),  # what a run recorded
    ("lab.history",),  # whether the records keep the promises; pure, as the model is
    ("lab.workload",),  # runs with real workers, for the two below
    ("lab.bench", "lab.demo"),
    ("web",),
    ("cli",),
    ("__main__",),  # `python -m fairlane`
    ("contrib",),
    ("testing",),
)
"""Each entry imports only itself and entries of earlier lines. A new package must be listed."""

RANK: Final = {entry: rank for rank, line in enumerate(LAYERS) for entry in line}

PURE_ENTRIES: Final = frozenset({"model", "lab.ledger", "lab.history"})
"""What decides from its arguments alone: no clock, no chance, no file."""

# fmt: off
PURE_MODULES: Final = frozenset({
    "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "cronsim",
    "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq",
    "hmac", "inspect", "itertools", "json", "math", "msgspec", "operator", "pathlib", "random", "re",
    "string", "struct", "types", "typing", "unicodedata", "uuid", "zlib", "zoneinfo",
})
# fmt: on
"""All that a module of `PURE_ENTRIES` may import besides Fairlane."""

PURE_EXCEPTIONS: Final = {
    ("fairlane.model.failure", "traceback"): "formats an exception that is already there; decides nothing",
}

IMPURE: Final = re.compile(
    r"""(datetime\.)?datetime\.(now|utcnow|today) | (datetime\.)?date\.today
    | random\.(?!Random\b)\w+ | pathlib\.(?!Pure)\w+ | uuid\.(uuid[1-8]|getnode)
    | open | input | print | exec | eval | breakpoint | __import__""",
    re.VERBOSE,
)
"""Names that read a clock, draw random numbers or touch the outside; the model gets these as arguments."""

HOMES: Final[dict[str, tuple[str, ...]]] = {
    # SQLite asks its busy handler to wait, in the thread that it has called. A loop gives others their turn.
    "sleep": ("fairlane.runtime.clock", "fairlane.runtime.loops", "fairlane.store.sqlite.connection"),
    # A hint to other processes is sent after the verb that gives it has answered.
    "create_task": ("fairlane.runtime.loops", "fairlane.store.postgres.notify_batcher"),
    "utcnow": (),
    # The first runs the application's classifier and `__str__`, `own_delay` a task's `retry_delay`, `threads`
    # carries what a verb raised from its thread to its caller, `resources` closes the others if one raises.
    # In the worker, `execute` and `dispatch` settle the attempt around which anything was raised,
    # `run_handler` and `soft_timeout` carry what a handler raised to where it is read, `child.main` does
    # both in a child process, `results` outlasts the code of a returned value, `settle` finds the settlement
    # that a store raises on, `report` outlasts the application's log handlers, `inspector` what a dump meets.
    # The relay outlasts whatever the application's database library raises, the duties an error in one of
    # them, the web application answers whatever its handlers raise. An `except` that ends in `raise` swallows
    # nothing and may stand anywhere.
    "except Exception": (
        "fairlane.model.failure",
        "fairlane.model.retry.own_delay",
        "fairlane.app.resources",
        "fairlane.store.sqlite.threads",
        "fairlane.worker.execute",
        "fairlane.worker.attempts.results",
        "fairlane.worker.attempts.run_handler",
        "fairlane.worker.attempts.soft_timeout",
        "fairlane.worker.children.child.main",
        "fairlane.worker.dispatch",
        "fairlane.worker.settle",
        "fairlane.worker.report",
        "fairlane.worker.inspection.inspector",
        "fairlane.outbox.relay",
        "fairlane.duties.duties",
        "fairlane.web.application",
    ),
}
"""The modules in which each of these may occur, with the reason."""

LONGEST_FILE: Final = 400
NAMELESS: Final = frozenset({"utils", "util", "helpers", "common", "misc", "base"})
UNSAFE: Final = frozenset({"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"})


class Source(NamedTuple):
    """A module's full name and its text."""

    module: str
    text: str

    def found(self, line: int, what: str) -> str:
        """Format one finding."""
        return f"{self.module}:{line}: {what}"


def sources(*folders: Path) -> Iterator[Source]:
    """Read every Python file below these folders, named from src or from the root."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            start = ROOT / "src" if folder == PACKAGE else ROOT
            parts = path.relative_to(start).with_suffix("").parts
            yield Source(".".join(parts).removesuffix(".__init__"), path.read_text(encoding="utf-8"))


def entry_of(module: str) -> str | None:
    """Return the entry of `LAYERS` that a module belongs to; None if it is in none."""
    _, *parts = module.split(".")
    pair = ".".join(parts[:2])
    if pair in RANK:
        return pair
    first = parts[0] if parts else ""
    return first if first in RANK else None


def imports(tree: ast.AST) -> Iterator[tuple[int, str, int]]:
    """Return line, full dotted target and relative level of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (node.lineno, f"{node.module or ''}.{alias.name}", node.level) for alias in node.names
            )


def layer_findings(source: Source) -> list[str]:
    """Find relative imports, imports from a later layer, and modules in no layer."""
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
            # `from fairlane import Queue` takes a public name, `from fairlane import model` a package.
            other = entry_of(target) or ("" if target.count(".") == 1 else None)
            if other is None:
                findings.append(source.found(line, f"imports {target}, which is in no layer"))
            elif other != own and RANK[other] >= RANK[own]:
                findings.append(source.found(line, f"imports {target}, which is not above it"))
    return findings


def purity_findings(source: Source) -> list[str]:
    """Find what a pure module must not import or name, aliases included."""
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
    """Find the words of `HOMES` outside their modules."""
    return [
        source.found(line, f"{word} belongs in {' or '.join(HOMES[word]) or 'no module'} alone")
        for word, line in marked(source.text)
        if source.module not in HOMES[word]
    ]


def marked(text: str) -> Iterator[tuple[str, int]]:
    """Return each use of a word of `HOMES` in code, with its line; not in comments and strings."""
    if any(word in text for word in HOMES):  # reading tokens is slow, and most files have none
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string in HOMES:
                yield token.string, token.start[0]
    if "except" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or _dotted(kind, {}) in {"Exception", "BaseException"} for kind in kinds):
                yield "except Exception", node.lineno


def unsafe_findings(source: Source) -> list[str]:
    """Find imports of modules that execute code while reading data."""
    if not any(name in source.text for name in UNSAFE):
        return []
    return [
        source.found(line, f"imports {target}; payloads are JSON, never pickles")
        for line, target, _ in imports(ast.parse(source.text))
        if UNSAFE & set(target.split("."))
    ]


def form_findings(source: Source) -> list[str]:
    """Find modules without a docstring, and names that answer no "why open me?"."""
    # An empty file in the tests only marks a folder as a package; in the package, every module is documented.
    is_marker = not source.text and source.module.split(".")[0] == "tests"
    begins = source.text.startswith('"""')  # nearly all do: then nothing has to be parsed
    has_docstring = is_marker or begins or ast.get_docstring(ast.parse(source.text))
    findings = [] if has_docstring else [source.found(1, "has no docstring")]
    if NAMELESS & set(source.module.split(".")):
        findings.append(source.found(1, "is named after nothing; name it after its noun"))
    return findings


def contract_verbs() -> frozenset[str]:
    """Read the verbs that the facets of the contract promise."""
    folder = PACKAGE / "store" / "contract"
    return frozenset(
        method.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(_dotted(base, {}) == "Protocol" for base in node.bases)
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def undocumented_findings(source: Source, verbs: frozenset[str]) -> list[str]:
    """Find public methods without a docstring that are no verb of the contract, which explains its own."""
    return [
        source.found(
            method.lineno, f"{node.name}.{method.name} has no docstring and is no verb of the contract"
        )
        for node in ast.walk(ast.parse(source.text))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        and not method.name.startswith("_")
        and method.name not in verbs
        and not ast.get_docstring(method)
    ]


def length_findings(name: str, text: str) -> list[str]:
    """Find files that are too long."""
    lines = text.count("\n")
    return [f"{name}: {lines} lines; which second noun moved in?"] if lines > LONGEST_FILE else []


def all_findings(check: Callable[[Source], list[str]], *folders: Path) -> str:
    """Run a check over folders; return the findings, one per line."""
    return "\n".join(finding for source in sources(*folders) for finding in check(source))
