"""Where the time of a verb goes: in which statement, in the commit, in Python. Prints a page of the docs.

Counted is processor time of the writing thread: it bears a busy machine, but waiting for the disk is not in
it. Every statement is timed by a connection that is put in place of the usual one, which costs a little.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from benchmarks.measured_store import MeasuredStore
from fairlane.lab.bench.driver import BATCH
from fairlane.store.sqlite import connection, statements
from fairlane.store.sqlite import threads as writing

R = TypeVar("R")

CLAIMED = 100
SHOWN_US = 0.1


class CpuTimes:
    """Seconds by part of the verb that is running."""

    def __init__(self) -> None:
        """Know every statement by the name of its file and part."""
        self.parts: defaultdict[str, float] = defaultdict(float)
        folder = Path(statements.__file__).parent / "sql"
        self._names = {
            text: f"{file.stem}: {name.replace('_', ' ')}"
            for file in folder.glob("*.sql")
            for name, text in vars(statements.load(file.stem)).items()
        }

    def name(self, statement: str) -> str:
        """Return the name of a statement."""
        return self._names.get(statement, statement.split(maxsplit=1)[0].lower())


spent = CpuTimes()


def _timed(name: str, run: Callable[[], R]) -> R:
    start = time.thread_time()
    try:
        return run()
    finally:
        spent.parts[name] += time.thread_time() - start


class TimedCursor(apsw.Cursor):
    """Counts the time of rows that are read after the first."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return _timed("rows of answers", super().fetchall)


class TimedConnection(apsw.Connection):
    """Counts the time of every statement."""

    def execute(self, statements: str, *values: Any, **options: Any) -> apsw.Cursor:
        """Run one statement."""
        run = super().execute
        return _timed(spent.name(statements), lambda: run(statements, *values, **options))

    def executemany(self, statements: str, *values: Any, **options: Any) -> apsw.Cursor:
        """Run one statement for many rows."""
        run = super().executemany
        return _timed(spent.name(statements), lambda: run(statements, *values, **options))


def _open(path: Path) -> apsw.Connection:
    db = TimedConnection(str(path))
    db.cursor_factory = TimedCursor
    return db


class TimedStore:
    """The writer's own time, of which the statements are a part."""

    def __init__(self) -> None:
        """Stand between the writer and its groups."""
        self.total = 0.0
        self._run_group = writing.WriterThread._run_group  # noqa: SLF001 (a measurement may look inside)

    def install(self) -> None:
        """Time every group from now on."""
        timed, do = self, self._run_group

        def _run_group(writer: Any, db: apsw.Connection, works: Any) -> None:
            start = time.thread_time()
            do(writer, db, works)
            timed.total += time.thread_time() - start

        writing.WriterThread._run_group = _run_group  # type: ignore[method-assign,assignment]  # noqa: SLF001 (as above)
        connection.open_file = _open


async def measure(folder: str, jobs: int, tenants: list[int]) -> dict[str, Any]:
    """Take the verbs apart, for one tenant and for many."""
    timed = TimedStore()
    timed.install()
    found: dict[str, Any] = {}
    for number in tenants:
        bench = MeasuredStore(folder, f"profile{number}")
        await bench.enqueue(bench.new("t0"))
        verbs: dict[str, defaultdict[str, float]] = {}

        def note(verb: str, verbs: dict[str, defaultdict[str, float]] = verbs) -> None:
            parts = verbs.setdefault(verb, defaultdict(float))
            for name, value in spent.parts.items():
                parts[name] += value
            parts["Python"] += timed.total - sum(spent.parts.values())
            spent.parts.clear()
            timed.total = 0.0

        spent.parts.clear()
        timed.total = 0.0
        await bench.fill(jobs, number)
        note(f"enqueue, {BATCH:,} a batch")
        while claims := await bench.claim(CLAIMED):
            note(f"claim, {CLAIMED} at a time")
            await bench.settle(claims)
            note(f"settle, {CLAIMED} at a time")
        await bench.store.upkeep.aclose()
        found[str(number)] = {
            verb: {name: 1e6 * value / jobs for name, value in parts.items()} for verb, parts in verbs.items()
        }
    return {"jobs": jobs, "tenants": found}


def show(found: dict[str, Any], host: dict[str, Any]) -> None:
    """Print tables: a row for each part, a column for each number of tenants."""
    numbers = list(found["tenants"])
    print("# Where the time goes in the SQLite store\n")
    print("Printed by `make bench ARGS='--only profile'`: microseconds of processor time a job costs the")
    print("writing thread. Waiting for the disk is not in it.")
    print(f"{found['jobs']:,} jobs of 200 bytes, `synchronous=full`, on {host}.\n")
    for verb in found["tenants"][numbers[0]]:
        tables = [found["tenants"][number][verb] for number in numbers]
        print(f"## {verb.capitalize()}\n")
        print("| part | " + " | ".join(f"{int(number):,} tenants" for number in numbers) + " |")
        print("|---|" + "---:|" * len(numbers))
        parts = sorted({part for table in tables for part in table}, key=lambda part: -tables[0].get(part, 0))
        for part in parts:
            cells = [table.get(part, 0.0) for table in tables]
            if max(cells) >= SHOWN_US:
                print(f"| {part} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")
        print("| **all** | " + " | ".join(f"**{sum(table.values()):.1f}**" for table in tables) + " |\n")
