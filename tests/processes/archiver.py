"""A leader that archives what has ended, and says a dot before each call of the store.

python -m tests.processes.archiver sqlite:///FILE FOLDER
"""

from __future__ import annotations

import asyncio
import sys

from fairlane.app.archive_settings import ArchiveSettings
from fairlane.duties.prune import Prune
from fairlane.model.policy.retention import Retention
from fairlane.store.opening import open_store
from tests.duties.journals.interrupted import InterruptedStore


class Telling(InterruptedStore):
    """Says a dot before each call."""

    async def called(self) -> None:
        """Say it."""
        print(end=".", flush=True)


async def main(url: str, folder: str) -> None:
    """Make one pass over what has ended."""
    store = open_store(url)

    async def nothing() -> None:
        """Do nothing."""

    duty = Prune(Retention(succeeded=0, cancelled=0, dead=0, results=0), ArchiveSettings(to=folder))
    await duty(Telling(store, 0, nothing))
    await store.upkeep.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
