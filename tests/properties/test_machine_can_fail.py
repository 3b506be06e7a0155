"""The state machine is worth something only if it finds faults: each of these must make it red."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import Phase

from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import NumberRequest
from tests.oracle.clock import DrivenClock
from tests.oracle.core import Core
from tests.oracle.store import OracleStore
from tests.properties.machine import Visits
from tests.properties.test_stores import drive

Fault = Callable[[OracleStore, Core], None]


def _after(facet: Any, verb: str, spoil: Callable[[], object]) -> None:
    """Let something go wrong after every call of a verb."""
    right = getattr(facet, verb)

    async def wrong(request: Any) -> Any:
        reply = await right(request)
        spoil()
        return reply

    setattr(facet, verb, wrong)


def _instead(facet: Any, verb: str, change: Callable[[Any], Any]) -> None:
    """Let every call of a verb see a changed request."""
    right = getattr(facet, verb)

    async def wrong(request: Any) -> Any:
        return await right(change(request))

    setattr(facet, verb, wrong)


def _widened(request: Any) -> Any:
    return msgspec.structs.replace(request, scope=Scope.all())


def fence_out_of_settle(store: OracleStore, core: Core) -> None:
    """A settlement is accepted under any fence."""
    right = store.claims._held

    def held(scope: Scope, worker: str, id: Any, fence: int) -> Any:
        job = core.books.jobs.get(id)
        return right(scope, worker, id, job.fence if job else 0)

    store.claims._held = held  # type: ignore[method-assign]


def fence_is_a_plain_counter(store: OracleStore, core: Core) -> None:
    """A fence is last + 1, without the clock."""

    def spoil() -> None:
        for job in core.books.jobs.values():
            if job.started_at == core.now() and job.fence == core.now():
                core.books.jobs[job.id] = msgspec.structs.replace(job, fence=job.attempt)

    _after(store.claims, "claim", spoil)


def drained_clock_forgotten(store: OracleStore, core: Core) -> None:
    """A tenant that drains loses its virtual time."""

    def spoil() -> None:
        for flow in [flow for flow, work in core.books.tenant_clocks.items() if not work.ready_since]:
            del core.books.tenant_clocks[flow]

    _after(store.claims, "claim", spoil)


def activation_without_virtual_now(store: OracleStore, core: Core) -> None:
    """A tenant that becomes ready keeps an old, low virtual time."""

    def spoil() -> None:
        core.books.virtual_now = lambda queue: 0  # type: ignore[method-assign]

    spoil()
    _after(store.jobs, "enqueue", spoil)


def gate_not_released(store: OracleStore, core: Core) -> None:
    """A settled job keeps its place at the gate."""

    def spoil() -> None:
        core.books.gate_used["screens"] = max(core.books.gate_used["screens"], 1)

    _after(store.claims, "settle", spoil)


def tenant_filter_out_of_get(store: OracleStore, core: Core) -> None:
    """Finding looks at every tenant."""
    _instead(store.jobs, "find", _widened)


def tenant_filter_out_of_cancel(store: OracleStore, core: Core) -> None:
    """Cancelling reaches every tenant."""
    _instead(store.jobs, "cancel", _widened)


def dedup_key_kept_after_the_end(store: OracleStore, core: Core) -> None:
    """Settling does not free the de-duplication key."""
    kept: dict[Any, Any] = {}

    def spoil() -> None:
        kept.update(core.books.dedup)
        core.books.dedup = {**kept, **core.books.dedup}

    _after(store.claims, "settle", spoil)
    _after(store.jobs, "enqueue", lambda: kept.update(core.books.dedup))


def retry_keeps_its_old_place(store: OracleStore, core: Core) -> None:
    """A retried job is sorted by its enqueue time."""

    def spoil() -> None:
        for job in core.books.jobs.values():
            if (job.because or "").startswith("retry"):
                core.books.jobs[job.id] = msgspec.structs.replace(job, sort_key=job.enqueued_at)

    _after(store.claims, "settle", spoil)


def override_lost(store: OracleStore, core: Core) -> None:
    """An override is gone with the next declaration."""
    _after(store.claims, "promote", lambda: core.books.overrides.clear())  # noqa: PLW0108 (the books are replaced meanwhile)


def result_lost(store: OracleStore, core: Core) -> None:
    """A result does not reach history."""

    def spoil() -> None:
        for job in core.books.jobs.values():
            core.books.jobs[job.id] = msgspec.structs.replace(job, result=None)

    _after(store.claims, "settle", spoil)


def idempotency_key_lost_at_the_end(store: OracleStore, core: Core) -> None:
    """A finished job's key is free at once."""

    def spoil() -> None:
        core.books.keys = {name: key for name, key in core.books.keys.items() if key.state is None}

    for facet, verb in ((store.claims, "settle"), (store.jobs, "cancel"), (store.jobs, "condemn")):
        _after(facet, verb, spoil)


