"""Check the names of the package: one class name stands for one thing, and no coined word goes unexplained.

A word is coined if it is part of many names that the package defines, and stands neither in
`tools/ordinary_words.txt`, the words that every engineer knows, nor in the glossary. Both lists are short
enough to be read. Knows spelling, not meaning.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tools.architecture import ROOT, Source

GLOSSARY: Final = ROOT / "docs" / "reference" / "glossary.md"
ORDINARY: Final = Path(__file__).parent / "ordinary_words.txt"

OFTEN: Final = 10
"""A word in so many defined names is met often."""

FILES: Final = 4
"""A word of fewer files is explained where it stands."""

_TWINS: Final = ("fairlane.store.sqlite.", "fairlane.store.postgres.", "fairlane.store.redis.")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORTEST: Final = 3
_ENDINGS: Final = (
    ("ies", "y"),
    ("es", ""),
    ("s", ""),
    ("ied", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
)


def shared_class_names(sources: Iterable[Source]) -> list[str]:
    """Find class names that stand for two things. The stores are twins: each may have such a class."""
    homes: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in ast.walk(ast.parse(source.text)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(source.module)
    return [
        f"{name} is a class in {', '.join(modules)}; one name, one thing"
        for name, modules in sorted(homes.items())
        if len(modules) > 1 and not _are_twins(modules)
    ]


def _are_twins(modules: list[str]) -> bool:
    stores = [store for module in modules for store in _TWINS if module.startswith(store)]
    return len(stores) == len(modules) == len(set(stores))


def words_of(name: str) -> set[str]:
    """Split an identifier into its words, in lower case; short ones are no nouns.

    >>> sorted(words_of("_LaneState")), sorted(words_of("MAX_SQL_rows_at"))
    (['lane', 'state'], ['max', 'rows', 'sql'])
    """
    return {part.lower() for part in _PART.findall(name) if len(part) >= _SHORTEST}


def stems(word: str) -> set[str]:
    """Return a word and what it may be an inflection of.

    >>> sorted(stems("policies")), sorted(stems("parked")), "stop" in stems("stopping")
    (['polici', 'policie', 'policies', 'policy'], ['park', 'parke', 'parked'], True)
    """
    found = {word}
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            stem = word.removesuffix(ending) + instead
            found |= {stem, stem[:-1]} if stem[-1:] == stem[-2:-1] else {stem}
    return found


def defined_names(source: Source) -> set[str]:
    """Collect the names that a module defines: itself, classes, functions, parameters, fields, constants."""
    names = set(source.module.split("."))
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        if isinstance(node, ast.ClassDef | ast.Module):
            names |= {target.id for target in _targets(node.body) if isinstance(target, ast.Name)}
    return names


def _targets(body: list[ast.stmt]) -> Iterator[ast.expr]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            yield from statement.targets
        elif isinstance(statement, ast.AnnAssign):
            yield statement.target


def unexplained_words(sources: Iterable[Source], known: set[str]) -> list[str]:
    """Find words that are part of many names and are neither ordinary nor in the glossary."""
    uses: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for source in sources:
        for name in defined_names(source):
            for word in words_of(name):
                uses[word].add((source.module, name))
    return [
        f"{word}: {len(names)} names, such as {_examples(names)}; say a common word, or explain it"
        for word, names in sorted(uses.items())
        if len(names) >= OFTEN and len({module for module, _ in names}) >= FILES and not stems(word) & known
    ]


def unused_words(sources: Iterable[Source], words: set[str]) -> list[str]:
    """Find words of the list of ordinary words that are part of no name."""
    parts = {part for source in sources for name in defined_names(source) for part in words_of(name)}
    used = {stem for part in parts for stem in stems(part)}
    return [f"{word}: no name has it; take it out of the list" for word in sorted(words - used)]


def _examples(names: set[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({module})" for module, name in sorted(names)[:3])


def ordinary_words(text: str) -> set[str]:
    r"""Read the list of ordinary words; a line that begins with # is a heading.

    >>> sorted(ordinary_words("# time\nsecond minute\n\nhour\n"))
    ['hour', 'minute', 'second']
    """
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {word for line in lines for word in line.split()}


def glossary_entries(page: str) -> set[str]:
    r"""Read the words that have their own entry in the glossary; those of `dead letter` do not.

    >>> sorted(glossary_entries("| word | what it is |\n|---|---|\n| dead letter | … |\n| hold, held | … |"))
    ['held', 'hold']
    """
    rows = (line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    entries = {entry.strip(" `").lower() for row in rows for entry in row.split(",")}
    return {entry for entry in entries if " " not in entry} - {"word"}


def glossary_words(page: str) -> set[str]:
    r"""Read the words that the glossary explains: those in the first column of its tables.

    >>> sorted(glossary_words("| word | what it is |\n|---|---|\n| dead letter | … |\n| `lane` | … |"))
    ['dead', 'lane', 'letter']
    """
    rows = (line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    return {
        word for entry in rows if entry.strip() != "word" for word in re.findall(r"[a-z]+", entry.lower())
    }
