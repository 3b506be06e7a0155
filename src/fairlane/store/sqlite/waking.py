"""Bring back what was parked: when its time has come, a policy changed, or its gate has room (S42, S43, S54).

A changed policy marks what it may have held by setting its time to wake; claims and promote do the rest, a
bounded number each. What must wait on is parked again by the claim that meets it.
"""

from __future__ import annotations

from fairlane.model.layers import EVERY, Kind, Subject
from fairlane.store.contract.claims import WAKE_MOST
from fairlane.store.sqlite.asking import all_rows, one_row
from fairlane.store.sqlite.blocks import gate_room
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Strand, Turn
from fairlane.store.sqlite.tx import Tx

_SQL = load("waking")


class Waking:
    """What one claim or pass wakes in one queue."""

    def __init__(self, tx: Tx, queue: str, only: str | None = None) -> None:
        """Begin with the whole number; `only` leaves out the strands of other tenants at gates (a peek)."""
        self._tx = tx
        self._queue = queue
        self._only = only
        self._left = WAKE_MOST
        self._is_any_at_gate = False
        self.is_partial = False

    def run(self) -> bool:
        """Wake what time or a changed policy frees, then what gates have room for; say whether anything."""
        has_due, self._is_any_at_gate = one_row(self._tx.db, _SQL.anything, (self._queue, self._tx.now)) or (
            0,
            0,
        )
        if has_due:
            self._wake_due()
        self.fill_gates()
        return self._left < WAKE_MOST

    def note_at_gate(self) -> None:
        """Remember that a strand of this queue was parked at a gate meanwhile."""
        self._is_any_at_gate = True

    def fill_gates(self) -> list[Strand]:
        """Wake of the strands at each gate as many as it has room for; give all that were woken."""
        if not self._is_any_at_gate:
            return []
        self._tx.flush()
        woken: list[Strand] = []
        for (gate,) in all_rows(self._tx.db, _SQL.gates_of_queue, (self._queue,)):
            woken += self._fill(gate)
        return woken

    def _fill(self, gate: str) -> list[Strand]:
        room = gate_room(self._tx, gate)
        woken: list[Strand] = []
        if room == 0:
            return woken
        line = self._tx.db.execute(_SQL.line, (self._queue, gate, self._only))
        for (number,) in line:
            if room == 0 or not self._left:
                self.is_partial = self.is_partial or room != 0
                line.close()
                break
            self._left -= 1
            strand = self._tx.turns.strand_by_id(number)
            self._tx.turns.park(strand, None)
            woken.append(strand)
            if strand.turn.is_ready and room is not None:  # else its tenant cannot take the place
                room -= 1
        return woken

    def _wake_due(self) -> None:
        turns = self._tx.turns
        values = (self._queue, self._tx.now, self._left + 1)
        due: list[tuple[tuple[int, int, int, str], Turn | int]] = [
            ((row[13], row[14], row[15], ""), turns.know(row))
            for row in all_rows(self._tx.db, _SQL.turns_due, values)
        ]
        due += [(row[1:], row[0]) for row in all_rows(self._tx.db, _SQL.strands_due, values)]
        due.sort(key=lambda one: one[0])
        for _, what in due[: self._left]:
            turns.park(what if isinstance(what, Turn) else turns.strand_by_id(what), None)
        self.is_partial = len(due) > self._left
        self._left -= len(due[: self._left])


def mark(tx: Tx, subject: Subject) -> None:
    """Let claims wake everything that the subject may have held, and tell who waits for the queues concerned.

    Who waits at a gate stays in line: each claim looks for room anyway.
    """
    tx.flush()
    is_everyone = subject == Subject(Kind.TENANT, EVERY)
    statement = {
        Kind.QUEUE: _SQL.mark_queue,
        Kind.TENANT: _SQL.mark_everyone if is_everyone else _SQL.mark_tenant,
        Kind.TASK: _SQL.mark_task,
        Kind.GATE: _SQL.mark_gate_rate,
    }[subject.kind]
    values = (tx.now,) if is_everyone else (tx.now, subject.name)
    for queue in {queue for (queue,) in tx.db.execute(statement, values)}:
        tx.hint(queue)
    if subject.kind is Kind.QUEUE:
        tx.hint(subject.name)
    if subject.kind is Kind.GATE:
        hint_at_gate(tx, subject.name)
    tx.turns.clear()  # what it knows, and keeps, is older than the rows now
    tx.turns.forget()


def hint_at_gate(tx: Tx, gate: str) -> None:
    """Tell who waits for the queues in which strands wait at a gate."""
    for (queue,) in all_rows(tx.db, _SQL.queues_of_gate, (gate,)):
        tx.hint(queue)


def give_back(tx: Tx, turn: Turn) -> None:
    """Let a turn come back that its running limit held, as a job of it has ended, and tell who waits.

    No other turn can be served because of that: nobody is told of what an ending changes for nobody.
    """
    if turn.parked is not None and turn.parked.reason == "running_limit":
        tx.turns.park(turn, None)
        tx.hint(turn.queue)
