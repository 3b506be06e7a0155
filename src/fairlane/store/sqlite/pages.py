"""Read turns, strands and jobs in the order of their indexes, a page at a time. Decides nothing.

What a transaction knows of them already is newer than what is read, and is not read again.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from fairlane.store.sqlite.asking import all_rows
from fairlane.store.sqlite.bulk import as_array
from fairlane.store.sqlite.rows import SORT_KEY
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Strand, Turn
from fairlane.store.sqlite.tx import Tx

_SQL = load("claim")

_Row: TypeAlias = tuple[Any, ...]

_TURN_PAGE: Final = 64
_STRAND_PAGE: Final = 8
_FIRST_JOBS: Final = 2
_MOST_JOBS: Final = 64
_BEFORE_ALL: Final = (-(2**63), b"")
_STRAND_WIDTH: Final = 13


def place_of(row: _Row) -> tuple[int, bytes]:
    """Give the place of a job in its strand."""
    return row[SORT_KEY], row[1]


class Ahead:
    """The first jobs of tenants that will all be served, read at once: each by itself costs three times that.

    Only for tenants with one open strand, as most have: there is no doubt which job is their first. Of the
    one behind it only its place is read.
    """

    def __init__(self, tx: Tx) -> None:
        """Have looked at nothing yet."""
        self._tx = tx
        self._rows: dict[int, tuple[_Row, tuple[int, bytes] | None]] = {}

    def look(self, turns: list[Turn]) -> None:
        """Read the first jobs of these, unless there is only one."""
        plain = {turn.id: turn for turn in turns if turn.open_strands == 1}
        if len(plain) > 1:
            for row in all_rows(self._tx.db, _SQL.heads, (as_array(plain),)):
                turn = plain[row[1]]
                if row[0] not in turn.strands:
                    self._tx.turns.know_strand(row[:_STRAND_WIDTH], turn)
                following = None if row[-1] is None else row[-2:]
                self._rows[row[0]] = (row[_STRAND_WIDTH:-2], following)

    def jobs(self, strand: Strand) -> Jobs:
        """Give the jobs of a strand, the first of them at hand if it was read and is still the first."""
        first, following = self._rows.pop(strand.id, (None, None))
        if first is None or place_of(first) != strand.head:
            return Jobs(self._tx, strand)
        return Jobs(self._tx, strand, first, following)


class Jobs:
    """The jobs of one strand in their order, read in growing pages and understood only when taken."""

    def __init__(
        self, tx: Tx, strand: Strand, first: _Row | None = None, following: tuple[int, bytes] | None = None
    ) -> None:
        """Begin with the first row, and with the place of the one behind it, if somebody has read them."""
        self._tx = tx
        self._strand = strand
        self._rows: list[_Row] = [] if first is None else [first]
        self._edge = _BEFORE_ALL if first is None else place_of(first)
        self._following = following
        self._page = _FIRST_JOBS
        self._is_all = False

    def first(self) -> _Row | None:
        """Give the row of the next job."""
        if not self._rows and not self._is_all:
            rows = all_rows(self._tx.db, _SQL.jobs, (self._strand.id, *self._edge, self._page))
            self._is_all = len(rows) < self._page
            self._page = min(_MOST_JOBS, self._page * 4)
            self._rows = rows[::-1]
            self._following = None
            if rows:
                self._edge = place_of(rows[-1])
        return self._rows[-1] if self._rows else None

    def place(self) -> tuple[int, bytes] | None:
        """Give the place of the next job, from what was read if it is there."""
        if self._following is not None and not self._rows:
            return self._following
        first = self.first()
        return None if first is None else place_of(first)

    def take(self) -> _Row:
        """Take the row that `first` gave."""
        return self._rows.pop()


class Strands:
    """The open strands of one turn, the lowest head first."""

    def __init__(self, tx: Tx, turn: Turn, ahead: Ahead) -> None:
        """Begin with those that are known, if all are."""
        self._tx = tx
        self._turn = turn
        self._ahead = ahead
        self._heap: list[tuple[tuple[int, bytes], int, Strand]] = []
        self._edge: tuple[int, bytes] = _BEFORE_ALL
        known = tx.turns.open_strands(turn)
        self._is_all = known is not None
        self._jobs: dict[int, Jobs] = {}
        for strand in known or ():
            self.push(strand)

    def push(self, strand: Strand) -> None:
        """Put a strand where its head says, unless it is closed."""
        if strand.head is not None and strand.is_open:
            heappush(self._heap, (strand.head, strand.id, strand))

    def first(self) -> Strand:
        """Give the strand whose head is the lowest."""
        while not self._heap or (not self._is_all and self._heap[0][0] > self._edge):
            rows = all_rows(self._tx.db, _SQL.strands, (self._turn.id, *self._edge, _STRAND_PAGE))
            self._is_all = len(rows) < _STRAND_PAGE
            for row in rows:
                self.push(self._tx.turns.know_strand(row, self._turn))
            if rows:
                self._edge = (rows[-1][6], rows[-1][7])
        return self._heap[0][2]

    def drop(self) -> None:
        """Leave out the strand that `first` gave."""
        heappop(self._heap)

    def jobs(self, strand: Strand) -> Jobs:
        """Give the jobs of a strand."""
        found = self._jobs.get(strand.id)
        if found is None:
            found = self._jobs[strand.id] = self._ahead.jobs(strand)
        return found


class Turns:
    """The ready tenants of one queue, the lowest clock first."""

    def __init__(self, tx: Tx, queue: str, ahead: Ahead, *, newcomers: bool, only: str | None) -> None:
        """Have read nothing yet."""
        self._ahead = ahead
        self._tx = tx
        self._queue = queue
        self._only = only
        self._newcomers = newcomers
        self._heap: list[tuple[int, int, Turn]] = []
        self._seen: set[int] = set()
        self._edge = (-1, -1)
        self._is_all = False

    def push(self, turn: Turn) -> None:
        """Put a turn where its clock says, unless it may not be served."""
        self._seen.add(turn.id)
        if turn.is_ready and self._only in {None, turn.tenant} and not (self._newcomers and turn.running):
            heappush(self._heap, (turn.vt, turn.ready_since, turn))

    def first(self, left: int) -> Turn | None:
        """Give the turn whose clock is the lowest; so many jobs are still to be claimed."""
        while True:
            while not self._is_all and (not self._heap or self._heap[0][:2] > self._edge):
                self._read(left)
            if not self._heap:
                return None
            vt, since, turn = self._heap[0]
            if turn.is_ready and (turn.vt, turn.ready_since) == (vt, since):
                return turn
            heappop(self._heap)

    def drop(self) -> None:
        """Leave out the turn that `first` gave."""
        heappop(self._heap)

    def _read(self, left: int) -> None:
        if self._only is not None:
            turn = self._tx.turns.find(self._queue, self._only)
            self._is_all = True
            if turn is not None:
                self.push(turn)
            return
        statement = _SQL.newcomers if self._newcomers else _SQL.turns
        rows = all_rows(self._tx.db, statement, (self._queue, *self._edge, _TURN_PAGE))
        self._is_all = len(rows) < _TURN_PAGE
        turns = [turn for turn in map(self._tx.turns.know, rows) if turn.id not in self._seen]
        for turn in turns:
            self.push(turn)
        self._tx.rules.gather([turn.tenant for turn in turns[:left]])
        self._ahead.look(turns[:left])
        if rows:
            self._edge = (rows[-1][3], rows[-1][4])
