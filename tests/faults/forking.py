"""A program: open a store, fork, and use it on both sides."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from fairlane.lab import ledger
from fairlane.model.errors import StoreError
from fairlane.model.instants import SECOND
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import ALL
from tests.faults.campaign import Actor, verify

WAIT = WaitRequest(scope=ALL, worker="w1", queues=("default",), at_most=SECOND // 100)


def in_child(act: Callable[[], Coroutine[None, None, None]]) -> None:
    """Do it in a forked child, which must end well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asyncio.run(act())
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the child failed"


async def refuses(actor: Actor) -> None:
    """Every verb says clearly why not."""
    for verb in (actor.enqueue, actor.counts, actor.start, lambda: actor.store.registry.wait(WAIT)):
        with pytest.raises(StoreError, match=r"forked .* after the fork"):
            await verb()


def main(file: Path) -> None:
    """Fork before, during and after the life of a store."""
    url = f"sqlite:///{file}"
    records: list[ledger.Record] = []
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete
    actor = Actor(SqliteStore(url), records.append)

    # Not opened yet: the child may be the first to open it, and the parent opens its own.
    async def use() -> None:
        await Actor(actor.store).enqueue()
        await actor.store.upkeep.aclose()

    in_child(use)
    assert run(actor.states()).total() == 1
    run(actor.store.registry.wait(WAIT))
    run(actor.give(actor.new()))
    sockets = list(Path(f"{file}.wake").iterdir())
    assert len(sockets) == 1

    # Open: neither the inherited store nor a new one on its file, which the library believes to have open.
    async def inherited() -> None:
        await refuses(actor)
        await actor.store.upkeep.aclose()
        other = Actor(SqliteStore(url))
        await refuses(other)
        await other.store.upkeep.aclose()
        elsewhere = Actor(SqliteStore(f"{url}.other"))
        await elsewhere.enqueue()
        await elsewhere.store.upkeep.aclose()

    for _ in range(5):
        in_child(inherited)
        run(actor.give(actor.new()))
    assert list(Path(f"{file}.wake").iterdir()) == sockets
    assert run(actor.states()).total() == 7
    run(actor.store.upkeep.aclose())

    # Closed before: free again.
    in_child(use)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    sent = {one.job for one in records if isinstance(one, ledger.Attempted)}
    assert len(sent) == 6
    asyncio.run(_finish(file, sent))
    print("ok")


async def _finish(file: Path, sent: set[str]) -> None:
    store = SqliteStore(f"sqlite:///{file}")
    jobs = await Actor(store).find_all()
    await store.upkeep.aclose()
    assert len(jobs) == 8
    assert sent <= {str(job.id) for job in jobs}
    strangers = [str(job.id) for job in jobs if str(job.id) not in sent]
    known = [
        ledger.Acknowledged(job=id, tenant="acme", queue="default", task="noop", at=0)
        for id in [*sent, *strangers]
    ]
    await verify(file, known)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
