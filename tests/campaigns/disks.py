"""Harm the disk under SQLite: cut writes and the power at any step, fill it, let it fail."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import apsw
import pytest

from tests.campaigns.errand import Errand
from tests.faults.deaths import Stage
from tests.faults.disk import Fault
from tests.faults.failing import fail_at_random

_HITS: Final = 0.8
_ENOUGH: Final = 40
"""Faults of which the share that hits says something."""


async def die_in_a_write(errand: Errand) -> None:
    """Die at a step that was drawn, by a torn write or a cut of the power; what was acknowledged is there."""
    errand.versions["store"] = f"SQLite {apsw.sqlite_lib_version()}"
    errand.settings |= {"journal_mode": "wal", "synchronous": "full"}
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        stage = Stage(Path(name), patch)
        steps = await stage.prepare(errand.draw)
        while errand.goes_on:
            fault: Fault = "torn" if errand.n % 2 else "power"
            told = await stage.die(fault, errand.draw.randint(1, steps), errand.draw)
            errand.figures["told"] += told.total()
            errand.figures[fault] += 1
            errand.done()
    _judge_aim(errand, errand.figures["told"])


async def fill_the_disk(errand: Errand) -> None:
    """Let writes fail at a step that was drawn; each error is clear, and the same store goes on."""
    errand.versions["store"] = f"SQLite {apsw.sqlite_lib_version()}"
    errand.settings |= {"journal_mode": "wal", "synchronous": "full"}
    faults: tuple[Fault, ...] = ("full", "io")
    while errand.goes_on:
        fault = errand.draw.choice(faults)
        times = min(10, errand.wanted - errand.n)
        with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
            failures = await fail_at_random(fault, times, Path(name) / "fairlane.db", patch, errand.draw)
        errand.figures[fault] += failures
        for _ in range(times):
            errand.done()
    _judge_aim(errand, sum(errand.figures[fault] for fault in faults))


def _judge_aim(errand: Errand, hits: int) -> None:
    """Hold the campaign itself to its aim: somebody waits for nearly every step that is drawn."""
    if errand.n >= _ENOUGH and hits < _HITS * errand.n:
        errand.fail(f"only {hits} of {errand.n} faults hit anything")
