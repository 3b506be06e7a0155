"""Budgets: what jobs may spend in a period (S59, S113-S115). Counts in whole millionths, and stores nothing.

An account is what is counted under a budget for one tenant, or for all of them together. Stores keep one row
for each, and one for each claim under a budget; what becomes of these rows is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.model.instants import DAY, Instant
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.kinds import EventKind
from fairlane.model.policy.amounts import LARGEST, MILLION, Millionths, to_millionths
from fairlane.model.policy.periods import Per

OnSpent: TypeAlias = Literal["fail", "park"]
StartDecision: TypeAlias = Literal["start", "park", "fail"]

MAX_SPENDERS: Final = 1_000
"""Rows of one budget and period in the breakdown; what comes after them is added to `OTHERS` (S114)."""

OTHERS: Final = "*"
"""The task, the tenant and the originator of what is beyond `MAX_SPENDERS`; no legal name of any."""

WHOLE: Final = 100

SPEND_KEPT: Final = 400 * DAY
"""How long it is known who has spent what, counted from the start of the period."""

CLAIMS_KEPT: Final = 30 * DAY
"""How long a worker may report about a claim that somebody else has ended."""


class BudgetRules(msgspec.Struct, frozen=True):
    """What a store enforces for a budget; nothing without a ceiling. `alert_at`: whole percents, in order."""

    ceiling: Millionths | None = None
    currency: str = ""
    per: Per = "month"
    timezone: str = "UTC"
    estimate: Millionths = 0
    on_spent: OnSpent = "fail"
    per_tenant: bool = False
    alert_at: tuple[int, ...] = ()


class Account(msgspec.Struct, frozen=True):
    """What is spent and reserved in one period, and how many of the budget's alerts were told in it.

    `is_waited_for`: a strand was parked since room came back last.
    """

    starts_at: Instant = 0
    ends_at: Instant = 0
    spent: Millionths = 0
    reserved: Millionths = 0
    told: int = 0
    is_waited_for: bool = False


def account_of(
    starts_at: Instant,
    ends_at: Instant,
    spent: Millionths,
    reserved: Millionths,
    told: int,
    is_waited_for: int,
) -> Account:
    """Return an account from its columns."""
    return Account(starts_at, ends_at, spent, reserved, told, bool(is_waited_for))


class BudgetClaim(msgspec.Struct, frozen=True):
    """What one claim has reserved, and what was counted as spent for it so far, in which period last.

    `ended_at` is set once somebody else than its worker has ended it: its worker may still report (S113).
    """

    estimate: Millionths
    spent: Millionths = 0
    period: Instant = 0
    ended_at: Instant | None = None

    @property
    def reserved(self) -> Millionths:
        """What is still reserved: the estimate, less what is spent.

        >>> BudgetClaim(5, 2).reserved, BudgetClaim(5, 7).reserved, BudgetClaim(5, 2, ended_at=9).reserved
        (3, 0, 0)
        """
        return 0 if self.ended_at is not None else max(self.estimate - self.spent, 0)


def decide_start(rules: BudgetRules, account: Account) -> StartDecision:
    """Decide whether a job may start now, must wait for room, or is dead because the budget is spent.

    >>> rules = BudgetRules(ceiling=10, estimate=4)
    >>> decide_start(rules, Account(spent=2, reserved=4)), decide_start(rules, Account(spent=3, reserved=4))
    ('start', 'park')
    >>> decide_start(rules, Account(spent=7)), decide_start(BudgetRules(ceiling=10), Account(spent=10))
    ('fail', 'fail')
    """
    if rules.ceiling is None or _has_room(rules, rules.ceiling, account.spent + account.reserved):
        return "start"
    return "fail" if rules.on_spent == "fail" and is_spent(rules, account) else "park"


def is_spent(rules: BudgetRules, account: Account) -> bool:
    """Whether what is spent alone leaves no room for another job, whatever running jobs give back."""
    return rules.ceiling is not None and not _has_room(rules, rules.ceiling, account.spent)


def _has_room(rules: BudgetRules, ceiling: Millionths, used: Millionths) -> bool:
    return used < ceiling and used + rules.estimate <= ceiling


def room_at(account: Account, now: Instant) -> Instant | None:
    """Return when time alone brings room back: with the next period, if the calendar knows it.

    >>> room_at(Account(ends_at=20), 19), room_at(Account(ends_at=20), 20)
    (20, None)
    """
    return account.ends_at if now < account.ends_at else None


def runs_out_at(rules: BudgetRules, account: Account, now: Instant) -> Instant | None:
    """Return when the ceiling is reached if it goes on as since the period began; None if not in it.

    >>> rules = BudgetRules(ceiling=10)
    >>> runs_out_at(rules, Account(0, 100, spent=5), 20), runs_out_at(rules, Account(0, 100, spent=1), 20)
    (40, None)
    >>> runs_out_at(rules, Account(0, 100, spent=10), 20), runs_out_at(rules, Account(0, 100), 20)
    (20, None)
    """
    if rules.ceiling is None or not account.spent or not account.starts_at < now < account.ends_at:
        return None
    left = max(rules.ceiling - account.spent, 0)
    found = now + left * (now - account.starts_at) // account.spent
    return found if found < account.ends_at else None


def rolled(account: Account, period: tuple[Instant, Instant] | None, now: Instant) -> Account:
    """Return an account in the period of an instant: what was spent in an earlier one no longer counts.

    A period that has begun keeps its end. Without a known next one it goes on: nothing is given twice.

    >>> account = Account(10, 20, spent=5, reserved=2, told=1)
    >>> rolled(account, (20, 30), 19) is account, rolled(account, None, 20) is account
    (True, True)
    >>> rolled(account, (20, 30), 20)
    Account(starts_at=20, ends_at=30, spent=0, reserved=2, told=0, is_waited_for=False)
    """
    if now < account.ends_at or period is None:
        return account
    return Account(*period, reserved=account.reserved, is_waited_for=account.is_waited_for)


def reported(
    account: Account, claim: BudgetClaim, total: Millionths, *, is_over: bool
) -> tuple[Account, BudgetClaim, Millionths]:
    """Count what a worker reports for a claim: the sum so far. Return also what is spent more than known.

    A report below an earlier one is an old one. A claim that others ended may have spent less than was
    assumed; that is given back in the period in which it was counted.

    >>> account, claim = Account(starts_at=1, reserved=5), BudgetClaim(5, period=1)
    >>> account, claim, more = reported(account, claim, 2, is_over=False)
    >>> account.spent, account.reserved, claim.spent, more
    (2, 3, 2, 2)
    >>> account, claim, more = reported(account, claim, 7, is_over=True)
    >>> account.spent, account.reserved, more
    (7, 0, 5)
    """
    total = min(total, LARGEST)
    may_be_less = claim.ended_at is not None and claim.period == account.starts_at
    more = total - claim.spent if may_be_less else max(total - claim.spent, 0)
    after = BudgetClaim(claim.estimate, claim.spent + more, account.starts_at, claim.ended_at)
    left = 0 if is_over else after.reserved
    account = msgspec.structs.replace(
        account, spent=account.spent + more, reserved=account.reserved - claim.reserved + left
    )
    return account, after, more


def abandoned(account: Account, claim: BudgetClaim, now: Instant) -> tuple[Account, BudgetClaim, Millionths]:
    """Count a claim that somebody else than its worker ended: it may have spent all that it has reserved.

    >>> account, claim, more = abandoned(Account(reserved=5), BudgetClaim(5, 2), 9)
    >>> account.spent, account.reserved, claim.spent, claim.ended_at, more
    (3, 2, 5, 9, 3)
    """
    account, after, more = reported(account, claim, max(claim.spent, claim.estimate), is_over=True)
    return account, msgspec.structs.replace(after, ended_at=now), more


def alerts(
    name: str, tenant: str, rules: BudgetRules, account: Account
) -> tuple[Account, tuple[NewEntry, ...]]:
    """Return the events of an account that were not told in this period, and the account that knows it.

    Once no other job has room, the whole ceiling counts as reached. `tenant` is empty for all of them.
    """
    reached = sum(_is_reached(rules, account, share) for share in rules.alert_at)
    if reached <= account.told:
        return account, ()
    new = rules.alert_at[account.told : reached]
    found = tuple(alert(name, tenant, rules, account, share) for share in new)
    return msgspec.structs.replace(account, told=reached), found


def _is_reached(rules: BudgetRules, account: Account, share: int) -> bool:
    ceiling = rules.ceiling
    if ceiling is None:
        return False
    return account.spent * WHOLE >= ceiling * share or is_spent(rules, account)


def alert(name: str, tenant: str, rules: BudgetRules, account: Account, share: int) -> NewEntry:
    """Return the event of an account that has reached a share of the ceiling; one of all has no tenant."""
    kind = EventKind.BUDGET_SPENT if share >= WHOLE else EventKind.BUDGET_ALERT
    about = {
        "budget": name,
        "ceiling": rules.ceiling,
        "currency": rules.currency,
        "period_end": account.ends_at,
        "period_start": account.starts_at,
        "share": share,
        "spent": account.spent,
    }
    return NewEntry(
        kind=kind.value,
        tenant=tenant or None,
        subject=f"budget {name}",
        body=msgspec.json.encode(about, order="sorted"),
    )


def shares(alert_at: Sequence[object]) -> tuple[int, ...]:
    """Return shares of the ceiling as whole percents, each once and in order; ValueError if one is none.

    >>> shares(("1.0", 0.8))
    (80, 100)
    """
    percents = {to_millionths(share) * WHOLE for share in alert_at}
    if any(not 0 < one <= WHOLE * MILLION or one % MILLION for one in percents):
        message = "a share is in whole percents above 0 and up to 1, such as 0.8"
        raise ValueError(message)
    return tuple(sorted(one // MILLION for one in percents))
