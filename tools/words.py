"""Find words that the glossary has retired. Knows spelling, not meaning: exceptions are listed with a reason.

A text is read as a row of lower-case parts: `lock_timeout`, `LockTimeout` and "lock timeout" are the same
two. A retired word is found only as whole parts, so `token` is not found in `tokenize`, and a phrase only
where nothing but space or a line break stands between its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
GLOSSARY: Final = ROOT / "docs" / "reference" / "glossary.md"
ACCEPTANCE: Final = ROOT / "docs" / "reference" / "acceptance.md"

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_GAP: Final = re.compile(r"[ _\-*'’`]*(\n[ #>*-]*)?")
_TERM: Final = re.compile(r"`([^`]+)`")


class Excuse(NamedTuple):
    """A retired word that is right in one context: the words around it, and where."""

    context: str
    files: str
    reason: str


EXCUSES: Final = (
    Excuse("lock timeout", "*", "PostgreSQL's setting of that name"),
    Excuse(
        "claim's lock", "docs/reference/semantics.md", "the database lock that a claim holds for an instant"
    ),
    Excuse("make lock", "CONTRIBUTING.md", "the command that pins the versions of tools"),
    Excuse("lock", "src/fairlane/store/sqlite/*", "the locks of the file system and of SQLite"),
    Excuse("locks", "src/fairlane/store/sqlite/*", "as above"),
    Excuse("locked", "src/fairlane/store/sqlite/*", "as above"),
    Excuse("lock", "src/fairlane/store/postgres/*", "the locks of PostgreSQL and of asyncio"),
    Excuse("locks", "src/fairlane/store/postgres/*", "as above"),
    Excuse("locked", "src/fairlane/store/postgres/*", "as above"),
    Excuse("lock", "docs/*/*postgresql.md", "as above"),
    Excuse("locks", "docs/*/*postgresql.md", "as above"),
    Excuse("locked", "docs/*/*postgresql.md", "as above"),
    Excuse("lock", "src/fairlane/store/redis/connect.py", "asyncio's class of that name"),
    Excuse("query canceled", "src/fairlane/store/postgres/errors.py", "asyncpg's error of that name"),
    Excuse("to timestamp", "src/fairlane/store/postgres/functions/days.sql", "PostgreSQL's function"),
    Excuse("token hex", "src/fairlane/store/*/wake.py", "the standard library's function of that name"),
    Excuse("dead lock", "*", "two that wait for each other"),
    Excuse("token", "src/fairlane/model/secret*.py", "field names under which applications keep secrets"),
    Excuse("token", "src/fairlane/model/sensitive.py", "as above"),
    Excuse("quota", "src/fairlane/model/secret*.py", "what a field is about whose name begins like a secret"),
    Excuse("between token", "docs/reference/payload.md", "the tokens of JSON"),
    Excuse("eta", "src/fairlane/app/misuse.py", "how other libraries call it, and are told how we do"),
    Excuse("max retries", "src/fairlane/app/misuse.py", "as above"),
    Excuse("clock_timestamp", "*", "PostgreSQL's function of that name"),
)


class Term(NamedTuple):
    """A retired word or phrase, and the word we say."""

    retired: str
    say: str


def parts(text: str) -> list[tuple[str, int]]:
    """Split text into lower-case parts of words and identifiers, each with its offset.

    >>> [part for part, _ in parts("the DLQ's lockTimeout, max_retries")]
    ['the', 'dlq', 's', 'lock', 'timeout', 'max', 'retries']
    """
    return [(found.group().lower(), found.start()) for found in _PART.finditer(text)]


def retired(glossary: str) -> list[Term]:
    """Read the retired words from the glossary's tables: what stands in backticks in the last column.

    >>> retired("| fence | a `number` | `token` (of access) |")
    [Term(retired='token', say='fence')]
    """
    rows = [line.strip().strip("|").split("|") for line in glossary.splitlines() if line.startswith("|")]
    return [
        Term(term, cells[0].strip())
        for cells in rows
        if len(cells) == len(("word", "what it is", "not"))
        for term in _TERM.findall(cells[2])
    ]


def findings(name: str, text: str, terms: Sequence[Term], excuses: Sequence[Excuse] = EXCUSES) -> list[str]:
    """Find every retired word in a text that no excuse covers."""
    row = parts(text)
    plain = _plain(text, row)
    covered = [
        span for excuse in excuses if fnmatch(name, excuse.files) for span in _spans(plain, excuse.context)
    ]
    found = []
    for term in terms:
        for start, end in _spans(plain, term.retired):
            if not any(first <= start and end <= last for first, last in covered):
                offset = row[len(plain[:start].replace(".", "").split())][1]
                line = text.count("\n", 0, offset) + 1
                found.append(f"{name}:{line}: {term.retired!r} is retired, say {term.say!r}")
    return found


def _plain(text: str, row: Sequence[tuple[str, int]]) -> str:
    """Write the parts in a row, a space between neighbours and a stop where a phrase cannot go on."""
    words, after = [], 0
    for part, offset in row:
        words.append(part if _GAP.fullmatch(text, after, offset) else f". {part}")
        after = offset + len(part)
    return " ".join(words)


def _spans(plain: str, phrase: str) -> list[tuple[int, int]]:
    """Give where a phrase stands in a row of parts; its last part may also be a plural."""
    wanted = " ".join(part for part, _ in parts(phrase))
    return [found.span() for found in re.finditer(rf"(?<!\S){wanted}(?:e?s)?(?!\S)", plain)]


def texts() -> Iterator[tuple[str, str]]:
    """Read the source and the documents, but for the glossary, the decision records and the acceptance rows.

    The rows speak the words of those who asked.
    """
    source = [
        path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".pyi", ".sql", ".lua", ".html"}
    ]
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for path in sorted({*source, *documents}):
        if path not in {GLOSSARY, ACCEPTANCE} and path.parent != ROOT / "docs" / "decisions":
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
