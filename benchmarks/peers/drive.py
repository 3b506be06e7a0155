"""The process of a driver: load it by name and do what the harness asks. Standard library only."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import platform
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.peers.protocol import DriverInfo, Job, PeerDriver


def main(name: str, verb: str) -> None:
    """Do what the command line asks."""
    driver: PeerDriver = import_module(f"benchmarks.peers.drivers.{name}").Peer()
    if verb == "worker":
        program, *arguments = driver.worker()
        # The peer's programs stand beside its interpreter, which need not be on the path.
        beside = str(Path(sys.executable).parent / program)
        os.execv(beside, [beside, *arguments])  # noqa: S606 (no shell is wanted)
    asyncio.run({"prepare": _prepare, "produce": _produce}[verb](driver))


async def _prepare(driver: PeerDriver) -> None:
    unsupported = await driver.prepare()
    versions = {name: version(name) for name in driver.packages}
    hello = DriverInfo({**versions, "python": platform.python_version()}, driver.settings(), unsupported)
    _say(dataclasses.asdict(hello))


async def _produce(driver: PeerDriver) -> None:
    await driver.open()
    _say({"open": True})
    # Read in a thread, so that connections that live in the loop are looked after meanwhile.
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(await answer(driver, json.loads(line)))


async def answer(driver: PeerDriver, asked: dict[str, Any]) -> dict[str, Any]:
    """Do one request and return when it began and ended.

    `many` enqueues `jobs` from number `first` on, for so many `tenants` in turn; `one` enqueues a single job;
    `finished` asks for the peer's own count.
    """
    if asked["do"] == "finished":
        return {"finished": await driver.finished()}
    if asked["do"] == "one":
        job = Job(asked["number"], asked["tenant"], asked["millis"])
        before = time.monotonic_ns()
        await driver.one(job)
    else:
        numbers = range(asked["first"], asked["first"] + asked["jobs"])
        jobs = [Job(number, f"t{number % asked['tenants']}", asked["millis"]) for number in numbers]
        before = time.monotonic_ns()
        await driver.enqueue(jobs)
    return {"before": before, "after": time.monotonic_ns()}


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
