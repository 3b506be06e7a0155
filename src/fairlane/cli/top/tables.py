"""Rows and columns of a table that changes: sort them, and find the columns that fit. Knows no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fairlane.cli.render.escaping import one_line

GAP: Final = 2
"""The cells between two columns."""


class TopColumn(msgspec.Struct, frozen=True):
    """A column. Where the width is scarce, columns of the highest rank go first; rank 0 stays."""

    title: str
    rank: int = 0
    is_number: bool = False


class TopCell(msgspec.Struct, frozen=True):
    """A cell: its text, and what it is sorted by if that is not the text."""

    text: str
    by: float | None = None


class TopRow(msgspec.Struct, frozen=True):
    """One row: a key that stays the same from look to look, and a cell for each column."""

    key: str
    cells: tuple[TopCell, ...]


def text_cell(text: str | None) -> TopCell:
    r"""Return the cell of a text, with control characters escaped.

    >>> text_cell("a\x1b[2J").text, text_cell(None).text
    ('a\\x1b[2J', '')
    """
    return TopCell(one_line(text or ""))


def number_cell(number: float) -> TopCell:
    """Return the cell of a number.

    >>> number_cell(12_345)
    TopCell(text='12,345', by=12345)
    """
    return TopCell(f"{number:,}", number)


def sort_rows(rows: Sequence[TopRow], at: int, *, is_number: bool, is_reversed: bool) -> list[TopRow]:
    """Return rows by one column: texts from a to z, numbers from the largest; reversed, the other way.

    >>> rows = [TopRow(name, (number_cell(n),)) for name, n in (("a", 1), ("b", 20), ("c", 3))]
    >>> [row.key for row in sort_rows(rows, 0, is_number=True, is_reversed=False)]
    ['b', 'c', 'a']
    >>> [row.key for row in sort_rows(rows, 0, is_number=True, is_reversed=True)]
    ['a', 'c', 'b']
    """
    by_key = sorted(rows, key=lambda row: row.key)

    def order(row: TopRow) -> tuple[float, str]:
        cell = row.cells[at]
        return (0.0 if cell.by is None else cell.by, cell.text)

    return sorted(by_key, key=order, reverse=is_number is not is_reversed)


def fitting(columns: Sequence[TopColumn], rows: Sequence[TopRow], width: int) -> list[int]:
    """Return the columns that fit into a width, the most important ones, in their order.

    >>> columns = [TopColumn("NAME"), TopColumn("HELD", 2), TopColumn("READY", 1)]
    >>> rows = [TopRow("mail", (TopCell("mail"), TopCell("paused"), TopCell("12")))]
    >>> [fitting(columns, rows, width) for width in (40, 15, 6)]
    [[0, 1, 2], [0, 2], [0]]
    """
    widths = [
        max(len(column.title), *(len(row.cells[at].text) for row in rows)) if rows else len(column.title)
        for at, column in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    while sum(widths[at] + GAP for at in kept) > width:
        last = max(kept, key=lambda at: (columns[at].rank, at))
        if not columns[last].rank:
            break
        kept.remove(last)
    return kept
