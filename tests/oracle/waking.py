"""Wake parked tenants and strands: their time came, a policy changed, or a gate has places (S42, S43)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairlane.model.guards.breaker import CLOSED, free_slots
from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import EVERY, Subject, SubjectKind, is_active
from fairlane.store.breaker_changes import line_key
from fairlane.store.contract.breakers import BreakerKey
from fairlane.store.contract.claims import MAX_UNPARKED
from tests.oracle.books import Books, Flow, Parked, Strand


class WakePass:
    """Wakes a bounded number of tenants and strands of one queue, for one claim or pass."""

    def __init__(self, books: Books, queue: str, now: Instant, only: str | None = None) -> None:
        """`only` leaves out strands of other tenants at gates, for a peek."""
        self._books = books
        self._queue = queue
        self._now = now
        self._only = only
        self._left = MAX_UNPARKED
        self.is_partial = False

    @property
    def has_woken(self) -> bool:
        """Whether anything was woken so far."""
        return self._left < MAX_UNPARKED

    def run(self) -> None:
        """Wake what time or a changed policy frees, then what gates have places for."""
        due = [one for one in self._parked() if not is_active(one[1].until, self._now)]
        due.sort(key=lambda one: (one[1].until or 0, *_place(one)))
        for what, _ in due[: self._left]:
            self._books.wake(what)
        self.is_partial = len(due) > self._left
        self._left -= len(due[: self._left])
        self.fill_gates()

    def fill_gates(self) -> bool:
        """Wake as many strands at each gate as it has free places; return whether any is ready now."""
        line = [one for one in self._parked() if line_of(one[1]) and self._only in {None, one[0][1]}]
        if not line:
            return False
        line.sort(key=lambda one: (line_of(one[1]) or "", *_place(one)))
        woken: Counter[str] = Counter()
        for what, parked in line:
            gate = line_of(parked) or ""
            if woken[gate] >= line_room(self._books, gate, self._now):
                continue
            if not self._left:
                self.is_partial = True
                break
            self._left -= 1
            self._books.wake(what)
            if self._books.tenant_clocks[
                what[0], what[1]
            ].is_ready:  # else its tenant is parked and cannot take the place
                woken[gate] += 1
        return bool(woken.total())

    def _parked(self) -> list[tuple[Flow | Strand, Parked]]:
        return [one for one in self._books.all_parked() if one[0][0] == self._queue]


def _place(one: tuple[Flow | Strand, Parked]) -> tuple[int, int, Flow | Strand]:
    return one[1].vt, one[1].ready_since, one[0]


def line_of(parked: Parked) -> str | None:
    """Return the gate or the breaker in whose line something waits."""
    if parked.reason == "breaker":
        return str(parked.subject)
    return parked.subject.name if parked.reason == "gate" else None


def line_room(books: Books, line: str, now: Instant) -> int:
    """Return for how many in a line there is room."""
    key = line_key(line)
    return gate_room(books, line, now) if key is None else breaker_room(books, key, now)


def breaker_room(books: Books, key: BreakerKey, now: Instant) -> int:
    """Return how many more may pass a breaker; if it is closed, enough for all."""
    state = books.breakers.get(key, CLOSED)
    running = {id for id in state.permits if id in books.claim_states}
    free = free_slots(state, now, running)
    return len(books.ready) + 1 if free is None else free


def gate_room(books: Books, gate: str, now: Instant) -> int:
    """Return the number of free places of a gate; without a limit, enough for all."""
    limit = books.gate_rules(gate, now).limit
    return len(books.ready) + 1 if limit is None else limit - books.gate_used[gate]


def queues_at_gate(books: Books, gate: str) -> set[str]:
    """Return the queues in which strands wait at a gate."""
    subject = Subject(SubjectKind.GATE, gate)
    return {what[0] for what, one in books.all_parked() if (one.reason, one.subject) == ("gate", subject)}


def mark(books: Books, subject: Subject, now: Instant) -> set[str]:
    """Let claims wake everything that was parked because of the subject; return the queues.

    They park again what must still wait. Strands at a gate keep their order: each claim checks gates anyway.
    """
    concerned = list(_concerned(books, subject))
    for what, parked in concerned:
        if is_active(parked.until, now):
            books.wake_at(what, now)
    return {what[0] for what, _ in concerned}


def _concerned(books: Books, subject: Subject) -> Iterator[tuple[Flow | Strand, Parked]]:
    for what, parked in books.all_parked():
        if len(what) == 2:
            names = {SubjectKind.QUEUE: {what[0]}, SubjectKind.TENANT: {what[1], EVERY}}.get(
                subject.kind, set()
            )
            if subject.name in names:
                yield what, parked
        elif subject == Subject(SubjectKind.TASK, what[2]) or (
            line_of(parked) is None and parked.subject == subject
        ):
            yield what, parked
