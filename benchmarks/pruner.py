"""A leader that does nothing but prune, pass after pass: a process beside those that are measured.

python -m benchmarks.pruner sqlite:///FILE [FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
import time

from fairlane.app.archive_settings import ArchiveSettings
from fairlane.duties.prune import BETWEEN, Prune
from fairlane.model.instants import SECOND
from fairlane.model.policy.retention import Retention
from fairlane.store.opening import open_store


async def main(url: str, folder: str | None = None) -> None:
    """Prune until nothing is left, resting between the passes as the duty does; print the seconds."""
    store = open_store(url)
    duty = Prune(Retention(), ArchiveSettings(to=folder))
    began = time.perf_counter()
    while await duty(store) == BETWEEN:  # noqa: ASYNC110 (it pauses between passes, and waits for nothing)
        await asyncio.sleep(BETWEEN / SECOND)
    print(time.perf_counter() - began)
    await store.upkeep.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
