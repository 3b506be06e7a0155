"""Send what a store sends together one after the other, so that each script can be watched by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.pipeline import Command
from fairlane.store.redis.script_loader import load

_PIPELINED: Final = ("jobs/batch_publish", "jobs/batch_step", "jobs/batch_result")


class OneByOne:
    """Stand between a store and its client; a subclass says what to do around `run`."""

    def __init__(self, store_client: RedisClient) -> None:
        """Take the place of whatever runs scripts."""
        self._run = store_client.run
        self._pipeline_all = store_client.pipeline_all
        self._names = {load(name).sha: name for name in _PIPELINED}
        store_client.run = self.run  # type: ignore[method-assign]
        store_client.run_pages = self.run_pages  # type: ignore[method-assign]
        store_client.pipeline_all = self.pipeline_all  # type: ignore[method-assign]
        store_client.finish_batch = self.finish_batch  # type: ignore[method-assign]

    async def run(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Run a script."""
        return await self._run(name, *arguments, **options)

    async def run_pages(
        self,
        name: str,
        pages: Sequence[Command],
        on_reply: Callable[[int, Any], None],
        lock: str | None,
    ) -> None:
        """Run a script for one page after the other."""
        for number, page in enumerate(pages):
            on_reply(number, await self.run(name, *page))

    async def pipeline_all(
        self, commands: Callable[[], Iterable[Command]], on_reply: Callable[[int, Any], None]
    ) -> list[Any]:
        """Send the commands of an enqueue."""
        answers: list[Any] = []
        for word, *values in commands():
            if word == "EVALSHA":
                sha, _, _, _, *arguments = values
                if self._names[sha] == "jobs/batch_result":
                    await self.finish_batch()  # else it would be refused, and wait for that
                answers.append(await self.run(self._names[sha], *arguments))
            else:
                answers += await self._pipeline_all(lambda sent=(word, *values): [sent], _ignore)  # type: ignore[misc]
            on_reply(len(answers) - 1, answers[-1])
        return answers

    async def finish_batch(self, *, is_enqueue: bool = False) -> None:
        """Bring a batch in."""
        while await self.run("jobs/batch_step", is_enqueue=is_enqueue):
            pass


def _ignore(_number: int, _answer: Any) -> None:
    """Told to nobody: it is told by its place in the whole."""
