"""Hand out jobs in the fair order, one after the other, from as few rows as possible.

The order is that of the contract: the lowest clock, then the lowest head of its strands. `pages` reads only
as far as the claim really comes; everything it meets and may not serve is parked (S42).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from fairlane.model.fairness import charge
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import Claim
from fairlane.model.lifecycle import Because, State, because, is_expired
from fairlane.model.moves import claimed, promoted, stopped
from fairlane.store.contract.claims import DUE_MOST, PARK_MOST, ClaimRequest
from fairlane.store.sqlite.asking import all_rows, one_value
from fairlane.store.sqlite.blocks import Terms, queue_block
from fairlane.store.sqlite.bulk import as_array
from fairlane.store.sqlite.homes import free_dedup, move, read_live
from fairlane.store.sqlite.pages import Ahead, Jobs, Strands, Turns, place_of
from fairlane.store.sqlite.rows import EXPIRES_AT
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Parked, Strand, Turn
from fairlane.store.sqlite.tx import HandedOut, Tx
from fairlane.store.sqlite.waking import Waking

_SQL = load("claim")


class Handout:
    """One claim in the making."""

    def __init__(self, tx: Tx, request: ClaimRequest, only: str | None = None) -> None:
        """Have served nothing yet; `only` passes other tenants over (a peek)."""
        self._tx = tx
        self._request = request
        self._only = only
        self._terms = Terms(tx)
        self._ahead = Ahead(tx)
        self._claims: list[Claim] = []
        self._wakings: dict[str, Waking] = {}
        self._turns: dict[tuple[str, bool], Turns] = {}
        self._strands: dict[int, Strands] = {}
        self._started: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        self._taken: dict[int, tuple[int, bytes]] = {}
        self._parked = 0
        self._is_cut_short = False

    def run(self) -> list[Claim]:
        """Serve the wishes in order until the total is full."""
        for wish in self._request.wishes:
            if len(self._claims) >= self._request.total:
                break
            if wish.queue not in self._wakings:
                self._make_ready(wish.queue)
            if queue_block(self._tx, wish.queue) is None:
                self._serve_wish(wish.queue, wish.most)
        self._flush()
        return self._claims

    @property
    def is_partial(self) -> bool:
        """Whether a bound was met before the total was full."""
        is_bound_met = self._is_cut_short or any(waking.is_partial for waking in self._wakings.values())
        return is_bound_met and len(self._claims) < self._request.total

    def _flush(self) -> None:
        """Write what was claimed, jobs that started alike and jobs of one strand at a time, and all else."""
        for alike, seqs in self._started.items():
            self._tx.write(_SQL.claimed, *alike, as_array(seqs))
        self._tx.write_all(_SQL.taken, [(strand, *place) for strand, place in self._taken.items()])
        self._started.clear()
        self._taken.clear()
        self._tx.flush()

    def _make_ready(self, queue: str) -> None:
        """Let in what time, a changed policy or a gate's room has made ready in a queue."""
        promoted_now = promote_due(self._tx, queue)
        if promoted_now:
            self._flush()
            self._is_cut_short = self._is_cut_short or promoted_now == DUE_MOST
        waking = self._wakings[queue] = Waking(self._tx, queue, self._only)
        if waking.run():
            self._flush()

    def _serve_wish(self, queue: str, most: int) -> None:
        taken = 0
        while taken < most and len(self._claims) < self._request.total:
            left = self._request.total - len(self._claims)
            if not self._serve_one(queue, newcomers=left <= self._request.headroom):
                return
            taken += 1
            if self._terms.queue(queue).rate and queue_block(self._tx, queue) is not None:
                return

    def _serve_one(self, queue: str, *, newcomers: bool) -> bool:
        """Serve the one job whose turn it is; False if there is none."""
        tx = self._tx
        turns = self._turns_of(queue, newcomers=newcomers)
        while self._parked < PARK_MOST:  # the work of one claim is bounded (S42)
            turn = turns.first(self._request.total - len(self._claims))
            if turn is None:
                if self._fill_gates(self._wakings[queue], turns):
                    continue
                return False
            block = self._terms.turn_block(turn)
            if block is not None:
                turns.drop()
                self._park(turn, block, turn)
                continue
            strands = self._strands_of(turn)
            strand = strands.first()
            block = self._terms.strand_block(strand.task)
            if block is not None:
                strands.drop()
                self._park(strand, block, turn)
                continue
            jobs = strands.jobs(strand)
            first = jobs.first()
            if first is None:
                message = f"strand {strand.id} counts {strand.ready} ready jobs and has none"
                raise AssertionError(message)
            strands.drop()
            turns.drop()
            is_served = not is_expired(first[EXPIRES_AT], tx.now)
            if is_served:
                self._claims.append(self._serve(turn, strand, jobs, newcomers=newcomers))
            else:
                self._expire(strand, jobs)
            strands.push(strand)
            turns.push(turn)
            if is_served:
                return True
        self._is_cut_short = True
        return False

    def _park(self, what: Turn | Strand, block: Parked, turn: Turn) -> None:
        """Put something out of the way, of this claim and of the next."""
        self._tx.turns.park(what, block)
        self._parked += 1
        if block.reason == "gate":
            self._wakings[turn.queue].note_at_gate()

    def _serve(self, turn: Turn, strand: Strand, jobs: Jobs, *, newcomers: bool) -> Claim:
        tx, request = self._tx, self._request
        is_lowest = not newcomers and self._only is None
        tx.turns.raise_floor(turn.queue, turn.vt if is_lowest else tx.turns.virtual_now(turn.queue))
        first = jobs.take()
        held = read_live(first)
        cost: Micros | None = None
        if self._terms.queue(turn.queue).cost == "seconds":
            cost = tx.shelves.estimates[turn.queue, strand.task]
            if held.job.timeout is not None:
                cost = min(cost, held.job.timeout)
        tx.turns.charge(turn, charge(self._terms.stride(turn), SECOND if cost is None else cost))
        gate = self._terms.count_start(turn, strand.task)
        job = claimed(held.job, request.worker, request.lease, tx.now)
        if job.dedup_until == "started":
            free_dedup(tx, job)
        is_alone = job.is_suspect and request.isolates
        alike = (job.attempt, job.fence, job.worker, job.started_at, job.lease_until, gate, is_alone, cost)
        self._started[alike].append(held.seq)
        place = self._taken[strand.id] = place_of(first)
        turn.running += 1
        tx.turns.take_head(strand, place, jobs.place() if strand.ready > 1 else None)
        if gate is None and cost is None and not held.has_keys:
            tx.remember(HandedOut(held.seq, strand.id, job))
        return Claim(job, job.fence, tx.now + request.lease, is_alone)

    def _expire(self, strand: Strand, jobs: Jobs) -> None:
        held = read_live(jobs.take())
        move(self._tx, held, stopped(held.job, State.CANCELLED, because(Because.EXPIRED), self._tx.now))
        self._next_head(strand, jobs)

    def _next_head(self, strand: Strand, jobs: Jobs) -> None:
        """Set the head from what was read, so that nobody has to look for it."""
        strand.head = jobs.place() if strand.ready else None
        strand.is_head_stale = False

    def _turns_of(self, queue: str, *, newcomers: bool) -> Turns:
        found = self._turns.get((queue, newcomers))
        if found is None:
            found = Turns(self._tx, queue, self._ahead, newcomers=newcomers, only=self._only)
            self._turns[queue, newcomers] = found
        return found

    def _strands_of(self, turn: Turn) -> Strands:
        found = self._strands.get(turn.id)
        if found is None:
            found = self._strands[turn.id] = Strands(self._tx, turn, self._ahead)
        return found

    def _fill_gates(self, waking: Waking, turns: Turns) -> bool:
        """Fill the gates once more: what was woken for a place may have been held by something else (S43)."""
        is_any_ready = False
        for strand in waking.fill_gates():
            if strand.turn.is_ready:
                is_any_ready = True
                turns.push(strand.turn)
            strands = self._strands.get(strand.turn.id)
            if strands is not None:
                strands.push(strand)
        self._flush()
        return is_any_ready


def promote_due(tx: Tx, queue: str) -> int:
    """Make due delayed jobs of a queue ready, earliest first, as many as one claim may; say how many."""
    rows = all_rows(tx.db, _SQL.due, (queue, tx.now, DUE_MOST))
    for row in rows:
        held = read_live(row)
        move(tx, held, promoted(held.job))
    return len(rows)


def next_due(tx: Tx, queues: Iterable[str]) -> Instant | None:
    """Say when time alone makes the next job of these queues claimable."""
    times: list[Instant | None] = []
    for queue in queues:
        times.append(one_value(tx.db, _SQL.next_delayed, (queue,)))
        times.append(one_value(tx.db, _SQL.next_woken, (queue,)))
        block = queue_block(tx, queue)
        if block is not None and one_value(tx.db, _SQL.has_ready, (queue,)):
            times.append(block.until)
    return min((time for time in times if time is not None), default=None)
