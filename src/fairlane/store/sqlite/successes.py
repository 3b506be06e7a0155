"""Settle plain successes together: most settlements are such, and they cost a third of a general one.

Plain is a success of a claim that this writer has handed out itself (`Tx.handed_out`), without a key to free,
a gate to leave or time to charge. What it needs of the job is known from the claim, since a running job
cannot be edited. Whether the claim still stands is asked of the file. Everything else goes the general way.
"""

from __future__ import annotations

from uuid import UUID

from fairlane.model.job import Settlement
from fairlane.model.lifecycle import Event, State
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.sqlite.asking import each_row
from fairlane.store.sqlite.rows import Successes
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tx import HandedOut, Tx

_SQL = load("settle")
_HOMES = load("homes")


def settle_successes(tx: Tx, request: SettleRequest) -> set[UUID]:
    """Settle what is plain of a request and say what that was; the rest is untouched."""
    plain: dict[int, tuple[HandedOut, Settlement]] = {}
    for asked in request.settlements:
        handed = tx.handed_out.pop(asked.id.int, None) if asked.event is Event.SUCCEED else None
        if handed is None or handed.job.fence != asked.fence:
            continue
        if request.scope.covers(handed.job.tenant):
            plain[handed.seq] = (handed, asked)
    claims = [(seq, asked.fence, request.worker) for seq, (_, asked) in plain.items()]
    standing = [plain[seq] for (seq,) in each_row(tx.db, _SQL.standing, claims)]
    rows = Successes(tx.now)
    tx.write_all(_HOMES.live_out, [(handed.seq,) for handed, _ in standing])
    tx.write_all(_HOMES.history_in, [rows.row(handed.seq, handed.job, asked) for handed, asked in standing])
    for handed, _ in standing:
        _leave(tx, handed)
    return {asked.id for _, asked in standing}


def _leave(tx: Tx, handed: HandedOut) -> None:
    """Count one job less that runs, and one more that has succeeded."""
    strand = tx.turns.strand_by_id(handed.strand)
    turn = strand.turn
    strand.jobs -= 1
    turn.running -= 1
    strand.is_changed = turn.is_changed = True
    tx.tally[turn.tenant, turn.queue, State.SUCCEEDED] += 1
    if turn.parked is not None and turn.parked.reason == "running_limit":
        tx.turns.park(turn, None)
    tx.hint(turn.queue)
