"""Send what a store sends together one after the other, so that each script can be watched by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fairlane.store.redis.connect import Wire
from fairlane.store.redis.exchange import Command
from fairlane.store.redis.scripts import load

_POURED: Final = ("publish", "fold", "outcome")


class OneByOne:
    """Stand between a store and its wire; whoever watches says what to do around `run`."""

    def __init__(self, wire: Wire) -> None:
        """Take the place of whatever runs scripts."""
        self._run = wire.run
        self._pour = wire.pour
        self._names = {load(name).sha: name for name in _POURED}
        wire.run = self.run  # type: ignore[method-assign]
        wire.run_all = self.run_all  # type: ignore[method-assign]
        wire.pour = self.pour  # type: ignore[method-assign]
        wire.fold = self.fold  # type: ignore[method-assign]

    async def run(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Run a script."""
        return await self._run(name, *arguments, **options)

    async def run_all(
        self,
        name: str,
        pages: Sequence[Command],
        heed: Callable[[int, Any], None],
        line: str | None,
    ) -> None:
        """Run a script for one page after the other."""
        for number, page in enumerate(pages):
            heed(number, await self.run(name, *page))

    async def pour(
        self, stream: Callable[[], Iterable[Command]], heard: Callable[[int, Any], None]
    ) -> list[Any]:
        """Send the commands of an enqueue."""
        answers: list[Any] = []
        for word, *values in stream():
            if word == "EVALSHA":
                sha, _, _, _, *arguments = values
                if self._names[sha] == "outcome":
                    await self.fold()  # else it would be refused, and wait for that
                answers.append(await self.run(self._names[sha], *arguments))
            else:
                answers += await self._pour(lambda sent=(word, *values): [sent], _unheard)  # type: ignore[misc]
            heard(len(answers) - 1, answers[-1])
        return answers

    async def fold(self, *, enqueues: bool = False) -> None:
        """Bring a batch in."""
        while await self.run("fold", enqueues=enqueues):
            pass


def _unheard(_number: int, _answer: Any) -> None:
    """Told to nobody: it is told by its place in the whole."""
