"""Requests that the API's own description allows and forbids; every answer is as the description says."""

from __future__ import annotations

import asyncio
import traceback
from typing import Final

import apsw

from tests.campaigns.errand import Errand
from tests.simulation.seeds import quiet
from tests.web.api.fuzzing import CHECKS, Fuzzer, fuzzer

ROUND: Final = 2_500
"""Requests to one application: they change and delete what the next ones meet, until little is left."""

_JOBS: Final = 20


async def fuzz_the_api(errand: Errand) -> None:
    """Send requests in rounds, each to a new application, until there are enough or an answer is wrong."""
    errand.versions["store"] = f"SQLite {apsw.sqlite_lib_version()}"
    errand.settings["checks"] = str(len(CHECKS))
    while errand.goes_on and not errand.failures:
        number = errand.draw.getrandbits(32)
        await asyncio.to_thread(_fuzz, errand, number)


def _fuzz(errand: Errand, number: int) -> None:
    with quiet(), fuzzer(jobs=_JOBS) as made:
        try:
            made.fuzz(min(ROUND, errand.wanted - errand.n), number)
        except (AssertionError, BaseExceptionGroup) as error:
            errand.fail(f"seed {number}: {''.join(traceback.format_exception_only(error))[:2_000]}")
        _count(errand, made)


def _count(errand: Errand, made: Fuzzer) -> None:
    for status, times in made.report.statuses.items():
        errand.figures[f"answers_{status // 100}xx"] += times
    for _ in range(made.report.requests):
        errand.done()
