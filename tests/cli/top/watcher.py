"""Somebody before the screen of `fairlane top`, who presses keys and reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from textual.pilot import Pilot

from fairlane import Fairlane
from fairlane.cli.top.board import TopBoard
from fairlane.model.instants import HOUR, SECOND, Micros

OFTEN: Final[Micros] = SECOND // 20
BROAD: Final = (200, 40)


class Watcher:
    """Somebody before a terminal."""

    def __init__(self, board: TopBoard, pilot: Pilot[None]) -> None:
        """Sit down."""
        self.board = board
        self.pilot = pilot

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait for a fact."""
        async with asyncio.timeout(30):
            while not is_so():
                await self.pilot.pause(0.01)

    async def press(self, *keys: str) -> None:
        """Press keys, and wait for what they lead to."""
        await self.pilot.press(*keys)
        await self.until(lambda: self.board.refresher.answer is not None or self.board.refresher.problem)
        await self.pilot.pause()

    @property
    def titles(self) -> list[str]:
        """The titles of the columns."""
        return [str(column.label) for column in self.board.table.ordered_columns]

    @property
    def rows(self) -> list[list[str]]:
        """The texts of the table."""
        table = self.board.table
        return [[str(cell) for cell in table.get_row_at(at)] for at in range(table.row_count)]

    def column(self, title: str) -> list[str]:
        """Return one column."""
        at = next(at for at, one in enumerate(self.titles) if one.startswith(title))
        return [row[at] for row in self.rows]

    @property
    def about(self) -> str:
        """The line below the table."""
        return str(self.board.about.render())


@asynccontextmanager
async def watching(
    app: Fairlane, view: str, *, every: Micros = HOUR, size: tuple[int, int] = BROAD
) -> AsyncIterator[Watcher]:
    """Open the screen and wait for its first look."""
    board = TopBoard(app, view, every)
    async with board.run_test(size=size) as pilot:
        watcher = Watcher(board, pilot)
        await watcher.until(lambda: board.refresher.looks)
        await pilot.pause()
        yield watcher
