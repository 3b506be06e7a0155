"""The protocol between the harness and a driver. Standard library only: every peer loads it.

A driver is a module in `drivers/` with a class `Peer`, a `PeerDriver`. The harness starts it in the peer's
own environment as ``python -m benchmarks.peers.drive NAME VERB``, with these variables:

| variable | what it holds |
|---|---|
| `PEER_URL` | the store of this run, empty at first: `sqlite:///FILE`, `postgresql://…` or `redis://…` |
| `PEER_MARKS` | the file in which handlers leave a mark when they are entered |
| `PEER_SLOTS` | how many jobs may run at once; empty for what the peer does best |
| `PEER_QUEUES`, `PEER_HANDLER` | over how many queues Fairlane's jobs go; `async` or `plain` handlers |
| `PEER_BATCH` | how many jobs to fetch at once, where that can be chosen; empty for the driver's own choice |

| verb | what it does |
|---|---|
| `prepare` | makes tables and the like, prints one `DriverInfo`, ends |
| `worker` | becomes the peer's own worker program; the harness ends it |
| `produce` | reads one JSON object a line and answers each with one: see `drive.answer` |

Everything printed is one JSON object a line, except by `worker`. Moments are nanoseconds of CLOCK_MONOTONIC,
which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

MARK: Final = struct.Struct("<QQ")
"""One mark: the number of the job, and when its handler was entered."""


class Job(NamedTuple):
    """One job: its number, its tenant, and the milliseconds that its handler takes."""

    number: int
    tenant: str = "t0"
    millis: int = 0


@dataclasses.dataclass(frozen=True)
class DriverInfo:
    """What a driver reports: versions, settings, and why it cannot run on this store."""

    versions: dict[str, str]
    settings: str
    unsupported: str | None = None


class PeerDriver(ABC):
    """One peer, used as its documentation recommends. Created anew in every process."""

    packages: tuple[str, ...]
    """The distributions whose versions are told."""

    @abstractmethod
    def settings(self) -> str:
        """Describe the worker's settings in a few words."""

    @abstractmethod
    def worker(self) -> Sequence[str]:
        """Return the command line of the peer's own worker; a bare name is searched in its environment."""

    async def prepare(self) -> str | None:
        """Create what the store needs; return a reason if the peer cannot use this store."""
        return None

    async def open(self) -> None:  # noqa: B027 (many have nothing to open)
        """Connect for producing; the end of the process closes it."""

    @abstractmethod
    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """Enqueue many jobs in the fastest documented way."""

    @abstractmethod
    async def one(self, job: Job) -> None:
        """Enqueue one job; it is stored when this returns."""

    async def finished(self) -> int | None:
        """Return how many jobs the peer itself counts as finished; None if it does not count."""
        return None


async def in_batches(
    jobs: Sequence[Job], size: int, *ways: Callable[[Sequence[Job]], Awaitable[object]]
) -> None:
    """Send jobs in batches, several at the same time; each next batch when one is done.

    With two ways one batch is made while the store works on the other.
    """
    batches = (jobs[start : start + size] for start in range(0, len(jobs), size))

    async def follow(send: Callable[[Sequence[Job]], Awaitable[object]]) -> None:
        for batch in batches:
            await send(batch)

    await asyncio.gather(*map(follow, ways))


def url() -> str:
    """Return the URL of the store of this run."""
    return os.environ["PEER_URL"]


def slots(best: int) -> int:
    """Return how many jobs may run at once, `best` if the harness does not say."""
    return int(os.environ.get("PEER_SLOTS") or best)


def batch(best: int) -> int:
    """Return how many jobs are fetched at once, `best` if the harness does not say."""
    return int(os.environ.get("PEER_BATCH") or best)


# ── in handlers ──────────────────────────────────────────────────────────────

_marks: int | None = None


def mark(number: int) -> None:
    """Append a mark to a file that all processes may share, with a single write."""
    global _marks  # noqa: PLW0603 (one file for each process, opened by the first job)
    if _marks is None:
        _marks = os.open(os.environ["PEER_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(_marks, MARK.pack(number, time.monotonic_ns()))


def work(number: int, millis: int) -> None:
    """The handler of peers that run plain functions."""
    mark(number)
    if millis:
        time.sleep(millis / 1e3)


async def work_async(number: int, millis: int) -> None:
    """The handler of peers that run coroutines."""
    mark(number)
    if millis:
        await asyncio.sleep(millis / 1e3)
