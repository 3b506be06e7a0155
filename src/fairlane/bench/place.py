"""Where benchmarks run: files of their own, or one store that is dedicated to them. Never anybody's jobs.

Says also what the place is: the machine, the versions, how durable the store is.
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from fairlane.app.counting import count_by_queue, purge_all
from fairlane.model.errors import FairlaneError
from fairlane.model.lifecycle import WAITING
from fairlane.model.scope import Scope
from fairlane.stage.plan import Plan
from fairlane.store.contract import Store
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import DedicateRequest, PurgeRequest
from fairlane.store.opening import open_store

BENCHMARKS: Final = "benchmarks"
"""What a store must be dedicated to before anything here touches it."""

_ALL: Final = Scope.all()
_MB: Final = 2**20


class NotForBenchmarks(FairlaneError):  # noqa: N818 (says more than "error")
    """The store was not made for benchmarks, so nothing was done to it."""


async def dedicate(url: str) -> None:
    """Dedicate an empty store to benchmarks, for good; `NotForBenchmarks` if it is not free."""
    store = open_store(url)
    try:
        await store.upkeep.migrate()
        await store.upkeep.dedicate(DedicateRequest(scope=_ALL, purpose=BENCHMARKS))
    except ValueError as error:
        raise NotForBenchmarks(str(error)) from error
    finally:
        await store.upkeep.aclose()


class Place:
    """A folder, and either a file in it for every run or one store for all of them."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.url = url
        self._runs = 0

    @property
    def scheme(self) -> str:
        """What kind of store is measured."""
        return "sqlite" if self.url is None else self.url.partition(":")[0]

    async def check(self) -> None:
        """Raise `NotForBenchmarks` unless the store is dedicated; files of our own are nobody else's."""
        if self.url is None:
            return
        store = open_store(self.url)
        try:
            if await store.upkeep.purpose(Request(scope=_ALL)) != BENCHMARKS:
                raise NotForBenchmarks(
                    "the store is not for benchmarks; make an empty one and run `fairlane bench dedicate`"
                )
        finally:
            await store.upkeep.aclose()

    @asynccontextmanager
    async def run(self, **more: Any) -> AsyncGenerator[Plan]:
        """Give the plan of a run in a store of its own, or in a queue of its own in the one store.

        Afterwards nothing waits there any more: a file is gone, a queue is purged. What a failed run leaves
        in its folder stays.
        """
        folder = self._new_folder()
        # Names of another run in the same store would find its jobs, its rules and its pauses.
        queue = "bench" if self.url is None else f"bench-{secrets.randbelow(10**9)}"
        url = self.url or f"sqlite:///{folder / 'fairlane.db'}"
        plan = Plan(url=url, folder=str(folder), queue=queue, **more)
        try:
            yield plan
        finally:
            if self.url is not None:
                await _purge(self.url, plan.queues)
        shutil.rmtree(folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        self._runs += 1
        folder = self.folder / f"run-{self._runs}"
        folder.mkdir()
        return folder

    async def describe(self) -> dict[str, str]:
        """Say what kind of store is measured and how durable its answers are, in its own words."""
        async with self.run() as plan:
            store: Store = open_store(plan.url)
            try:
                await store.upkeep.migrate()
                found = await store.upkeep.inspect(InspectRequest(scope=_ALL, at_most=0))
            finally:
                await store.upkeep.aclose()
        where = "files of its own" if self.url is None else "one dedicated store"
        return {"kind": self.scheme, "where": where, **found.settings}


async def _purge(url: str, queues: Sequence[str]) -> None:
    store = open_store(url)
    try:
        for queue in queues:
            counts = (await count_by_queue(store, _ALL, queue)).get(queue, {})
            if any(
                counts.get(state) for state in WAITING
            ):  # else a store would look for it in all its history
                request = PurgeRequest(scope=_ALL, queue=queue, reason="the run is over", who="bench")
                await purge_all(store, request)
    finally:
        await store.upkeep.aclose()


def versions() -> dict[str, str]:
    """Say which Fairlane, Python and SQLite were measured."""
    import apsw  # noqa: PLC0415 (a driver is loaded only when it is needed)

    return {
        "fairlane": version("fairlane"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def host() -> Mapping[str, str | int | float]:
    """Say on what machine, how busy it was before, and whether we go before what else runs on it."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_mb": pages // _MB,
        "load": round(os.getloadavg()[0], 2),
        "priority": "normal" if _is_like_others() else "real-time",
    }


def _is_like_others() -> bool:
    """Whether the system lets others run as soon as it lets us; a system without such a choice does."""
    return not hasattr(os, "sched_getscheduler") or os.sched_getscheduler(0) not in (
        os.SCHED_RR,
        os.SCHED_FIFO,
    )
