"""What the facets of the oracle share: state, clock, hints, and operations of several verbs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import JournalName, NewEntry, PendingEntry
from fairlane.model.lifecycle.record_changes import due_now
from fairlane.model.policy.amounts import Millionths
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from tests.oracle.books import Books
from tests.oracle.budget_book import HeldBudget
from tests.oracle.clock import DrivenClock
from tests.oracle.waking import mark, queues_at_gate


class Core:
    """One installation in memory."""

    def __init__(self, clock: DrivenClock) -> None:
        """Start empty."""
        self.clock = clock
        self.books = Books()
        self._hints: Counter[str] = Counter()
        self._seen: dict[str, Counter[str]] = {}
        self._changed = asyncio.Event()

    def now(self) -> Instant:
        """Read the store's own clock."""
        return self.clock.now()

    # ── hints ─────────────────────────────────────────────────────────────────

    def hint(self, queues: Iterable[str] = (), workers: Iterable[str] = ()) -> None:
        """Send a hint to those who wait for these queues and workers."""
        self._hints.update([f"queue {queue}" for queue in queues])
        self._hints.update([f"worker {worker}" for worker in workers])
        self._changed.set()
        self._changed = asyncio.Event()

    async def await_hint(self, worker: str, queues: Iterable[str], seconds: float) -> bool:
        """Wait for a hint that this worker has not seen yet."""
        names = [f"worker {worker}", *(f"queue {queue}" for queue in queues)]
        seen = self._seen.setdefault(worker, Counter())
        try:
            async with asyncio.timeout(seconds):
                while all(self._hints[name] == seen[name] for name in names):
                    await self._changed.wait()
        except TimeoutError:
            return False
        seen.update({name: self._hints[name] - seen[name] for name in names})
        return True

    # ── journals ──────────────────────────────────────────────────────────────

    def append(self, journal: JournalName, *entries: NewEntry) -> None:
        """Append entries without a number."""
        book, now = self.books.journals[journal], self.now()
        for entry in entries:
            book.appended += 1
            book.pending.append(PendingEntry(book.appended, now, entry))

    # ── budgets ───────────────────────────────────────────────────────────────

    def report_spend(self, scope: Scope, id: UUID, fence: int, total: Millionths, *, is_over: bool) -> None:
        """Count what a worker reports for a claim, if that is under a budget and its settlement is news."""
        held = self.books.budgets.held.get((id, fence))
        if (
            held is None
            or not scope.covers(held.who.tenant)
            or (held.claim.ended_at is not None and not is_over)
        ):
            return
        rules = self.books.budget_rules(held.budget, self.now())
        self.append(
            "events", *self.books.budgets.report(rules, (id, fence), total, self.now(), is_over=is_over)
        )
        if is_over:
            self._give_room(held)

    def abandon_budget(self, job: JobRecord) -> None:
        """Count a claim under a budget that somebody else than its worker ended."""
        held = self.books.budgets.held.get((job.id, job.fence))
        if held is not None:
            rules = self.books.budget_rules(held.budget, self.now())
            self.append("events", *self.books.budgets.abandon(rules, (job.id, job.fence), self.now()))
            self._give_room(held)

    def _give_room(self, held: HeldBudget) -> None:
        if self.books.budgets.release(held.budget, held.tenant):
            self.hint(mark(self.books, Subject(SubjectKind.BUDGET, held.budget), self.now()))

    # ── changes ─────────────────────────────────────────────────────────────────

    def make_ready(self, job: JobRecord) -> JobRecord:
        """Make a delayed job due now."""
        self.hint({job.queue})
        return self.books.save(due_now(job, self.now()))

    def end_attempt(self, after: JobRecord) -> JobRecord:
        """End a claim: record, counters, gate, limits."""
        books = self.books
        claim_state = books.claim_states.pop(after.id)
        books.save(after)
        flow = (after.queue, after.tenant)
        parked = books.tenant_clocks[flow].parked
        if parked is not None and parked.reason == "running_limit":
            books.wake(flow)
        if claim_state.gate is not None:
            books.gate_used[claim_state.gate] -= 1
            if not books.gate_used[claim_state.gate]:
                del books.gate_used[claim_state.gate]
            self.hint(queues_at_gate(books, claim_state.gate))
        self.hint({after.queue})
        return after
