"""Whose turn it is: tenants and strands, entering and leaving the ready index (S41, S42).

A `Turn` is one tenant of one queue, a `Strand` one task of it. They are read when first needed, changed in
memory and written back in bulk. What decides the fair order is in `model.fairness`; when a turn is in the
index is decided in `refresh`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from fairlane.model.fairness import activate, is_forgettable
from fairlane.model.instants import Instant
from fairlane.store.sqlite.asking import all_rows, each_row, one_row, one_value
from fairlane.store.sqlite.bulk import as_array, write_many
from fairlane.store.sqlite.kept import Kept
from fairlane.store.sqlite.shelves import Shelves
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.strands import Parked, Strand, Turn

_SQL = load("turns")


class Turns:
    """The turns and strands of one transaction."""

    def __init__(self, db: apsw.Connection, shelves: Shelves) -> None:
        """Know nothing yet."""
        self._db = db
        self._shelves = shelves
        self._turns: dict[int, Turn] = {}
        self._by_name: dict[tuple[str, str], Turn | None] = {}  # None: it is known that there is none
        self._strands: dict[int, Strand] = {}
        self._by_task: dict[tuple[int, str], Strand | None] = {}
        self._kept_turns: Kept[tuple[str, str], Turn] = Kept()
        self._kept_strands: Kept[tuple[int, str], Strand] = Kept()
        self._numbered_turns: Kept[int, Turn] = Kept()
        self._numbered_strands: Kept[int, Strand] = Kept()
        self._kept: tuple[Kept[Any, Any], ...] = (
            self._kept_turns, self._kept_strands, self._numbered_turns, self._numbered_strands,
        )  # fmt: skip
        self._lowest: dict[str, int | None] = {}
        self._next: dict[str, int] = {}
        self._sequence = 0

    def keep(self) -> None:
        """Keep what is known for the next transaction."""
        if any(kept.is_full for kept in self._kept):
            self.forget()  # all of it: a turn that is kept holds on to its strands
        self._kept_turns.keep(self._by_name)
        self._kept_strands.keep(self._by_task)
        self._numbered_turns.keep(self._turns)
        self._numbered_strands.keep(self._strands)

    def forget(self) -> None:
        """Keep nothing."""
        for kept in self._kept:
            kept.forget()
        for turn in self._turns.values():
            turn.strands.clear()

    def clear(self) -> None:
        """Know nothing, but for what is kept."""
        for known in (self._turns, self._by_name, self._strands, self._by_task, self._lowest, self._next):
            known.clear()
        self._sequence = 0

    # ── finding ───────────────────────────────────────────────────────────────

    def know(self, row: tuple[Any, ...]) -> Turn:
        """Give the turn of a row that was read; what is known already is newer."""
        return self._known_turn(row[0]) or self._enter(Turn(row))

    def know_strand(self, row: tuple[Any, ...], turn: Turn) -> Strand:
        """Give the strand of a row that was read; what is known already is newer."""
        return self._strands.get(row[0]) or self._enter_strand(Strand(row, turn))

    def open_strands(self, turn: Turn) -> list[Strand] | None:
        """Give the open strands of a turn, if all of them are known; else somebody has to read them."""
        found = [strand for strand in turn.strands.values() if strand.is_open]
        if len(found) != turn.open_strands:
            return None
        return [self._enter_strand(strand) for strand in found]

    def _known_turn(self, number: int) -> Turn | None:
        turn = self._turns.get(number)
        if turn is None and (turn := self._numbered_turns.find(number)) is not None:
            self._enter(turn)
        return turn

    def _enter(self, turn: Turn) -> Turn:
        self._turns[turn.id] = self._by_name[turn.queue, turn.tenant] = turn
        return turn

    def _enter_strand(self, strand: Strand) -> Strand:
        self._strands[strand.id] = self._by_task[strand.turn.id, strand.task] = strand
        strand.turn.strands[strand.id] = strand
        return strand

    def gather(self, places: set[tuple[str, str, str]]) -> None:
        """Know the turns and strands of many (queue, tenant, task): what is not kept is read at once."""
        names = {(queue, tenant) for queue, tenant, _ in places} - self._by_name.keys()
        self._by_name |= self._kept_turns.recall(names)
        self._turns |= {turn.id: turn for turn in map(self._by_name.get, names) if turn is not None}
        unread = names - self._by_name.keys()
        self._by_name |= dict.fromkeys(unread)
        for row in each_row(self._db, _SQL.turn_named, unread):
            self.know(row)
        turns = ((self._by_name[queue, tenant], task) for queue, tenant, task in places)
        self._gather_strands({(turn.id, task) for turn, task in turns if turn is not None})

    def _gather_strands(self, tasks: set[tuple[int, str]]) -> None:
        tasks -= self._by_task.keys()
        for key, strand in self._kept_strands.recall(tasks).items():
            self._by_task[key] = strand
            if strand is not None:
                strand.turn = self._turns[key[0]]
                self._enter_strand(strand)
        unread = tasks - self._by_task.keys()
        self._by_task |= dict.fromkeys(unread)
        for row in each_row(self._db, _SQL.strand_named, unread):
            self.know_strand(row, self._turns[row[1]])

    def find(self, queue: str, tenant: str) -> Turn | None:
        """Give a turn if there is one."""
        if (queue, tenant) not in self._by_name:
            row = one_row(self._db, _SQL.turn_named, (queue, tenant))
            return None if row is None else self.know(row)
        return self._by_name[queue, tenant]

    def turn(self, queue: str, tenant: str) -> Turn:
        """Give a turn, a new one if there is none."""
        turn = self.find(queue, tenant)
        if turn is None:
            number = self._take("turn", _SQL.next_turn)
            row = (number, queue, tenant, 0, 0, 0, 0, 0, 0, 0, 0, "", None, None, 0, 0)
            turn = self._enter(Turn(row, is_new=True))
        return turn

    def strand(self, turn: Turn, task: str) -> Strand:
        """Give a strand, a new one if there is none."""
        strand = self._by_task.get((turn.id, task))
        if strand is None:
            is_read = turn.is_new or (turn.id, task) in self._by_task
            row = None if is_read else one_row(self._db, _SQL.strand_named, (turn.id, task))
            if row is not None:
                return self.know_strand(row, turn)
            number = self._take("strand", _SQL.next_strand)
            row = (number, turn.id, turn.queue, task, 0, 0, None, None, None, None, None, 0, 0)
            strand = self._enter_strand(Strand(row, turn, is_new=True))
        return strand

    def strand_by_id(self, number: int) -> Strand:
        """Give the strand that a live job names."""
        return self._strands.get(number) or self.strands_by_id([number])[0]

    def strands_by_id(self, numbers: Iterable[int]) -> list[Strand]:
        """Give the strands that live jobs name: what is not kept is read at once."""
        found = {number: self._strands.get(number) or self._recalled(number) for number in numbers}
        unread = [number for number, strand in found.items() if strand is None]
        if unread:
            for row in all_rows(self._db, _SQL.strands_with_turns, (as_array(unread),)):
                found[row[0]] = self.know_strand(row[:13], self.know(row[13:]))
        return [strand for strand in found.values() if strand is not None]

    def _recalled(self, number: int) -> Strand | None:
        strand = self._numbered_strands.find(number)
        turn = None if strand is None else self._known_turn(strand.turn.id)
        if strand is None or turn is None:
            return None
        strand.turn = turn
        return self._enter_strand(strand)

    def _take(self, table: str, statement: str) -> int:
        number = self._next.get(table) or int(one_value(self._db, statement))
        self._next[table] = number + 1
        return number

    # ── changing ──────────────────────────────────────────────────────────────

    def add_ready(self, strand: Strand, place: tuple[int, bytes]) -> None:
        """Count a job that became ready; the caller writes its row in `ready`."""
        if strand.ready:  # one more opens nothing, so that the turn stays where it is
            strand.ready += 1
            strand.turn.ready += 1
            if strand.head is None or place < strand.head:
                strand.head = place
            strand.is_changed = strand.turn.is_changed = True
            return
        was_open = strand.is_open
        strand.ready += 1
        strand.turn.ready += 1
        if strand.head is None or place < strand.head:
            strand.head = place
        self._reopened(strand, was_open=was_open)

    def take_ready(self, strand: Strand, place: tuple[int, bytes]) -> None:
        """Discount a job that is no longer ready; the caller removes its row."""
        was_open = strand.is_open
        strand.ready -= 1
        strand.turn.ready -= 1
        if strand.head == place:
            strand.is_head_stale = True
        if not strand.ready:
            strand.parked, strand.head, strand.is_head_stale = None, None, False
        self._reopened(strand, was_open=was_open)

    def take_head(
        self, strand: Strand, place: tuple[int, bytes], following: tuple[int, bytes] | None
    ) -> None:
        """Discount the head of a strand, which was claimed; the caller has read which one follows."""
        if following is None:
            self.take_ready(strand, place)
            return
        # Nothing opens or closes while a ready job remains.
        strand.ready -= 1
        strand.turn.ready -= 1
        strand.head = following
        strand.is_changed = strand.turn.is_changed = True

    def shift_ready(self, strand: Strand, old: tuple[int, bytes], new: tuple[int, bytes]) -> None:
        """Note that a ready job has another place; the caller writes its rows."""
        strand.is_changed = True
        if strand.head == old:
            strand.is_head_stale = True
        elif strand.head is None or new < strand.head:
            strand.head = new

    def park(self, what: Turn | Strand, parked: Parked | None) -> None:
        """Take a turn or strand out of the index, or with None let it back in."""
        if parked is not None:
            turn = what if isinstance(what, Turn) else what.turn
            parked = msgspec.structs.replace(parked, vt=turn.vt, ready_since=turn.ready_since)
        if isinstance(what, Turn):
            what.parked = parked
            self.refresh(what)
        else:
            was_open = what.is_open
            what.parked = parked
            self._reopened(what, was_open=was_open)

    def _reopened(self, strand: Strand, *, was_open: bool) -> None:
        strand.is_changed = True
        strand.turn.open_strands += strand.is_open - was_open
        self.refresh(strand.turn)

    def refresh(self, turn: Turn) -> None:
        """Let a turn enter or leave the ready index, as its jobs and parks now say; entering activates."""
        if not turn.ready:
            turn.ready_since, turn.parked = 0, None
        elif not turn.ready_since:
            turn.ready_since = self._next_sequence()
        is_ready = turn.parked is None and turn.open_strands > 0
        if is_ready and not turn.is_ready:
            turn.vt = activate(turn.vt, self.virtual_now(turn.queue))
            lowest = self._lowest.get(turn.queue)
            self._lowest[turn.queue] = turn.vt if lowest is None else min(lowest, turn.vt)
        elif turn.is_ready and not is_ready:
            self._lowest.pop(turn.queue, None)
        turn.is_ready = is_ready
        turn.is_changed = True  # last: asking for V writes what has changed so far

    def charge(self, turn: Turn, amount: int) -> None:
        """Move a tenant's clock."""
        turn.vt += amount
        turn.is_changed = True
        self._lowest.pop(turn.queue, None)

    def virtual_now(self, queue: str) -> int:
        """Give V of a queue; exact, whatever this transaction has changed so far."""
        floor = self._shelves.queues[queue].measure
        if queue not in self._lowest:
            self._write_turns()
            self._lowest[queue] = one_value(self._db, _SQL.lowest, (queue,))
        lowest = self._lowest[queue]
        return floor if lowest is None else max(floor, lowest)

    def raise_floor(self, queue: str, floor: int) -> None:
        """Let the floor follow V."""
        facts = self._shelves.queues[queue]
        if floor > facts.measure:
            facts.measure, facts.is_changed = floor, True

    def _next_sequence(self) -> int:
        if not self._sequence:
            self._sequence = int(one_value(self._db, _SQL.sequence) or 0)
        self._sequence += 1
        return self._sequence

    # ── writing ───────────────────────────────────────────────────────────────

    def flush(self, now: Instant) -> None:
        """Write what changed; heads first, from `ready` as it is now; drop what is empty and owes nothing."""
        changed = [strand for strand in self._strands.values() if strand.is_changed]
        for strand in changed:
            if strand.is_head_stale:
                strand.head = one_row(self._db, _SQL.head, (strand.id,))
                strand.is_head_stale = False
        new, moved, counted = [], [], []
        for strand in changed:
            values = strand.values()
            if strand.is_new:
                new.append((strand.id, strand.turn.id, strand.turn.queue, strand.task, *values))
            elif values[2:] != strand.stored[2:]:
                moved.append((*values, strand.id))
            else:
                counted.append((*values[:2], strand.id))
            strand.stored = values
        self._put(_SQL.strand_in, new)
        self._put(_SQL.strand_set, moved)
        self._put(_SQL.strand_counted, counted)
        self._put(_SQL.strand_out, [(s.id,) for s in changed if not s.jobs])
        for strand in changed:
            strand.is_changed = strand.is_new = False
            if not strand.jobs:
                del self._strands[strand.id]
                strand.turn.strands.pop(strand.id, None)
                self._numbered_strands.drop(strand.id)
                self._by_task[strand.turn.id, strand.task] = None
        self._write_turns()
        self._drop_turns(now)
        if self._sequence:
            self._db.execute(_SQL.sequence_set, (self._sequence,))

    def _write_turns(self) -> None:
        changed = [turn for turn in self._turns.values() if turn.is_changed]
        new, moved, counted = [], [], []
        for turn in changed:
            values = turn.values()
            if turn.is_new:
                new.append((turn.id, turn.queue, turn.tenant, *values))
            elif values[:3] != turn.stored[:3] or values[6:] != turn.stored[6:]:
                moved.append((*values, turn.id))
            else:  # only what no index has: the numbers of its open strands and waiting jobs
                counted.append((*values[3:6], turn.id))
            turn.stored = values
            turn.is_changed = turn.is_new = False
        self._put(_SQL.turn_in, new)
        self._put(_SQL.turn_set, moved)
        self._put(_SQL.turn_counted, counted)

    def _drop_turns(self, now: Instant) -> None:
        idle = [
            turn
            for turn in self._turns.values()
            if not (turn.delayed or turn.ready or turn.running)
            and turn.arrival <= now
            and is_forgettable(turn.vt, self._shelves.queues[turn.queue].measure)
        ]
        self._put(_SQL.turn_out, [(turn.id,) for turn in idle])
        for turn in idle:
            del self._turns[turn.id]
            self._numbered_turns.drop(turn.id)
            self._by_name[turn.queue, turn.tenant] = None

    def _put(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            write_many(self._db, statement, rows)
