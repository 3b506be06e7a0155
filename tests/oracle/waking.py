"""Bring back what was parked: when its time has come, a policy changed, or its gate has room (S42, S43)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairlane.model.instants import Instant
from fairlane.model.layers import EVERY, Kind, Subject, is_living
from fairlane.store.contract.claims import WAKE_MOST
from tests.oracle.books import Books, Flow, Parked, Strand


class Waking:
    """What one claim or pass wakes in one queue: a bounded number."""

    def __init__(self, books: Books, queue: str, now: Instant, only: str | None = None) -> None:
        """Begin with the whole number; `only` leaves out the strands of other tenants at gates (a peek)."""
        self._books = books
        self._queue = queue
        self._now = now
        self._only = only
        self._left = WAKE_MOST
        self.is_partial = False

    @property
    def has_woken(self) -> bool:
        """Whether anything was woken so far."""
        return self._left < WAKE_MOST

    def run(self) -> None:
        """Wake what time or a changed policy frees, then what gates have room for."""
        due = [one for one in self._parked() if not is_living(one[1].until, self._now)]
        due.sort(key=lambda one: (one[1].until or 0, *_place(one)))
        for what, _ in due[: self._left]:
            self._books.wake(what)
        self.is_partial = len(due) > self._left
        self._left -= len(due[: self._left])
        self.fill_gates()

    def fill_gates(self) -> bool:
        """Wake of the strands at each gate as many as it has room for; say whether any is ready now."""
        line = [one for one in self._parked() if one[1].reason == "gate" and self._only in {None, one[0][1]}]
        if not line:
            return False
        line.sort(key=lambda one: (one[1].subject.name, *_place(one)))
        woken: Counter[str] = Counter()
        for what, parked in line:
            gate = parked.subject.name
            if woken[gate] >= gate_room(self._books, gate, self._now):
                continue
            if not self._left:
                self.is_partial = True
                break
            self._left -= 1
            self._books.wake(what)
            if self._books.clockwork[what[0], what[1]].is_ready:  # else its tenant cannot take the place
                woken[gate] += 1
        return bool(woken.total())

    def _parked(self) -> list[tuple[Flow | Strand, Parked]]:
        return [one for one in self._books.all_parked() if one[0][0] == self._queue]


def _place(one: tuple[Flow | Strand, Parked]) -> tuple[int, int, Flow | Strand]:
    return one[1].vt, one[1].ready_since, one[0]


def gate_room(books: Books, gate: str, now: Instant) -> int:
    """Count the free places of a gate; without a limit there is one for everybody."""
    limit = books.gate_rules(gate, now).limit
    return len(books.ready) + 1 if limit is None else limit - books.gate_used[gate]


def queues_at_gate(books: Books, gate: str) -> set[str]:
    """Name the queues in which strands wait at a gate."""
    subject = Subject(Kind.GATE, gate)
    return {what[0] for what, one in books.all_parked() if (one.reason, one.subject) == ("gate", subject)}


def mark(books: Books, subject: Subject, now: Instant) -> set[str]:
    """Let claims wake everything that the subject may have held; name the queues.

    They park again what must wait. Who waits at a gate stays in line: each claim looks for room anyway.
    """
    concerned = list(_concerned(books, subject))
    for what, parked in concerned:
        if is_living(parked.until, now):
            books.wake_at(what, now)
    return {what[0] for what, _ in concerned}


def _concerned(books: Books, subject: Subject) -> Iterator[tuple[Flow | Strand, Parked]]:
    for what, parked in books.all_parked():
        if len(what) == 2:
            names = {Kind.QUEUE: {what[0]}, Kind.TENANT: {what[1], EVERY}}.get(subject.kind, set())
            if subject.name in names:
                yield what, parked
        elif subject == Subject(Kind.TASK, what[2]) or (
            parked.reason != "gate" and parked.subject == subject
        ):
            yield what, parked
