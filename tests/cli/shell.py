"""A shell for tests: the command, a real SQLite file, and a clock that tests drive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from click.testing import CliRunner

from fairlane.cli.main import cli
from fairlane.store.contract import Store
from fairlane.store.opening import open_store
from tests.contract.world import World
from tests.oracle.clock import DrivenClock

T = TypeVar("T")


class CommandResult(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Parse the answer as JSON, one object per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def told(self) -> dict[str, Any]:
        """Parse an error as JSON."""
        return cast("dict[str, Any]", json.loads(self.err))


class Shell:
    """One store in a file, and the command line on it."""

    def __init__(self, folder: Path, clock: DrivenClock) -> None:
        """Start without a store."""
        self.folder = folder
        self.file = folder / "fairlane.db"
        self.url = f"sqlite:///{self.file}"
        self.clock = clock
        self.world = World(cast("Store", None), clock)

    def write(self, name: str, text: str) -> None:
        """Put a file into the current folder."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, *arguments: str, url: str | None = None, stdin: str | None = None) -> CommandResult:
        """Run one command line on the store."""
        words = ["--url", url or self.url, *arguments]
        result = CliRunner().invoke(cli, words, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return CommandResult(result.exit_code, result.stdout, result.stderr)

    def output_of(self, *arguments: str) -> str:
        """Run a command that must succeed without remarks, and return its output."""
        ran = self.run(*arguments)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    def in_store(self, work: Callable[[World], Awaitable[T]]) -> T:
        """Do something in the store, without the command line."""

        async def inside() -> T:
            self.world.store = open_store(self.url)
            try:
                return await work(self.world)
            finally:
                await self.world.store.upkeep.aclose()

        return asyncio.run(inside())
