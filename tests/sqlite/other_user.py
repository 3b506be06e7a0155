"""A program: enqueue one job as another user, who shares nothing with the file's owner but a group.

With the word `groups` it also says whose the store's files are then.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 (loaded late, when another user may not read the library any more)
import os
import sys

from fairlane.store.sqlite.location import Location
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import World
from tests.oracle.clock import DrivenClock

NOBODY = 65534


async def main(url: str, *, shows_groups: bool) -> None:
    """Enqueue and say so."""
    clock = DrivenClock()
    world = World(SqliteStore(url, clock.now), clock)
    await world.enqueue("other")
    if shows_groups:
        for path in sorted(Location(url).path.parent.iterdir()):
            print(path.name, f"{path.stat().st_mode & 0o777:o}", path.stat().st_gid)
    await world.store.upkeep.aclose()
    print("ok")


if __name__ == "__main__":
    os.setgroups([int(sys.argv[2])])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    asyncio.run(main(sys.argv[1], shows_groups="groups" in sys.argv))
