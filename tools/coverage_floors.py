"""Hold measured coverage to a floor for each part of the package. Reads the report of `coverage json`.

`make test-all` measures every test and runs this. Statements and branches have floors of their own, and they
are counted over all files of a part together. A part without files is named, never passed in silence.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple


class Floor(NamedTuple):
    """A part of the package: its files (`*` also crosses folders) and the least percentages."""

    part: str
    files: tuple[str, ...]
    statements: int
    branches: int


FLOORS: Final = (
    Floor("model", ("src/fairlane/model/*",), 100, 100),
    Floor("queue", ("src/fairlane/store/*", "src/fairlane/app/enqueue/*", "src/fairlane/outbox/*"), 95, 90),
    Floor("worker", ("src/fairlane/worker/*",), 90, 85),
    Floor("retry", ("src/fairlane/model/retry/*", "src/fairlane/model/failure.py"), 95, 90),
    Floor("scheduler", ("src/fairlane/duties/*",), 90, 85),
    Floor("API", ("src/fairlane/web/*",), 85, 80),
)
"""The queue is what takes jobs in and stores them: the stores, the enqueue path of the client, the outbox."""


class Measured(NamedTuple):
    """What was covered of a part: numbers of statements and of branches."""

    files: int
    statements: int
    statements_run: int
    branches: int
    branches_run: int


def measured(floor: Floor, files: Mapping[str, Mapping[str, Any]]) -> Measured:
    """Add up the files of a part.

    >>> one = {"num_statements": 4, "covered_lines": 3, "num_branches": 2, "covered_branches": 1}
    >>> files = {"src/a/b/c.py": {"summary": one}, "src/d.py": {"summary": one}}
    >>> measured(Floor("a", ("src/a/*",), 1, 1), files)
    Measured(files=1, statements=4, statements_run=3, branches=2, branches_run=1)
    """
    keys = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    found = [
        one["summary"] for name, one in files.items() if any(fnmatchcase(name, glob) for glob in floor.files)
    ]
    return Measured(len(found), *(sum(one[key] for one in found) for key in keys))


def percent(run: int, total: int) -> float:
    """Return the percentage, rounded down to a tenth, so that 99.99 % never looks like 100 %.

    >>> percent(9_999, 10_000), percent(0, 0)
    (99.9, 100.0)
    """
    return 1000 * run // total / 10 if total else 100.0


def lines(
    files: Mapping[str, Mapping[str, Any]], floors: Sequence[Floor] = FLOORS
) -> Iterator[tuple[str, bool]]:
    """Return a line of the table for each part, and whether the part is above its floors."""
    for floor in floors:
        found = measured(floor, files)
        asked = f"(floor {floor.statements} % / {floor.branches} %)"
        if not found.files:
            yield f"{floor.part:<10} no files yet {asked}: {', '.join(floor.files)}", True
            continue
        statements = percent(found.statements_run, found.statements)
        branches = percent(found.branches_run, found.branches)
        is_met = statements >= floor.statements and branches >= floor.branches
        counted = f"{found.files:>3} files, {found.statements:,} statements, {found.branches:,} branches"
        mark = "ok" if is_met else "BELOW THE FLOOR"
        yield f"{floor.part:<10} {statements:5.1f} % / {branches:5.1f} % {asked}  {mark}  {counted}", is_met


def main(arguments: Sequence[str]) -> int:
    """Print the table of a report; return 1 if a part is below a floor or nothing was measured."""
    (file,) = arguments
    report = json.loads(Path(file).read_text(encoding="utf-8"))
    if not report["meta"]["branch_coverage"] or not report["files"]:
        print("coverage floors: the report has no files or no branches", file=sys.stderr)
        return 1
    print("coverage by part, statements / branches:")
    table = list(lines(report["files"]))
    print("\n".join(f"  {line}" for line, _ in table))
    return 0 if all(is_met for _, is_met in table) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
