"""Print answers: tables and records on a terminal, plain aligned text in a pipe, JSON for programs.

Knows what an answer looks like, not what it is about. Escapes control characters in everything it prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from textwrap import wrap
from typing import Any, Final, Generic, TextIO, TypeAlias, TypeVar

import msgspec

from fairlane.cli.render.escaping import in_json, lines, one_line

T = TypeVar("T")

Cell: TypeAlias = str | int | None
Columns: TypeAlias = Mapping[str, Callable[[T], Cell]]

_GAP = "  "
_INDENT: Final = "    "

NOTHING: Final = "-"
"""The text of an empty cell."""

_NARROW: Final = 20
"""The minimum width of a column whose text is wrapped."""


class TableView(msgspec.Struct, Generic[T], frozen=True):
    """How items of one kind are shown: columns for people, one JSON object for programs.

    On a terminal that is too narrow, a view that `stacks` puts its last columns below the others.
    """

    columns: Mapping[str, Callable[[T], Cell]]
    as_json: Callable[[T], Mapping[str, Any]]
    stacks: bool = False


class Output:
    """Prints answers to `out`, and remarks and errors to `err`, so that scripts can parse `out`."""

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        *,
        is_json: bool = False,
        is_rich: bool | None = None,
        has_color: bool = True,
        width: int | None = None,
    ) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.is_json = is_json
        self._is_rich = _can_be_rich(self.out) if is_rich is None else is_rich
        self._has_color = has_color
        self._width = width

    def table(self, items: Iterable[T], view: TableView[T], *, empty: str = "") -> int:
        """Print items, one per row; as JSON one object per line, as they arrive. Return their number."""
        if self.is_json:
            return sum(1 for _ in map(self._object, map(view.as_json, items)))
        rows = [[_cell(read(item)) for read in view.columns.values()] for item in items]
        if not rows:
            if empty:
                self.line(empty)
        elif self._is_rich:
            self._rich_table(list(view.columns), rows, stacks=view.stacks)
        else:
            for line in aligned([list(view.columns), *rows]):
                self.line(line)
        return len(rows)

    def record(self, fields: Mapping[str, Cell], as_json: Mapping[str, Any]) -> None:
        """Print one item, a field per line. Empty fields are left out; long texts are indented."""
        if self.is_json:
            self._object(as_json)
            return
        shown = {name: value for name, value in fields.items() if value not in {None, ""}}
        widest = max(map(len, shown), default=0)
        for name, value in shown.items():
            first, *more = lines(str(value))
            self.line(f"{name:<{widest}}{_GAP}{first}")
            for line in more:
                self.line(f"{'':<{widest}}{_GAP}{line}")

    def answer(self, text: str, as_json: Mapping[str, Any]) -> None:
        """Print an answer of a sentence or two."""
        if self.is_json:
            self._object(as_json)
        else:
            for line in lines(text):
                self.line(line)

    def line(self, text: str) -> None:
        """Print one line of the answer, with control characters escaped."""
        self.out.write(f"{one_line(text).rstrip()}\n")
        self.out.flush()

    def note(self, text: str) -> None:
        """Print what is not part of the answer: hints, counts, progress."""
        for line in lines(text):
            self.err.write(f"{line}\n")

    def _object(self, values: Mapping[str, Any]) -> None:
        self.out.write(in_json(msgspec.json.encode(values).decode()) + "\n")
        # A reader of lines wants each one at once, not when a buffer is full.
        self.out.flush()

    def _rich_table(self, titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, stacks: bool) -> None:
        """Draw a table without its empty columns.

        Names, ids and numbers are never wrapped, so that they can be copied: on a narrow terminal the lines
        get longer instead.
        """
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(
            file=self.out,
            width=self._width,
            no_color=not self._has_color,
            highlight=False,
            force_terminal=True,
        )
        if stacks and _width([titles, *rows]) > console.width:
            for line in stacked([titles, *rows], console.width):
                self.line(line)
            return
        numbers = _number_columns(rows)
        table = Table(box=None, header_style="bold", pad_edge=False)
        needed = 0
        shown = [at for at in range(len(titles)) if any(_shown(row[at]) != NOTHING for row in rows)]
        for at in shown:
            widest = max(len(titles[at]), *(len(_shown(row[at])) for row in rows))
            least = widest if at == 0 or at in numbers else min(widest, _NARROW)
            table.add_column(
                titles[at],
                justify="right" if at in numbers else "left",
                overflow="fold",
                no_wrap=least == widest,
                min_width=least,
            )
            needed += least + len(_GAP)
        for row in rows:
            # As `Text`: a tenant called [red] is a name, not markup.
            table.add_row(*(Text(_shown(row[at])) for at in shown))
        console.width = max(console.width, needed)
        console.print(table)


def aligned(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Align cells in columns, numbers to the right. The first row has the titles.

    >>> for line in aligned([["NAME", "JOBS"], ["bulk", 7], ["mail", 1200]]):
    ...     print(line)
    NAME  JOBS
    bulk     7
    mail  1200
    """
    numbers = _number_columns(rows[1:])
    widths = [max(len(_shown(row[at])) for row in rows) for at in range(len(rows[0]))]
    return [
        _GAP.join(
            _shown(cell).rjust(width) if at in numbers else _shown(cell).ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def stacked(rows: Sequence[Sequence[Cell]], width: int) -> list[str]:
    """Align the first cells of each row, as many as fit; the others stand below them with their titles.

    >>> for line in stacked([["ID", "STATE", "WHY"], ["a1b2", "dead", "no line to the bank"]], 18):
    ...     print(line)
    ID    STATE
    a1b2  dead
        why no line to
        the bank
    """
    titles = [str(title).lower() for title in rows[0]]
    fitting = max(
        (count for count in range(1, len(titles) + 1) if _width([row[:count] for row in rows]) <= width),
        default=1,
    )
    heads = aligned([row[:fitting] for row in rows])
    lines = heads[:1]
    for row, head in zip(rows[1:], heads[1:], strict=True):
        cells = zip(titles[fitting:], row[fitting:], strict=True)
        rest = _GAP.join(f"{title} {_shown(cell)}" for title, cell in cells if _shown(cell) != NOTHING)
        lines += [head, *_below(rest, width)]
    return lines


def _below(text: str, width: int) -> list[str]:
    """Wrap a text below a row; ids and names with hyphens stay whole, so that they can be copied."""
    return wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)


def _width(rows: Sequence[Sequence[Cell]]) -> int:
    """Return how wide a table is whose cells are not broken."""
    widths = [max(len(_shown(row[at])) for row in rows) for at in range(len(rows[0]))]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _number_columns(rows: Sequence[Sequence[Cell]]) -> frozenset[int]:
    width = len(rows[0]) if rows else 0
    return frozenset(
        at
        for at in range(width)
        if any(isinstance(row[at], int) for row in rows)
        and all(row[at] is None or isinstance(row[at], int) for row in rows)
    )


def _cell(value: Cell) -> Cell:
    return one_line(value) if isinstance(value, str) else value


def _shown(cell: Cell) -> str:
    return NOTHING if cell is None or cell == "" else str(cell)


def _can_be_rich(out: TextIO) -> bool:
    return out.isatty() and find_spec("rich") is not None
