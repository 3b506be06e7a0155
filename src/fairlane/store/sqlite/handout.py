"""Hand out jobs in the fair order, one after the other, from as few rows as possible.

The order is that of the contract: the lowest clock, then the lowest head of its strands. Turns, strands and
jobs are read in pages, in the order of their indexes, only as far as the claim really comes; everything it
meets and may not serve is parked (S42).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, Final

from fairlane.model.fairness import charge
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.job import Claim
from fairlane.model.lifecycle import Because, State, because, is_expired
from fairlane.model.moves import claimed, promoted, stopped
from fairlane.store.contract.claims import DUE_MOST, PARK_MOST, ClaimRequest
from fairlane.store.sqlite.asking import all_rows, one_value
from fairlane.store.sqlite.blocks import Terms, queue_block
from fairlane.store.sqlite.homes import Held, free_dedup, move, read_live
from fairlane.store.sqlite.rows import EXPIRES_AT, SORT_KEY, Row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Parked, Strand, Turn
from fairlane.store.sqlite.tx import HandedOut, Tx
from fairlane.store.sqlite.waking import Waking

_SQL = load("claim")
_HOMES = load("homes")

_TURN_PAGE: Final = 64
_STRAND_PAGE: Final = 8
_FIRST_JOBS: Final = 2
_MOST_JOBS: Final = 64
_BEFORE_ALL: Final = (-(2**63), b"")


class _Jobs:
    """The jobs of one strand in their order, read in growing pages and understood only when taken."""

    def __init__(self, tx: Tx, strand: Strand) -> None:
        self._tx = tx
        self._strand = strand
        self._rows: list[tuple[Any, ...]] = []
        self._edge: tuple[int, bytes] = _BEFORE_ALL
        self._page = _FIRST_JOBS
        self._is_all = False

    def first(self) -> Row | None:
        if not self._rows and not self._is_all:
            rows = all_rows(self._tx.db, _SQL.jobs, (self._strand.id, *self._edge, self._page))
            self._is_all = len(rows) < self._page
            self._page = min(_MOST_JOBS, self._page * 4)
            self._rows = rows[::-1]
            if rows:
                self._edge = _place(rows[-1])
        return self._rows[-1] if self._rows else None

    def take(self) -> Held:
        return read_live(self._rows.pop())


class _Strands:
    """The open strands of one turn, the lowest head first."""

    def __init__(self, tx: Tx, turn: Turn) -> None:
        self._tx = tx
        self._turn = turn
        self._heap: list[tuple[tuple[int, bytes], int, Strand]] = []
        self._edge: tuple[int, bytes] = _BEFORE_ALL
        known = tx.turns.open_strands(turn)
        self._is_all = known is not None
        self._jobs: dict[int, _Jobs] = {}
        for strand in known or ():
            self.push(strand)

    def push(self, strand: Strand) -> None:
        if strand.head is not None and strand.is_open:
            heappush(self._heap, (strand.head, strand.id, strand))

    def first(self) -> Strand:
        while not self._heap or (not self._is_all and self._heap[0][0] > self._edge):
            rows = all_rows(self._tx.db, _SQL.strands, (self._turn.id, *self._edge, _STRAND_PAGE))
            self._is_all = len(rows) < _STRAND_PAGE
            for row in rows:
                self.push(self._tx.turns.know_strand(row, self._turn))
            if rows:
                self._edge = (rows[-1][6], rows[-1][7])
        return self._heap[0][2]

    def drop(self) -> None:
        heappop(self._heap)

    def jobs(self, strand: Strand) -> _Jobs:
        found = self._jobs.get(strand.id)
        if found is None:
            found = self._jobs[strand.id] = _Jobs(self._tx, strand)
        return found


class _Turns:
    """The ready tenants of one queue, the lowest clock first."""

    def __init__(self, tx: Tx, queue: str, *, newcomers: bool, only: str | None) -> None:
        self._tx = tx
        self._queue = queue
        self._only = only
        self._newcomers = newcomers
        self._heap: list[tuple[int, int, Turn]] = []
        self._seen: set[int] = set()
        self._edge = (-1, -1)
        self._is_all = False

    def push(self, turn: Turn) -> None:
        self._seen.add(turn.id)
        if turn.is_ready and self._only in {None, turn.tenant} and not (self._newcomers and turn.running):
            heappush(self._heap, (turn.vt, turn.ready_since, turn))

    def first(self) -> Turn | None:
        while True:
            while not self._is_all and (not self._heap or self._heap[0][:2] > self._edge):
                self._read()
            if not self._heap:
                return None
            vt, since, turn = self._heap[0]
            if turn.is_ready and (turn.vt, turn.ready_since) == (vt, since):
                return turn
            heappop(self._heap)

    def drop(self) -> None:
        heappop(self._heap)

    def _read(self) -> None:
        if self._only is not None:
            turn = self._tx.turns.find(self._queue, self._only)
            self._is_all = True
            if turn is not None:
                self.push(turn)
            return
        statement = _SQL.newcomers if self._newcomers else _SQL.turns
        rows = all_rows(self._tx.db, statement, (self._queue, *self._edge, _TURN_PAGE))
        self._is_all = len(rows) < _TURN_PAGE
        for row in rows:
            turn = self._tx.turns.know(row)
            if turn.id not in self._seen:
                self.push(turn)
        if rows:
            self._edge = (rows[-1][3], rows[-1][4])


class Handout:
    """One claim in the making."""

    def __init__(self, tx: Tx, request: ClaimRequest, only: str | None = None) -> None:
        """Have served nothing yet; `only` passes other tenants over (a peek)."""
        self._tx = tx
        self._request = request
        self._only = only
        self._terms = Terms(tx)
        self._claims: list[Claim] = []
        self._wakings: dict[str, Waking] = {}
        self._turns: dict[tuple[str, bool], _Turns] = {}
        self._strands: dict[int, _Strands] = {}
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
        return self._claims

    @property
    def is_partial(self) -> bool:
        """Whether a bound was met before the total was full."""
        is_bound_met = self._is_cut_short or any(waking.is_partial for waking in self._wakings.values())
        return is_bound_met and len(self._claims) < self._request.total

    def _make_ready(self, queue: str) -> None:
        """Let in what time, a changed policy or a gate's room has made ready in a queue."""
        promoted_now = promote_due(self._tx, queue)
        if promoted_now:
            self._tx.flush()
            self._is_cut_short = self._is_cut_short or promoted_now == DUE_MOST
        waking = self._wakings[queue] = Waking(self._tx, queue, self._only)
        if waking.run():
            self._tx.flush()

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
            turn = turns.first()
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

    def _serve(self, turn: Turn, strand: Strand, jobs: _Jobs, *, newcomers: bool) -> Claim:
        tx, request = self._tx, self._request
        is_lowest = not newcomers and self._only is None
        tx.turns.raise_floor(turn.queue, turn.vt if is_lowest else tx.turns.virtual_now(turn.queue))
        held = jobs.take()
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
        claim = (job.attempt, job.fence, job.worker, job.started_at, job.lease_until)
        tx.write(_SQL.claimed, *claim, gate, is_alone, cost, held.seq)
        place = (job.sort_key, job.id.bytes)
        tx.write(_HOMES.ready_out, strand.id, *place)
        turn.running += 1
        following = jobs.first() if strand.ready > 1 else None
        tx.turns.take_head(strand, place, None if following is None else _place(following))
        if gate is None and cost is None and not held.has_keys:
            tx.remember(HandedOut(held.seq, strand.id, job))
        return Claim(job, job.fence, tx.now + request.lease, is_alone)

    def _expire(self, strand: Strand, jobs: _Jobs) -> None:
        held = jobs.take()
        move(self._tx, held, stopped(held.job, State.CANCELLED, because(Because.EXPIRED), self._tx.now))
        self._next_head(strand, jobs)

    def _next_head(self, strand: Strand, jobs: _Jobs) -> None:
        """Set the head from what was read, so that nobody has to look for it."""
        following = jobs.first() if strand.ready else None
        strand.head = None if following is None else _place(following)
        strand.is_head_stale = False

    def _turns_of(self, queue: str, *, newcomers: bool) -> _Turns:
        found = self._turns.get((queue, newcomers))
        if found is None:
            found = _Turns(self._tx, queue, newcomers=newcomers, only=self._only)
            self._turns[queue, newcomers] = found
        return found

    def _strands_of(self, turn: Turn) -> _Strands:
        found = self._strands.get(turn.id)
        if found is None:
            found = self._strands[turn.id] = _Strands(self._tx, turn)
        return found

    def _fill_gates(self, waking: Waking, turns: _Turns) -> bool:
        """Fill the gates once more: what was woken for a place may have been held by something else (S43)."""
        is_any_ready = False
        for strand in waking.fill_gates():
            if strand.turn.is_ready:
                is_any_ready = True
                turns.push(strand.turn)
            strands = self._strands.get(strand.turn.id)
            if strands is not None:
                strands.push(strand)
        self._tx.flush()
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


def _place(row: Row) -> tuple[int, bytes]:
    return row[SORT_KEY], row[1]