def entry_of_a_review_lost(store: OracleStore, core: Core) -> None:
    """What an operator did about a dead letter is not in the audit."""

    def spoil() -> None:
        core.books.journals["audit"].pending = []

    _after(store.dead, "review", spoil)


def deaths_told_to_nobody(store: OracleStore, core: Core) -> None:
    """A job that dies of its failures makes no event."""

    def spoil() -> None:
        book = core.books.journals["events"]
        book.pending = [one for one in book.pending if one.entry.kind != "dead_letter"]

    _after(store.claims, "settle", spoil)


def tenant_filter_out_of_review(store: OracleStore, core: Core) -> None:
    """A review reaches every tenant."""
    _instead(store.dead, "review", _widened)


def new_run_not_noted(store: OracleStore, core: Core) -> None:
    """A letter runs again and does not know it, so it may run again and again."""
    _after(store.dead, "reprocess", lambda: core.books.reviews.clear())  # noqa: PLW0108 (the books are replaced meanwhile)


def entries_numbered_twice(store: OracleStore, core: Core) -> None:
    """A numbering that another one has overtaken succeeds all the same."""
    right = store.journal.number

    async def wrong(request: NumberRequest) -> bool:
        await right(request)
        return True

    store.journal.number = wrong  # type: ignore[method-assign]


def state_of_a_breaker_lost(store: OracleStore, core: Core) -> None:
    """A breaker that opens is closed for the next who asks."""
    _after(store.breakers, "report", lambda: core.books.breakers.clear())  # noqa: PLW0108 (the books are replaced meanwhile)


def spend_counted_twice(store: OracleStore, core: Core) -> None:
    """What a renewal has reported counts again with the settlement."""
    right = core.report_spend

    def wrong(scope: Scope, id: Any, fence: int, total: int, *, is_over: bool) -> None:
        held = core.books.budgets.held.get((id, fence))
        right(scope, id, fence, total + (held.claim.spent if held else 0), is_over=is_over)

    core.report_spend = wrong  # type: ignore[method-assign]


def reservation_kept(store: OracleStore, core: Core) -> None:
    """A claim that ends keeps what it has reserved."""

    def spoil() -> None:
        for name, account in core.books.budgets.accounts.items():
            core.books.budgets.accounts[name] = msgspec.structs.replace(
                account, reserved=account.reserved + 1
            )

    _after(store.claims, "settle", spoil)


FAULTS: tuple[Fault, ...] = (
    fence_out_of_settle,
    fence_is_a_plain_counter,
    drained_clock_forgotten,
    activation_without_virtual_now,
    gate_not_released,
    tenant_filter_out_of_get,
    tenant_filter_out_of_cancel,
    dedup_key_kept_after_the_end,
    retry_keeps_its_old_place,
    override_lost,
    result_lost,
    idempotency_key_lost_at_the_end,
    entry_of_a_review_lost,
    deaths_told_to_nobody,
    tenant_filter_out_of_review,
    new_run_not_noted,
    entries_numbered_twice,
    state_of_a_breaker_lost,
    spend_counted_twice,
    reservation_kept,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_machine_finds_a_fault(fault: Fault) -> None:
    """A store with one fault does not pass the comparison with the oracle."""

    @asynccontextmanager
    async def open_faulty(clock: DrivenClock) -> AsyncIterator[Store]:
        store = OracleStore(clock)
        fault(store, store.claims._core)
        yield store

    with pytest.raises(AssertionError, match=r"oracle: |invariants broken"):
        drive(open_faulty, 300, phases=(Phase.generate,), visits=Visits())
