"""What may not run now, and what holds it (S42-S46): of a queue, of a tenant in it, of a strand."""

from __future__ import annotations

from fairlane.model.layers import Kind, QueueRules, Subject
from fairlane.model.limits import NO_LIMITS, Rate, has_room
from fairlane.store.policy import EVERYONE
from fairlane.store.sqlite.shelves import Facts
from fairlane.store.sqlite.strands import Parked, Turn
from fairlane.store.sqlite.tx import Tx


def queue_block(tx: Tx, queue: str) -> Parked | None:
    """Say what holds a whole queue."""
    subject = Subject(Kind.QUEUE, queue)
    rate = tx.rules.queue(queue, tx.now).rate
    pause = _pause(tx, subject)
    if pause is not None or rate is None:
        return pause
    return _rate(tx, rate, tx.shelves.queues[queue], (subject,))


def turn_block(tx: Tx, turn: Turn) -> Parked | None:
    """Say what holds a tenant in a queue."""
    subject = Subject(Kind.TENANT, turn.tenant)
    pause = _pause(tx, subject)
    if pause is not None:
        return pause
    limits = tx.rules.limits(turn.queue, turn.tenant, tx.now)
    if limits.running is None and limits.rate is None:
        return None
    layers = (subject, EVERYONE, Subject(Kind.QUEUE, turn.queue))
    if not has_room(turn.running, limits.running):
        return Parked("running_limit", subject, tx.rules.ends(layers, tx.now))
    return None if limits.rate is None else _rate(tx, limits.rate, turn, layers)


def strand_block(tx: Tx, task: str) -> Parked | None:
    """Say what holds a task."""
    subject = Subject(Kind.TASK, task)
    pause = _pause(tx, subject)
    if pause is not None:
        return pause
    rules = tx.rules.task(task, tx.now)
    if rules.rate is not None:
        block = _rate(tx, rules.rate, tx.shelves.tasks[task], (subject,))
        if block is not None:
            return block
    return None if rules.gate is None else _gate(tx, rules.gate)


def _gate(tx: Tx, name: str) -> Parked | None:
    subject = Subject(Kind.GATE, name)
    if gate_room(tx, name) == 0:
        return Parked("gate", subject, tx.rules.ends((subject,), tx.now))
    rate = tx.rules.gate(name, tx.now).rate
    return None if rate is None else _rate(tx, rate, tx.shelves.gates[name], (subject,))


def gate_room(tx: Tx, name: str) -> int | None:
    """Count the free places of a gate; None if it has no limit."""
    limit = tx.rules.gate(name, tx.now).limit
    return None if limit is None else max(0, limit - tx.shelves.gates[name].measure)


def _pause(tx: Tx, subject: Subject) -> Parked | None:
    hold = tx.rules.paused(subject, tx.now)
    return None if hold is None else Parked("paused", subject, hold.until)


def _rate(tx: Tx, rate: Rate, kept: Facts | Turn, layers: tuple[Subject, ...]) -> Parked | None:
    """Wait until the rate allows a start, or until an override ends and another rate may be in force."""
    free_at = rate.free_at(rate.carried(kept.pace, kept.arrival))
    if free_at <= tx.now:
        return None
    ends = tx.rules.ends(layers, tx.now)
    return Parked("rate", layers[0], free_at if ends is None else min(free_at, ends))


def count_start(tx: Tx, turn: Turn, task: str) -> str | None:
    """Count a start against every rate it falls under and take its place at the gate; name the gate."""
    now = tx.now
    rules = tx.rules.task(task, now)
    shelves = tx.shelves
    rate = tx.rules.queue(turn.queue, now).rate
    if rate is not None:
        shelves.queues.start(turn.queue, rate, now)
    rate = tx.rules.limits(turn.queue, turn.tenant, now).rate
    if rate is not None:
        turn.arrival = rate.start(rate.carried(turn.pace, turn.arrival), now)
        turn.pace = rate.pace
    if rules.rate is not None:
        shelves.tasks.start(task, rules.rate, now)
    if rules.gate is None:
        return None
    shelves.gates.set(rules.gate, shelves.gates[rules.gate].measure + 1)
    rate = tx.rules.gate(rules.gate, now).rate
    if rate is not None:
        shelves.gates.start(rules.gate, rate, now)
    return rules.gate


class Terms:
    """What one claim has to heed. Worked out once: neither the instant nor a policy changes meanwhile.

    Most tenants and tasks have nothing that could hold them; asking that again for every job was a fifth of
    what a claim costs.
    """

    def __init__(self, tx: Tx) -> None:
        """Know nothing yet."""
        self._tx = tx
        self._free: set[tuple[str, str]] = set()
        self._free_turns: set[int] = set()
        self._free_tasks: set[str] = set()
        self._queues: dict[str, QueueRules] = {}
        self._strides: dict[str, int] = {}

    def queue(self, name: str) -> QueueRules:
        """Give what is in force for a queue."""
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = self._tx.rules.queue(name, self._tx.now)
        return found

    def turn_block(self, turn: Turn) -> Parked | None:
        """Say what holds a tenant in a queue."""
        if turn.id in self._free_turns:
            return None
        rules, now = self._tx.rules, self._tx.now
        ruled = (turn.queue, rules.ruled_as(turn.tenant))  # tenants without a policy of their own are alike
        if ruled not in self._free:
            block = turn_block(self._tx, turn)
            if block is not None or rules.limits(*ruled, now) != NO_LIMITS:
                return block
            self._free.add(ruled)
        self._free_turns.add(turn.id)
        return None

    def strand_block(self, task: str) -> Parked | None:
        """Say what holds a task."""
        if task in self._free_tasks:
            return None
        block = strand_block(self._tx, task)
        rules = self._tx.rules.task(task, self._tx.now)
        if block is None and rules.rate is None and rules.gate is None:
            self._free_tasks.add(task)
        return block

    def count_start(self, turn: Turn, task: str) -> str | None:
        """Count a start against every rate it falls under and take its place at the gate; name the gate."""
        is_free = turn.id in self._free_turns and task in self._free_tasks
        if is_free and self.queue(turn.queue).rate is None:
            return None
        return count_start(self._tx, turn, task)

    def stride(self, turn: Turn) -> int:
        """Give what a job of this tenant costs in virtual time."""
        ruled = self._tx.rules.ruled_as(turn.tenant)
        found = self._strides.get(ruled)
        if found is None:
            found = self._strides[ruled] = self._tx.rules.stride(ruled, self._tx.now)
        return found
