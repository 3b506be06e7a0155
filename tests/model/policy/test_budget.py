"""What becomes of an account and of a claim under a budget, and when it is told (S59, S113, S114)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.errors import ConfigError
from fairlane.model.policy.amounts import LARGEST
from fairlane.model.policy.budget import (
    Account,
    BudgetClaim,
    BudgetRules,
    abandoned,
    account_of,
    alerts,
    decide_start,
    is_spent,
    reported,
    rolled,
    room_at,
    shares,
)
from fairlane.model.policy.declared import Budget, budget_rules
from fairlane.model.policy.overrides import PolicyChange, SubjectKind, change_problems

amounts = st.integers(0, 200)


@given(amounts, amounts, amounts, amounts, st.sampled_from(["fail", "park"]))
def test_what_starts_fits_and_what_fits_starts(
    ceiling: int, estimate: int, spent: int, reserved: int, on_spent: Any
) -> None:
    """S59: with its estimate, beside all that is spent and reserved."""
    rules = BudgetRules(ceiling=ceiling, estimate=estimate, on_spent=on_spent)
    decision = decide_start(rules, Account(spent=spent, reserved=reserved))
    used = spent + reserved
    assert (decision == "start") == (used < ceiling and used + estimate <= ceiling)
    if decision == "fail":
        assert on_spent == "fail"
        assert is_spent(rules, Account(spent=spent))


def test_a_budget_without_a_ceiling_bounds_nothing() -> None:
    """S59: as one that nobody has declared."""
    assert decide_start(BudgetRules(), Account(spent=LARGEST)) == "start"
    assert not is_spent(BudgetRules(), Account(spent=LARGEST))
    assert alerts("ai", "", BudgetRules(alert_at=(80,)), Account(spent=5)) == (Account(spent=5), ())


@given(amounts, st.lists(st.tuples(amounts, st.booleans()), max_size=8))
def test_the_books_are_those_of_the_claim(estimate: int, reports: list[tuple[int, bool]]) -> None:
    """S113: an account has reserved what its claim has, and has spent the largest sum that was reported."""
    account, claim = Account(starts_at=1, reserved=estimate), BudgetClaim(estimate, period=1)
    counted = 0
    for total, is_over in reports:
        account, claim, more = reported(account, claim, total, is_over=is_over)
        counted += more
        assert account.spent == claim.spent == counted
        assert account.reserved == (0 if is_over else claim.reserved)
        if is_over:
            return
    assert claim.spent == max((total for total, _ in reports), default=0)


@pytest.mark.parametrize(
    ("spent", "told", "period", "now_spent"), [(0, 3, 1, 3), (0, 9, 1, 9), (0, 3, 2, 5), (7, 9, 2, 9)]
)
def test_a_claim_that_others_ended_is_corrected_in_its_own_period(
    spent: int, told: int, period: int, now_spent: int
) -> None:
    """S113: later it only grows."""
    account, claim, _ = abandoned(Account(starts_at=1, reserved=5), BudgetClaim(5, spent, 1), 9)
    assert (account.reserved, account.spent, claim.spent) == (
        5 - max(5 - spent, 0),
        max(5, spent) - spent,
        max(5, spent),
    )
    account = msgspec.structs.replace(account, starts_at=period)
    _, claim, _ = reported(account, claim, told, is_over=True)
    assert claim.spent == now_spent


def test_a_sum_beyond_every_ceiling_is_counted_as_the_largest() -> None:
    """S113: a store adds it up in a float."""
    account, _, more = reported(Account(), BudgetClaim(0), LARGEST * 5, is_over=True)
    assert account.spent == more == LARGEST


def test_an_account_begins_a_period_once() -> None:
    """S115: it keeps what is reserved and who waits."""
    account = Account(10, 20, 5, 2, 1, is_waited_for=True)
    assert rolled(account, (15, 25), 19) is account
    assert rolled(account, (20, 30), 20) == Account(20, 30, 0, 2, 0, is_waited_for=True)
    assert rolled(account, None, 99) is account
    assert (room_at(account, 19), room_at(account, 20)) == (20, None)
    assert account_of(1, 2, 3, 4, 5, 1) == Account(1, 2, 3, 4, 5, is_waited_for=True)


def test_each_share_is_told_once_and_all_of_them_once_nothing_fits() -> None:
    """S114: also if the ceiling itself is never reached."""
    rules = BudgetRules(ceiling=100, estimate=30, alert_at=(50, 80, 100), currency="USD")
    account, told = alerts("ai", "", rules, Account(spent=55))
    assert [one.kind for one in told] == ["budget_alert"]
    assert alerts("ai", "", rules, account) == (account, ())
    account, told = alerts("ai", "acme", rules, msgspec.structs.replace(account, spent=75))
    assert [(one.kind, one.tenant) for one in told] == [("budget_alert", "acme"), ("budget_spent", "acme")]
    assert alerts("ai", "", rules, account) == (account, ())


@pytest.mark.parametrize("alert_at", [(0,), (1.5,), ("0.805",), (-0.1,)], ids=str)
def test_a_share_is_in_whole_percents(alert_at: tuple[object, ...]) -> None:
    """S114: above nothing and up to all."""
    with pytest.raises(ValueError, match=r"share|negative"):
        shares(alert_at)


def test_shares_are_sorted_and_each_is_told_once() -> None:
    """S114: in whatever order they were given."""
    assert shares((Decimal("1.0"), 0.8, "0.8", 0.29)) == (29, 80, 100)


# ── declared ─────────────────────────────────────────────────────────────────


def test_a_declared_budget_becomes_rules() -> None:
    """S59: amounts in millionths, shares in percents."""
    budget = Budget("ai", "500.00", "USD", estimate=0.02, per_tenant=True)
    assert budget_rules(budget) == BudgetRules(
        500_000_000, "USD", "month", "UTC", 20_000, "fail", True, (80, 100)
    )


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"name": "A I"}, "budget name"),
        ({"ceiling": -1}, "ceiling must be an amount.*negative"),
        ({"ceiling": "much"}, "ceiling must be an amount"),
        ({"estimate": 501}, "at most the ceiling"),
        ({"estimate": float("nan")}, "finite"),
        ({"currency": "usd"}, "capital letters"),
        ({"currency": 3}, "capital letters"),
        ({"per": "year"}, "day or week or month"),
        ({"timezone": "Mars"}, "time zone"),
        ({"on_spent": "retry"}, "fail or park"),
        ({"per_tenant": 1}, "True or False"),
        ({"alert_at": 0.8}, "a list of shares"),
        ({"alert_at": [0.805]}, "whole percents"),
    ],
    ids=str,
)
def test_a_meaningless_budget_is_refused(wrong: dict[str, Any], text: str) -> None:
    """S59: the error names the field."""
    with pytest.raises(ConfigError, match=text):
        Budget(**{"name": "ai", "ceiling": 500, "currency": "USD", **wrong})


def test_only_the_ceiling_can_be_overridden() -> None:
    """S54: not below nothing."""
    assert change_problems(SubjectKind.BUDGET, PolicyChange(ceiling=5)) == []
    assert change_problems(SubjectKind.BUDGET, PolicyChange(ceiling=-5)) == [
        "ceiling must be 0 or more, not -5"
    ]
    assert change_problems(SubjectKind.BUDGET, PolicyChange(limit=5)) == ["limit cannot be set on a budget"]
    assert change_problems(SubjectKind.GATE, PolicyChange(ceiling=5)) == ["ceiling cannot be set on a gate"]
