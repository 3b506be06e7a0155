"""Note in dead letters how the jobs in their place have ended (S75), in bounded passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.journal import facts
from fairlane.model.lifecycle.states import State
from fairlane.model.review import followed
from fairlane.store.audit_entries import success_entry
from fairlane.store.contract.dead import DeadLetter, FollowedRun, FollowReply, FollowRequest
from fairlane.store.contract.request import MAX_ROWS_READ
from fairlane.store.postgres.connection import Connection, Server
from fairlane.store.postgres.dead.letters import locked_letters, write_reviews
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.read_transaction import read_transaction
from fairlane.store.postgres.rows import plain_uuid
from fairlane.store.postgres.statements import load

_LOWEST: Final = UUID(int=0)


class FollowStart:
    """After which new job the next pass begins: most of those that it has met may not have ended yet."""

    def __init__(self) -> None:
        """Begin with the lowest id."""
        self.after = _LOWEST

    def passed(self, rows: Sequence[Any], ended: Sequence[Any], limit: int) -> bool:
        """Note a pass that has read these rows; return whether there may be more that have ended."""
        if len(ended) > limit:
            self.after = plain_uuid(ended[limit - 1]["new_run"])
        elif len(rows) == MAX_ROWS_READ:
            self.after = plain_uuid(rows[-1]["new_run"])
        else:
            self.after = _LOWEST
        return self.after != _LOWEST


async def follow(server: Server, start: FollowStart, request: FollowRequest) -> FollowReply:
    """Take one pass. A letter about which somebody decides at this moment is left to a later one."""
    sql = load("dead", server.schema)
    async with read_transaction(server) as connection:
        rows = await connection.fetch(sql.open_runs, start.after, MAX_ROWS_READ)
        ended = [row for row in rows if row["state"] is not None or row["is_gone"]]
        page = {plain_uuid(row["id"]): row for row in ended[: request.limit]}
        letters = await locked_letters(connection, server.schema, request, page, waits=False)
        runs = [_run(letters[id], row) for id, row in page.items() if id in letters and _is_open(letters[id])]
        settled = {id: row["settled_at"] for id, row in page.items()}
        await _write(server, connection, letters, runs, settled)
    is_partial = start.passed(rows, ended, request.limit)
    return FollowReply(tuple(runs), is_partial)


def _is_open(letter: DeadLetter) -> bool:
    """Whether nobody else has noted the end since it was read."""
    run = letter.review.new_run
    return run is not None and run.is_open


def _run(letter: DeadLetter, row: Any) -> FollowedRun:
    state = None if row["state"] is None else State(row["state"])
    return FollowedRun(letter.job.id, letter.job.tenant, plain_uuid(row["new_run"]), state)


async def _write(
    server: Server,
    connection: Connection,
    letters: dict[UUID, DeadLetter],
    runs: Sequence[FollowedRun],
    settled: dict[UUID, Instant | None],
) -> None:
    schema, now = server.schema, server.now()
    reviews = {run.id: followed(letters[run.id].review, run.state, settled[run.id]) for run in runs}
    await write_reviews(connection, schema, reviews)
    good = [run for run in runs if run.state is State.SUCCEEDED]
    told = [(letters[run.id], run.job) for run in good]
    events = [facts.reprocess_success(one.job, one.fingerprint, new) for one, new in told]
    await append_entries(connection, schema, now, "events", events)
    audit = [success_entry(run.id, run.tenant, run.job) for run in good]
    await append_entries(connection, schema, now, "audit", audit)
