"""Say which rows of the acceptance list are tested, and what the others wait for. Runs no test.

The rows stand in tests/acceptance/rows.toml; a test belongs to the row that its name begins with:
`test_001_cp1_2_…` is of row 001-CP1.2. `make acceptance` writes docs/reference/acceptance.md with it; a test
compares the two.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = ROOT / "tests" / "acceptance"
ROWS: Final = TESTS / "rows.toml"
PAGE: Final = ROOT / "docs" / "reference" / "acceptance.md"

HEAD = """\
# Acceptance

Generated from `tests/acceptance` by `make acceptance`; do not edit by hand.

Fairlane must be able to do what five descriptions of job systems ask for, which people wrote for their own
applications. Each row is one such thing, in that description's words; its tests are named after it. Where a
row and the [semantics](semantics.md) disagree, the test follows the semantics and says so. Rows marked *core*
are about jobs, stores, workers, time and the command line, those marked *web* about seeing and steering.

A row is *tested*, *partly* tested with what is missing, or *waits* for a piece of work that is yet to come.
"""


class Row(NamedTuple):
    """One row, and what keeps it from being tested, in whole (`waits`) or in part (`missing`)."""

    id: str
    part: str
    section: str
    mark: str
    says: str
    waits: str | None
    missing: str | None

    @property
    def slug(self) -> str:
        """The row's id as it stands in the names of its tests.

        >>> Row("001-CP1.2", "", "", "core", "", None, None).slug
        '001_cp1_2'
        """
        return re.sub(r"[-.]", "_", self.id.lower())


class Found(NamedTuple):
    """A test and the file that it stands in."""

    name: str
    file: str


def read_rows(text: str) -> list[Row]:
    """Read the list; what it does not know is refused, so that a misspelt word hides nothing."""
    return [
        Row(
            id=id,
            part=part,
            section=section,
            mark=fields.pop("mark"),
            says=fields.pop("says"),
            waits=fields.pop("waits", None),
            missing=fields.pop("missing", None),
        )
        for part, sections in tomllib.loads(text).items()
        for section, rows in sections.items()
        for id, fields in rows.items()
        if not fields.keys() - {"mark", "says", "waits", "missing"} or _refuse(id)
    ]


def _refuse(id: str) -> bool:
    message = f"row {id} has a field that means nothing"
    raise ValueError(message)


def read_tests(folder: Path = TESTS) -> list[Found]:
    """Find the tests of a folder by their source; nothing is imported."""
    return [
        Found(node.name, path.relative_to(folder).as_posix())
        for path in sorted(folder.glob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]


def by_row(rows: Sequence[Row], tests: Iterable[Found]) -> tuple[dict[str, list[Found]], list[Found]]:
    """Return each row's tests by the row's id, and the tests that name no row."""
    ids = {f"test_{row.slug}_": row.id for row in rows}
    found: dict[str, list[Found]] = {row.id: [] for row in rows}
    strangers = []
    for test in tests:
        prefix = max((prefix for prefix in ids if test.name.startswith(prefix)), key=len, default=None)
        if prefix is None:
            strangers.append(test)
        else:
            found[ids[prefix]].append(test)
    return found, strangers


def problems(rows: Sequence[Row], tests: Sequence[Found]) -> list[str]:
    """Say where the list and the tests disagree."""
    found, strangers = by_row(rows, tests)
    slugs = Counter(row.slug for row in rows)
    names = Counter(test.name for test in tests)
    said = [f"{slug} stands for several rows" for slug, times in slugs.items() if times > 1]
    said += [f"{name} is the name of several tests" for name, times in names.items() if times > 1]
    said += [f"{test.file}: {test.name} names no row" for test in strangers]
    for row in rows:
        if row.mark not in {"core", "web"}:
            said.append(f"{row.id}: {row.mark} is no mark")
        if found[row.id] and row.waits:
            said.append(f"{row.id} is tested and waits for {row.waits}")
        if not found[row.id] and not row.waits:
            said.append(f"{row.id} has no test and waits for nothing")
        if row.missing and not found[row.id]:
            said.append(f"{row.id} misses something and has no test: it waits")
    return said


def state(row: Row) -> str:
    """Name the state of a row that has its tests or says what it waits for."""
    if row.waits:
        return "waits"
    return "partly" if row.missing else "tested"


def page(rows: Sequence[Row], tests: Sequence[Found]) -> str:
    """Put the page together."""
    found, _ = by_row(rows, tests)
    return "\n".join([HEAD, *_summary(rows), "", *_ahead(rows), *_tables(rows, found)])


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    yield "| described system | rows | core | tested | partly | wait | of the core rows: tested or partly |"
    yield "|---|---|---|---|---|---|---|"
    for part in [*dict.fromkeys(row.part for row in rows), "all"]:
        of = [row for row in rows if part in {row.part, "all"}]
        core = [row for row in of if row.mark == "core"]
        states = Counter(map(state, of))
        done = sum(state(row) != "waits" for row in core)
        counts = (len(of), len(core), states["tested"], states["partly"], states["waits"], done)
        yield f"| {part} | {' | '.join(map(str, counts))} |"


def _ahead(rows: Sequence[Row]) -> Iterator[str]:
    yield "## What rows wait for"
    yield ""
    yield "| piece of work | rows | core |"
    yield "|---|---|---|"
    waits = Counter(row.waits for row in rows if row.waits)
    core = Counter(row.waits for row in rows if row.waits and row.mark == "core")
    for work, number in sorted(waits.items(), key=lambda one: (-one[1], one[0])):
        yield f"| {work} | {number} | {core[work]} |"
    yield ""


def _tables(rows: Sequence[Row], found: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    for part in dict.fromkeys(row.part for row in rows):
        yield f"## {part}"
        yield ""
        yield "| row | mark | what it asks for | state | tests, or what it waits for |"
        yield "|---|---|---|---|---|"
        section = None
        for row in (row for row in rows if row.part == part):
            if row.section != section:
                section = row.section
                yield f"| | | **{section}** | | |"
            says = row.says.replace("|", "\\|")
            yield f"| {row.id} | {row.mark} | {says} | {state(row)} | {_evidence(row, found[row.id])} |"
        yield ""


def _evidence(row: Row, tests: Sequence[Found]) -> str:
    if row.waits:
        return row.waits
    named = ", ".join(f"`{test.name}`" for test in tests)
    return f"{named}; missing: {row.missing}" if row.missing else named


if __name__ == "__main__":
    print(page(read_rows(ROWS.read_text(encoding="utf-8")), read_tests()), end="")
