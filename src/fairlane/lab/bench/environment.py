"""Where benchmarks run: in their own files, or in a store dedicated to them. Never in anybody's store.

Also describes it: the machine, the versions, the store's durability.
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

from fairlane.app.admin.paging import count_by_queue, purge_all
from fairlane.lab.workload.plan import RunPlan
from fairlane.model.errors import FairlaneError
from fairlane.model.lifecycle.states import WAITING
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.inspection import InspectRequest
from fairlane.store.contract.request import Request
from fairlane.store.contract.upkeep import DedicateRequest, PurgeRequest
from fairlane.store.opening import open_store

BENCHMARKS: Final = "benchmarks"
"""The purpose that a store must be dedicated to before a benchmark touches it."""

_ALL: Final = Scope.all()
_MB: Final = 2**20


class NotForBenchmarks(FairlaneError):  # noqa: N818 (says more than "error")
    """The store is not dedicated to benchmarks, so nothing was done to it."""


async def dedicate(url: str) -> None:
    """Dedicate an empty store to benchmarks, permanently; `NotForBenchmarks` if it is not empty."""
    store = open_store(url)
    try:
        await store.upkeep.migrate()
        await store.upkeep.dedicate(DedicateRequest(scope=_ALL, purpose=BENCHMARKS))
    except ValueError as error:
        raise NotForBenchmarks(str(error)) from error
    finally:
        await store.upkeep.aclose()


class BenchEnvironment:
    """A folder with a SQLite file for each run, or one store for all runs."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.url = url
        self._runs = 0

    @property
    def scheme(self) -> str:
        """The kind of the measured store."""
        return "sqlite" if self.url is None else self.url.partition(":")[0]

    async def check(self) -> None:
        """Raise `NotForBenchmarks` unless the store is dedicated; our own files need no check."""
        if self.url is None:
            return
        store = open_store(self.url)
        try:
            if await store.upkeep.purpose(Request(scope=_ALL)) != BENCHMARKS:
                raise NotForBenchmarks(
                    "the store is not for benchmarks; create an empty one and run `fairlane bench dedicate`"
                )
        finally:
            await store.upkeep.aclose()

    @asynccontextmanager
    async def run(self, **more: Any) -> AsyncGenerator[RunPlan]:
        """Return the plan of a run in its own file, or in its own queue of the one store.

        Afterwards the file is deleted, or the queue purged. The files of a failed run stay.
        """
        folder = self._new_folder()
        # Another run's queue in the same store would have its jobs, rules and pauses.
        queue = "bench" if self.url is None else f"bench-{secrets.randbelow(10**9)}"
        url = self.url or f"sqlite:///{folder / 'fairlane.db'}"
        plan = RunPlan(url=url, folder=str(folder), queue=queue, **more)
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
        """Return the kind of the store and its own settings, such as its durability."""
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
    """Return the versions of Fairlane, Python and SQLite."""
    import apsw  # noqa: PLC0415 (a driver is loaded only when it is needed)

    return {
        "fairlane": version("fairlane"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def host() -> Mapping[str, str | int | float]:
    """Return the machine, its load before the run, and the scheduling priority of this process."""
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
    """Whether this process has normal scheduling priority; always true where there is no other."""
    return not hasattr(os, "sched_getscheduler") or os.sched_getscheduler(0) not in (
        os.SCHED_RR,
        os.SCHED_FIFO,
    )
