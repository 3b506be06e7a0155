"""Follow the jobs that run in place of dead ones: note in the letters how they have ended."""

from __future__ import annotations

import msgspec

from fairlane.model.journal.facts import reprocess_success
from fairlane.model.lifecycle.states import State
from fairlane.model.review import followed
from fairlane.store.audit_entries import success_entry
from fairlane.store.contract.dead import DeadLetter, FollowedRun, FollowReply, FollowRequest
from fairlane.store.contract.request import MAX_ROWS_READ
from fairlane.store.sqlite.dead.letters import write_review
from fairlane.store.sqlite.query import all_rows
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.letter_rows import to_letter
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("dead")

FIRST_RUN = b""
_LAST_RUN = b"\xff" * 17


class FollowPass(msgspec.Struct, frozen=True):
    """What one pass has done, and the new job after which the next one begins."""

    reply: FollowReply
    after: bytes


def follow(tx: Transaction, request: FollowRequest, after: bytes) -> FollowPass:
    """Do one pass over the new jobs whose end is not known, by their ids; begin again after the last."""
    edge = all_rows(tx.db, _SQL.edge_of_runs, (after, MAX_ROWS_READ - 1))
    end: bytes = edge[0][0] if len(edge) > 1 else _LAST_RUN
    rows = all_rows(tx.db, _SQL.ended_runs, (after, end, request.limit + 1))
    runs = []
    for row in rows[: request.limit]:
        *_, state, settled_at = row
        letter = to_letter(row)
        runs.append(_follow(tx, row[0], letter, None if state is None else State(state), settled_at))
    if len(rows) > request.limit:
        end = runs[-1].job.bytes if runs else after
    is_partial = end != _LAST_RUN
    return FollowPass(FollowReply(tuple(runs), is_partial), end if is_partial else FIRST_RUN)


def _follow(
    tx: Transaction, seq: int, letter: DeadLetter, state: State | None, settled_at: int | None
) -> FollowedRun:
    job, run = letter.job, letter.review.new_run
    if run is None:
        message = f"dead letter {job.id} has a new job in its row and none in its review"
        raise AssertionError(message)
    write_review(tx, seq, followed(letter.review, state, settled_at))
    if state is State.SUCCEEDED:
        tx.append("events", [reprocess_success(job, letter.fingerprint, run.job)])
        tx.append("audit", [success_entry(job.id, job.tenant, run.job)])
    return FollowedRun(job.id, job.tenant, run.job, state)
