"""Huey on SQLite and on Redis: threads, no results kept. A job is gone once it is fetched: at most once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from huey import RedisHuey, SqliteHuey

from benchmarks.peers.protocol import Job, PeerDriver, slots, url, work

_THREADS: Final = slots(8)
_FILE: Final = urlsplit(url()).path if url().startswith("sqlite") else None

huey = SqliteHuey("b", filename=_FILE, results=False) if _FILE else RedisHuey("b", url=url(), results=False)


@huey.task()
def job(number: int, millis: int) -> None:
    """Leave a mark."""
    work(number, millis)


class Peer(PeerDriver):
    """There is no bulk enqueue: jobs go in one by one."""

    packages = ("huey",)

    def settings(self) -> str:
        """Say how many threads and, as Huey leaves that to SQLite, what durability is in force."""
        return f"{_THREADS} threads, no results{_durability() if _FILE else ''}; at most once"

    def worker(self) -> Sequence[str]:
        """Threads are what the documentation advises for short jobs."""
        return ["huey_consumer", "benchmarks.peers.drivers.huey.huey", "-k", "thread", f"-w{_THREADS}", "-q"]

    async def enqueue(self, jobs: Sequence[Job]) -> None:
        """One after the other."""
        for one in jobs:
            job(one.number, one.millis)

    async def one(self, job_: Job) -> None:
        """Enqueue by calling."""
        job(job_.number, job_.millis)


def _durability() -> str:
    ask = huey.storage.conn.execute
    ((mode,), (synchronous,)) = (ask(f"pragma {name}").fetchone() for name in ("journal_mode", "synchronous"))
    return f", journal_mode={mode}, synchronous={('off', 'normal', 'full', 'extra')[synchronous]}"
