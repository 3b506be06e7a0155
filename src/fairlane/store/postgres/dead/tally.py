"""Tally what dead letters have in common, latest death first: no letter leaves the server (S75)."""

from __future__ import annotations

from typing import Any

from fairlane.model.failure import ErrorClass
from fairlane.store.contract.dead import DeadTally, DeadTallyPage, DeadTallyRequest
from fairlane.store.contract.request import JobPosition, to_cursor
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.dead.scan import scan_of, start_of, values_of
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load


async def tally(server: Server, request: DeadTallyRequest) -> DeadTallyPage:
    """Return what the next rows add up to, and a cursor if there are more."""
    sql = load("dead", server.schema)
    statement = scan_of(sql, request, sql.tally, sql.cause)
    values = values_of(request, start_of(request, request.cursor), request.limit + 1)
    async with read_transaction(server, in_order=True) as connection:
        *groups, end = await connection.fetch(statement, *values) or [None]
    if end is None:
        return DeadTallyPage((), 0, None)
    is_more = end["letters"] > request.limit
    cursor = to_cursor(JobPosition(end["last_at"], plain_uuid(end["sample"]))) if is_more else None
    return DeadTallyPage(tuple(map(_tally, groups)), min(end["letters"], request.limit), cursor)


def _tally(row: Any) -> DeadTally:
    error_class = row["error_class"]
    return DeadTally(
        fingerprint=row["fingerprint"],
        error_class=None if error_class is None else ErrorClass(error_class),
        tenant=row["tenant"],
        queue=row["queue"],
        task=row["task"],
        review=row["review"],
        letters=row["letters"],
        first_at=row["first_at"],
        last_at=row["last_at"],
        sample=plain_uuid(row["sample"]),
    )
