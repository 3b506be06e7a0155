"""Unpark tenant queues and strands: when time, a changed policy or a free gate slot allows (S42, S43, S54).

A changed policy only sets `parked_until` of what it may have blocked; claims and `promote` unpark it, a
bounded number each. What is still blocked is parked again by the claim that meets it.
"""

from __future__ import annotations

from typing import Final

from fairlane.model.guards.breaker import opens_at
from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import EVERY, Subject, SubjectKind
from fairlane.store.breaker_changes import line_key
from fairlane.store.contract.claims import MAX_UNPARKED
from fairlane.store.sqlite.claims.limits import free_line_slots
from fairlane.store.sqlite.query import all_rows, one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.tables.columns import TENANT_QUEUE_COLUMNS
from fairlane.store.sqlite.tables.tenant_queue_rows import Strand, TenantQueue
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("parking")

_PARKED: Final = slice(
    TENANT_QUEUE_COLUMNS.index("parked_until"), TENANT_QUEUE_COLUMNS.index("parked_since") + 1
)
"""Where `parked_until`, `parked_vt` and `parked_since` are in a row of `tenant_queue`."""


class UnparkPass:
    """What one claim or one `promote` unparks in one queue."""

    def __init__(self, tx: Transaction, queue: str, only_tenant: str | None = None) -> None:
        """Start with the full bound. A peek passes `only_tenant`, to skip other tenants' strands at gates."""
        self._tx = tx
        self._queue = queue
        self._only_tenant = only_tenant
        self._left = MAX_UNPARKED
        self._is_any_at_gate = False
        self.is_partial = False

    def run(self) -> bool:
        """Unpark what time or a changed policy allows, then fill the gates; return whether it found any."""
        found = one_row(self._tx.db, _SQL.what_is_parked, (self._queue, self._tx.now))
        has_due, self._is_any_at_gate = found or (0, 0)
        if has_due:
            self._unpark_due()
        self.fill_gates()
        return self._left < MAX_UNPARKED

    def note_at_gate(self) -> None:
        """Note that a strand of this queue was parked at a gate meanwhile."""
        self._is_any_at_gate = True

    def fill_gates(self) -> list[Strand]:
        """Unpark as many strands at each gate as it has free slots; return them."""
        if not self._is_any_at_gate:
            return []
        self._tx.flush()
        unparked: list[Strand] = []
        for (gate,) in all_rows(self._tx.db, _SQL.gates_of_queue, (self._queue,)):
            unparked += self._fill(gate)
        return unparked

    def _fill(self, gate: str) -> list[Strand]:
        free_slots = free_line_slots(self._tx, gate)
        unparked: list[Strand] = []
        if free_slots == 0:
            return unparked
        waiting = self._tx.db.execute(_SQL.strands_at_gate, (self._queue, gate, self._only_tenant))
        for (number,) in waiting:
            if free_slots == 0 or not self._left:
                self.is_partial = self.is_partial or free_slots != 0
                waiting.close()
                break
            self._left -= 1
            strand = self._tx.tenant_queues.strand_by_id(number)
            self._tx.tenant_queues.unpark(strand)
            unparked.append(strand)
            # A strand of a parked tenant cannot use the slot, so the next one that waits is unparked as well.
            if free_slots is not None and strand.tenant_queue.is_ready:
                free_slots -= 1
        return unparked

    def _unpark_due(self) -> None:
        """Unpark tenant queues and strands whose time has come, in one order of time and clock."""
        tenant_queues = self._tx.tenant_queues
        values = (self._queue, self._tx.now, self._left + 1)
        due: list[tuple[tuple[int, int, int, str], TenantQueue | int]] = [
            ((*row[_PARKED], ""), tenant_queues.tenant_queue_of(row))
            for row in all_rows(self._tx.db, _SQL.tenant_queues_due, values)
        ]
        due += [(row[1:], row[0]) for row in all_rows(self._tx.db, _SQL.strands_due, values)]
        due.sort(key=lambda one: one[0])
        for _, one in due[: self._left]:
            tenant_queues.unpark(tenant_queues.strand_by_id(one) if isinstance(one, int) else one)
        self.is_partial = len(due) > self._left
        self._left -= len(due[: self._left])


def mark_blocked(tx: Transaction, subject: Subject) -> None:
    """After a policy changed, let claims unpark all that it may have blocked, and wake the workers concerned.

    Strands that wait for a gate's slot, or at a breaker, stay parked: every claim looks for free slots
    anyway.
    """
    tx.flush()
    is_for_all_tenants = subject == Subject(SubjectKind.TENANT, EVERY)
    statement = {
        SubjectKind.QUEUE: _SQL.mark_queue,
        SubjectKind.TENANT: _SQL.mark_all_tenants if is_for_all_tenants else _SQL.mark_tenant,
        SubjectKind.TASK: _SQL.mark_task,
        SubjectKind.GATE: _SQL.mark_gate_rate,
        SubjectKind.BUDGET: _SQL.mark_budget,
    }.get(subject.kind)
    if statement is None:
        return  # rules of a breaker hold nobody back: its state does
    values = (tx.now,) if is_for_all_tenants else (tx.now, subject.name)
    for queue in {queue for (queue,) in tx.db.execute(statement, values)}:
        tx.hint(queue)
    if subject.kind is SubjectKind.QUEUE:
        tx.hint(subject.name)
    if subject.kind is SubjectKind.GATE:
        hint_at_gate(tx, subject.name)
    tx.tenant_queues.clear()  # objects in memory and in the cache are older than the rows now
    tx.tenant_queues.drop_cache()


def hint_at_gate(tx: Transaction, gate: str) -> None:
    """Wake workers of the queues in which strands wait at a gate."""
    for (queue,) in all_rows(tx.db, _SQL.queues_of_gate, (gate,)):
        tx.hint(queue)


def breaker_times(tx: Transaction, queue: str) -> list[Instant]:
    """Return when open breakers at which strands of a queue wait let somebody pass."""
    found = (line_key(line) for (line,) in all_rows(tx.db, _SQL.gates_of_queue, (queue,)))
    times = (opens_at(tx.breakers[key], tx.now) for key in found if key is not None)
    return [time for time in times if time is not None]


def unpark_after_running_limit(tx: Transaction, tenant_queue: TenantQueue) -> None:
    """Unpark a tenant queue at its running limit after one of its jobs ended, and wake workers.

    Other tenants gain nothing from that end, so nobody is woken for them.
    """
    if tenant_queue.parked is not None and tenant_queue.parked.reason == "running_limit":
        tx.tenant_queues.unpark(tenant_queue)
        tx.hint(tenant_queue.queue)
