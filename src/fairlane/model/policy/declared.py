"""The values a team declares: queues, lanes, gates, breakers. Frozen, comparable, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fairlane.model.checking import counted as _counted
from fairlane.model.checking import flag, instance, is_listed, is_number, is_text
from fairlane.model.checking import legal as _legal
from fairlane.model.checking import one_of as _one_of
from fairlane.model.checking import positive as _positive
from fairlane.model.checking import refuse as _refuse
from fairlane.model.instants import Duration
from fairlane.model.job import OnStuck
from fairlane.model.policy.amounts import Amount, to_millionths
from fairlane.model.policy.budget import BudgetRules, OnSpent, shares
from fairlane.model.policy.limits import NO_LIMITS, Limits, Rate
from fairlane.model.policy.periods import Per, is_zone
from fairlane.model.retry.backoff import DEFAULT_BACKOFF, RetryPolicy, check_retry
from fairlane.model.scheduling.fairness import HEAVIEST, LIGHTEST

Cost: TypeAlias = Literal["jobs", "seconds"]
BreakerPer: TypeAlias = Literal["all", "tenant"]
OnOpen: TypeAlias = Literal["snooze", "fail"]
Tenancy: TypeAlias = Literal["open", "required", "declared"]

DEFAULT_TIMEOUT: Final = 1800.0
DEFAULT_ATTEMPTS: Final = 5
DEFAULT_SLOTS: Final = 16
SLOTS_A_HEADROOM: Final = 8
"""By default a lane reserves one of this many slots as headroom (S48)."""

WHOLE: Final = 10_000

_CURRENCY: Final = re.compile("[A-Z]{3}")


COLORS: Final = ("salmon", "blue", "lavender", "green", "yellow", "pink", "sky", "olive", "brown")
"""With which the dashboard marks queues; each can be told from the others in light and in dark."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A named class of work with its policy. `limits` are per tenant, `rate` and `max_waiting` for all.

    A job that runs for longer than `stuck_after`, by default twice its timeout, although its worker should
    have stopped it, is dead or goes back, as `on_stuck` says (S31). The dashboard marks the queue with its
    `color`, one of `COLORS`, or with that of its name.
    """

    name: str
    timeout: Duration | None = DEFAULT_TIMEOUT
    max_attempts: int = DEFAULT_ATTEMPTS
    retry: RetryPolicy = DEFAULT_BACKOFF
    limits: Limits = NO_LIMITS
    max_waiting: int | None = None
    rate: Rate | None = None
    cost: Cost = "jobs"
    stuck_after: Duration | None = None
    on_stuck: OnStuck = "dead"
    color: str | None = None

    def __post_init__(self) -> None:
        """Refuse a meaningless queue."""
        _legal("queue", self.name)
        _positive("timeout", self.timeout, is_optional=True)
        _counted("max_attempts", self.max_attempts, 1)
        _counted("max_waiting", self.max_waiting, 0, is_optional=True)
        check_retry("retry", self.retry)
        instance("limits", self.limits, Limits, "Limits, such as Limits(running=2)")
        instance("rate", self.rate, Rate, "a Rate, such as Rate(50, 'minute')", is_optional=True)
        _one_of("cost", self.cost, "jobs", "seconds")
        _positive("stuck_after", self.stuck_after, is_optional=True)
        _one_of("on_stuck", self.on_stuck, "dead", "requeue")
        if self.color is not None:
            _one_of("color", self.color, *COLORS)


@dataclass(frozen=True, slots=True)
class Share:
    """A queue's share of a lane: a weight, a bound on slots, a minimum if the order is strict."""

    weight: float = 1.0
    max_slots: int | None = None
    min_share: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a meaningless share."""
        if not is_number(self.weight) or not LIGHTEST <= self.weight <= HEAVIEST:
            _refuse("weight", self.weight, f"a number from {LIGHTEST} to {HEAVIEST:.0f}")  # as tenants (S41)
        _counted("max_slots", self.max_slots, 1, is_optional=True)
        if not is_number(self.min_share) or not 0 <= self.min_share <= 1:
            _refuse("min_share", self.min_share, "a share from 0 to 1")

    @property
    def min_parts(self) -> int:
        """The minimum in ten-thousandths: sums of decimal fractions stay exact."""
        return round(self.min_share * WHOLE)


@dataclass(frozen=True, slots=True)
class Lane:
    """A group of slots in a worker and the queues it serves.

    A `headroom` of None is the default for the number of slots: see `headroom_slots`. `prefetch` bounds how
    many jobs the lane claims before it has a free slot for them (S68); None leaves that to what the worker
    measures, 0 turns it off.
    """

    name: str
    slots: int
    queues: Sequence[str] | Mapping[str, float | Share]
    order: Literal["weighted", "strict"] = "weighted"
    headroom: int | None = None
    prefetch: int | None = None

    def __post_init__(self) -> None:
        """Refuse a meaningless lane."""
        _legal("lane", self.name)
        _counted("slots", self.slots, 1)
        _counted("headroom", self.headroom, 0, is_optional=True)
        _counted("prefetch", self.prefetch, 0, is_optional=True)
        if self.headroom_slots >= self.slots:
            _refuse("headroom", self.headroom, f"below the lane's {self.slots} slots")
        _one_of("order", self.order, "weighted", "strict")
        if not (isinstance(self.queues, Mapping) or is_listed(self.queues)) or not self.queues:
            _refuse("queues", self.queues, "a list of queue names or a table of shares")
        for queue in self.queues:
            _legal("queue", queue)
        if len(set(self.queues)) != len(self.queues):
            _refuse("queues", self.queues, "names that occur once")
        shares = self.shares().values()
        if self.order != "strict" and any(share.min_share for share in shares):
            _refuse("min_share", "weighted", 'used only with order="strict"')
        if sum(share.min_parts for share in shares) > WHOLE:
            _refuse("min_share", "their sum", "at most 1 over the lane")

    @property
    def headroom_slots(self) -> int:
        """The number of headroom slots: as declared, else an eighth, at least one of several.

        >>> [Lane("main", slots, ["a"]).headroom_slots for slots in (1, 2, 8, 15, 16, 100)]
        [0, 1, 1, 1, 2, 12]
        >>> Lane("main", 16, ["a"], headroom=0).headroom_slots
        0
        """
        if self.headroom is not None:
            return self.headroom
        return min(self.slots - 1, max(1, self.slots // SLOTS_A_HEADROOM))

    def shares(self) -> dict[str, Share]:
        """Return each queue's share, in the listed order; a name alone has weight 1.

        >>> Lane("main", 4, {"a": 3, "b": Share(max_slots=1)}).shares()["a"].weight
        3
        """
        if isinstance(self.queues, Mapping):
            return {
                name: share if isinstance(share, Share) else Share(share)
                for name, share in self.queues.items()
            }
        return {name: Share() for name in self.queues}


@dataclass(frozen=True, slots=True)
class Gate:
    """A named limit across all workers: on running jobs, on the rate of starts, or both."""

    name: str
    limit: int | None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        """Refuse a meaningless gate."""
        _legal("gate", self.name)
        _counted("limit", self.limit, 0, is_optional=True)
        instance("rate", self.rate, Rate, "a Rate, such as Rate(50, 'minute')", is_optional=True)
        if self.limit is None and self.rate is None:
            _refuse("limit", None, "given, unless the gate has a rate")


MOST_FAILURES: Final = 1_000
"""The highest threshold of a breaker: so many failures are kept with their instants."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """A circuit breaker around something that jobs call, shared by all workers (S58).

    It opens at so many `failures` within the `window` (seconds or a duration), and nobody passes for
    `open_for`. Then one job passes. If it succeeds, 2, 4 … at once, up to `ramp`, and then all; if one fails,
    it is open again. With `per="tenant"` each tenant has its own. `on_open` says what becomes of a job whose
    handler meets it open: it snoozes until then, or the attempt fails. Of exceptions only `errors` count, by
    default all.
    """

    name: str
    failures: int = 5
    window: Duration = 60.0
    open_for: Duration = 60.0
    per: BreakerPer = "all"
    on_open: OnOpen = "snooze"
    ramp: int = 8
    errors: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        """Refuse a meaningless breaker."""
        _legal("breaker", self.name)
        _counted("failures", self.failures, 1)
        if self.failures > MOST_FAILURES:
            _refuse("failures", self.failures, f"at most {MOST_FAILURES}")
        _positive("window", self.window)
        _positive("open_for", self.open_for)
        _one_of("per", self.per, "all", "tenant")
        _one_of("on_open", self.on_open, "snooze", "fail")
        _counted("ramp", self.ramp, 1)
        if not self.errors or not is_listed(self.errors) or not all(map(_is_exception, self.errors)):
            _refuse("errors", self.errors, "exception classes, such as (ConnectionError, TimeoutError)")
        object.__setattr__(self, "errors", tuple(self.errors))


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


@dataclass(frozen=True, slots=True)
class Budget:
    """A ceiling on what the jobs of its tasks may spend in a calendar period, over all workers (S59).

    Before a job starts, its `estimate` is reserved. `per_tenant` gives each tenant the whole ceiling.
    `alert_at` are the shares of the ceiling at which an event tells of it.
    """

    name: str
    ceiling: Amount
    currency: str
    per: Per = "month"
    timezone: str = "UTC"
    estimate: Amount = 0
    on_spent: OnSpent = "fail"
    per_tenant: bool = False
    alert_at: Sequence[Amount] = (0.8, 1.0)

    def __post_init__(self) -> None:
        """Refuse a meaningless budget."""
        _legal("budget", self.name)
        if not (is_text(self.currency) and _CURRENCY.fullmatch(self.currency)):
            _refuse("currency", self.currency, "three capital letters, such as 'USD'")
        _one_of("per", self.per, "day", "week", "month")
        _one_of("on_spent", self.on_spent, "fail", "park")
        flag("per_tenant", self.per_tenant)
        if not is_zone(self.timezone):
            _refuse("timezone", self.timezone, "the name of a time zone, such as 'Europe/Berlin'")
        if _amount("estimate", self.estimate) > _amount("ceiling", self.ceiling):
            _refuse("estimate", self.estimate, f"at most the ceiling, {self.ceiling}")
        if not is_listed(self.alert_at):
            _refuse("alert_at", self.alert_at, "a list of shares, such as [0.8, 1.0]")
        try:
            shares(self.alert_at)
        except ValueError:
            _refuse("alert_at", self.alert_at, "whole percents above 0 and up to 1, such as [0.8, 1.0]")


def budget_rules(budget: Budget) -> BudgetRules:
    """Return what a store enforces for a declared budget.

    >>> budget_rules(Budget("ai", "500.00", "USD", estimate="0.02")).alert_at
    (80, 100)
    """
    return BudgetRules(
        ceiling=to_millionths(budget.ceiling),
        currency=budget.currency,
        per=budget.per,
        timezone=budget.timezone,
        estimate=to_millionths(budget.estimate),
        on_spent=budget.on_spent,
        per_tenant=budget.per_tenant,
        alert_at=shares(budget.alert_at),
    )


def _amount(field: str, amount: object) -> int:
    try:
        return to_millionths(amount)
    except ValueError as error:
        _refuse(field, amount, f"an amount, such as 0.02: {error}")
