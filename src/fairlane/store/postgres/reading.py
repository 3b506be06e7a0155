"""Read for people: a transaction whose statements are planned for the values and the sizes of the moment.

What is cheap differs from one filter to the next, and a plan made while a table was empty would be kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fairlane.store.postgres.connect import Connection, Server

_PLANS: Final = "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = off"
_IN_ORDER: Final = "; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"


@asynccontextmanager
async def reading(server: Server, *, in_order: bool = False) -> AsyncIterator[Connection]:
    """Give a connection to read with, in a transaction of its own; `in_order`: from indexes, never sorted."""
    async with server.transaction() as connection:
        await connection.execute(_PLANS + _IN_ORDER if in_order else _PLANS)
        yield connection
