"""Mistakes that somebody might make with breakers and budgets, here made in the oracle and in the model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias
from unittest.mock import patch

import msgspec

from fairlane.model.guards import breaker as model
from fairlane.model.job import JobRecord
from fairlane.store import breaker_changes
from tests.oracle import breakers as breakers_module
from tests.oracle import budget_book
from tests.oracle import claims as claims_module
from tests.oracle.budget_book import BudgetBook
from tests.oracle.core import Core

_replace = msgspec.structs.replace
_wrong = patch.object

Mistake: TypeAlias = tuple[str, Callable[[], AbstractContextManager[Any]]]
"""A promise, and the patch that breaks it."""


def _instead_of(target: Any, name: str, change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """Replace a function by what is made of it."""
    return _wrong(target, name, change(getattr(target, name)))


# ── breakers ──────────────────────────────────────────────────────────────────


def _open_passed() -> AbstractContextManager[Any]:
    def change(right: Any) -> Any:
        return lambda state, now, until: _replace(right(state, now, until), open_until=now)

    return _instead_of(model, "_opened", change)


def _permit_not_noted() -> AbstractContextManager[Any]:
    def change(_: Any) -> Any:
        return lambda state, *_: state

    return _instead_of(breakers_module, "with_permit", change)


def _permit_of_the_lost_kept() -> AbstractContextManager[Any]:
    def change(right: Any) -> Any:
        return lambda states, now, job, running: right(
            states, now, job, {*running, *(one for state in states.values() for one in state.permits)}
        )

    return _instead_of(breakers_module, "entered", change)


def _anybody_decides() -> AbstractContextManager[Any]:
    def change(right: Any) -> Any:
        def with_outcomes(state: Any, rules: Any, now: int, outcomes: Any) -> Any:
            if state.slots is not None and state.permits and outcomes.permit is None:
                outcomes = _replace(outcomes, permit=state.permits[0])
            return right(state, rules, now, outcomes)

        return with_outcomes

    return _instead_of(breaker_changes, "with_outcomes", change)


def _ramp_skipped() -> AbstractContextManager[Any]:
    return _instead_of(model, "_after_success", lambda _: lambda state, _, now: model._closed(state, now))


def _failure_in_the_ramp_ignored() -> AbstractContextManager[Any]:
    def change(right: Any) -> Any:
        def with_outcomes(state: Any, rules: Any, now: int, outcomes: Any) -> Any:
            if (state.slots or 0) > 1 and outcomes.failed:
                outcomes = _replace(outcomes, failed=0)
            return right(state, rules, now, outcomes)

        return with_outcomes

    return _instead_of(breaker_changes, "with_outcomes", change)


def _one_tenant_stops_all() -> AbstractContextManager[Any]:
    def change(_: Any) -> Any:
        return lambda state, rules, now: model.failures_in_window(state, rules, now) >= rules.failures

    return _instead_of(model, "_has_tripped", change)


def _window_that_does_not_slide() -> AbstractContextManager[Any]:
    return _wrong(model, "_is_within", lambda *_: True)


# ── budgets ───────────────────────────────────────────────────────────────────


def _read_then_spent() -> AbstractContextManager[Any]:
    """Look at what is spent, and reserve nothing."""

    def change(right: Any) -> Any:
        def reserve(self: BudgetBook, name: str, rules: Any, job: JobRecord, now: int) -> None:
            right(self, name, _replace(rules, estimate=0), job, now)

        return reserve

    return _instead_of(BudgetBook, "reserve", change)


def _spend_added_up() -> AbstractContextManager[Any]:
    """Add what a renewal and then a settlement report, as if these were amounts and no sums."""

    def change(right: Any) -> Any:
        return lambda account, claim, total, *, is_over: right(
            account, claim, claim.spent + total, is_over=is_over
        )

    return _instead_of(budget_book, "reported", change)


def _stale_spend_lost() -> AbstractContextManager[Any]:
    def change(right: Any) -> Any:
        def report(self: Core, scope: Any, id: Any, fence: int, total: int, *, is_over: bool) -> None:
            job = self.books.jobs.get(id)
            if job is not None and job.fence == fence and id in self.books.claim_states:
                right(self, scope, id, fence, total, is_over=is_over)

        return report

    return _instead_of(Core, "report_spend", change)


def _lost_for_nothing() -> AbstractContextManager[Any]:
    """Count nothing for a claim that others end."""

    def change(right: Any) -> Any:
        return lambda account, claim, now: right(account, _replace(claim, estimate=claim.spent), now)

    return _instead_of(budget_book, "abandoned", change)


def _reservation_kept() -> AbstractContextManager[Any]:
    """Keep what a settled job has reserved and not spent."""

    def change(right: Any) -> Any:
        return lambda account, claim, total, *, is_over: right(account, claim, total, is_over=False)

    return _instead_of(budget_book, "reported", change)


def _day_that_never_ends() -> AbstractContextManager[Any]:
    def change(right: Any) -> Any:
        return lambda account, period, now: account if account.ends_at else right(account, period, now)

    return _instead_of(budget_book, "rolled", change)


def _spent_out_at_a_reservation() -> AbstractContextManager[Any]:
    """Let a job die because others have reserved what they may give back."""

    def change(right: Any) -> Any:
        def decide(rules: Any, account: Any) -> Any:
            found = right(rules, account)
            return "fail" if found == "park" and rules.on_spent == "fail" else found

        return decide

    return _instead_of(claims_module, "decide_start", change)


GUARD_SABOTAGES: Final[dict[str, Mistake]] = {
    "open-breaker-passed": ("nobody passes an open breaker", _open_passed),
    "permit-not-noted": ("one passes a half-open breaker, and no other beside it", _permit_not_noted),
    "permit-of-the-lost-kept": ("a probe that is lost is given again", _permit_of_the_lost_kept),
    "anybody-closes-a-breaker": ("only who has a permit decides", _anybody_decides),
    "ramp-skipped": ("a breaker closes step by step", _ramp_skipped),
    "failure-in-the-ramp-ignored": ("one failure in the ramp opens it again", _failure_in_the_ramp_ignored),
    "one-tenant-stops-all": ("the failures of one tenant stop nobody else", _one_tenant_stops_all),
    "window-that-does-not-slide": ("a failure counts for its window", _window_that_does_not_slide),
    "budget-read-then-spent": ("a claim reserves in its own step", _read_then_spent),
    "spend-added-up": ("spend counts once for each claim", _spend_added_up),
    "stale-spend-lost": ("what a stale settlement reports is counted", _stale_spend_lost),
    "lost-for-nothing": ("a lost claim counts its estimate", _lost_for_nothing),
    "reservation-kept": ("an end gives back what was not spent", _reservation_kept),
    "day-that-never-ends": ("a new period has all its room", _day_that_never_ends),
    "spent-out-at-a-reservation": ("a job dies of what is spent alone", _spent_out_at_a_reservation),
}
