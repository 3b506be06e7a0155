"""Settle plain successes together: most settlements are such, and they cost a third of a general one.

Plain is a success of a claim that this writer has handed out itself (`Tx.handed_out`), without a key to free,
a gate to leave or time to charge. What it needs of the job is known from the claim, since a running job
cannot be edited. Whether the claim still stands is asked of the file. Everything else goes the general way.
"""

from __future__ import annotations

from collections import Counter

from fairlane.model.job import Settlement
from fairlane.model.lifecycle import Event, State
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.sqlite.asking import all_rows
from fairlane.store.sqlite.bulk import as_array
from fairlane.store.sqlite.rows import Successes
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Strand
from fairlane.store.sqlite.tx import HandedOut, Tx
from fairlane.store.sqlite.waking import give_back

_SQL = load("settle")
_HOMES = load("homes")


def settle_successes(tx: Tx, request: SettleRequest) -> set[int]:
    """Settle what is plain of a request and give the numbers of its ids; the rest is untouched."""
    plain: dict[int, tuple[HandedOut, Settlement]] = {}
    for asked in request.settlements:
        handed = tx.handed_out.pop(asked.id.int, None) if asked.event is Event.SUCCEED else None
        if handed is None or handed.job.fence != asked.fence:
            continue
        if request.scope.covers(handed.job.tenant):
            plain[handed.seq] = (handed, asked)
    if not plain:
        return set()
    found = all_rows(tx.db, _SQL.standing, (as_array(plain), request.worker))
    standing = [plain[seq] for seq, fence in found if plain[seq][1].fence == fence]
    rows = Successes(tx.now)
    tx.write(_HOMES.live_all_out, as_array(handed.seq for handed, _ in standing))
    tx.write_all(_HOMES.history_in, [rows.row(handed.seq, handed.job, asked) for handed, asked in standing])
    jobs = Counter([handed.strand for handed, _ in standing])
    for strand in tx.turns.strands_by_id(jobs):
        _leave(tx, strand, jobs[strand.id])
    return {asked.id.int for _, asked in standing}


def _leave(tx: Tx, strand: Strand, jobs: int) -> None:
    """Count so many jobs of a strand less that run, and as many more that have succeeded."""
    turn = strand.turn
    strand.jobs -= jobs
    turn.running -= jobs
    strand.is_changed = turn.is_changed = True
    tx.tally[turn.tenant, turn.queue, State.SUCCEEDED] += jobs
    give_back(tx, turn)
