"""Read for people: transactions whose statements are planned for the values and table sizes of the moment.

What is cheap differs from one filter to the next, and a plan made while a table was empty would be kept.
Joins are index look-ups for each row of a short list: where the planner expects few rows, any other join
reads a whole table.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fairlane.store.postgres.connection import Connection, Server

_PLANS: Final = (
    "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = off;"
    " SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
)
_IN_ORDER: Final = "; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"
_AT_ONE_INSTANT: Final = "; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


@asynccontextmanager
async def read_transaction(
    server: Server, *, in_order: bool = False, at_one_instant: bool = False
) -> AsyncIterator[Connection]:
    """Lend a connection to read with, in a transaction of its own.

    `in_order`: from indexes, never sorted. `at_one_instant`: all statements see what the first one sees.
    """
    begin = _PLANS + _IN_ORDER * in_order + _AT_ONE_INSTANT * at_one_instant
    async with server.transaction() as connection:
        await connection.execute(begin)
        yield connection
