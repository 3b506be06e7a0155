"""An override lies above declared values until it ends; the most specific limits hold as a whole (S54)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import UNSET

from fairlane.model.names import name_hint, tenant_hint
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import NO_LIMITS, Limits, Rate
from fairlane.model.policy.overrides import (
    DEFAULTS,
    EVERY,
    BreakerRules,
    GateRules,
    Hold,
    Override,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
    change_problems,
    is_active,
    limits_of,
    overlay,
)


def above(until: int | None = None, **values: Any) -> Override:
    """Build an override of these values."""
    return Override(change=PolicyChange(**values), who="ops", set_at=0, until=until)


LIMITS, RATE = Limits(running=8), Rate(50)

SETTABLE: dict[SubjectKind, dict[str, Any]] = {
    SubjectKind.QUEUE: {"limits": LIMITS, "rate": RATE, "max_waiting": 5},
    SubjectKind.TENANT: {"weight": 2.0, "queue_limits": {"bulk": LIMITS}},
    SubjectKind.TASK: {"rate": RATE},
    SubjectKind.GATE: {"limit": 3, "rate": RATE},
    SubjectKind.BREAKER: {},
    SubjectKind.BUDGET: {"ceiling": 5},
}
VALUES = {name: value for values in SETTABLE.values() for name, value in values.items()}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("kind", SubjectKind)
def test_each_kind_of_subject_takes_its_own_values_and_refuses_the_others(
    kind: SubjectKind, name: str
) -> None:
    """By name, so that a person sees what was wrong."""
    change = PolicyChange(**{name: VALUES[name]})
    expected = [] if name in SETTABLE[kind] else [f"{name} cannot be set on a {kind.value}"]
    assert change_problems(kind, change) == expected


def test_every_value_of_a_change_belongs_to_some_kind() -> None:
    """No value can be set that nobody has."""
    assert set(PolicyChange.__struct_fields__) == set(VALUES)


@pytest.mark.parametrize(
    ("kind", "change", "problems"),
    [
        (SubjectKind.QUEUE, PolicyChange(), ["nothing is set; give one of: limits, max_waiting, rate"]),
        (SubjectKind.QUEUE, PolicyChange(max_waiting=-1), ["max_waiting must be 0 or more, not -1"]),
        (SubjectKind.GATE, PolicyChange(limit=-3), ["limit must be 0 or more, not -3"]),
        (SubjectKind.TENANT, PolicyChange(weight=0), ["a weight is a number from 0.01 to 1000, not 0"]),
        (
            SubjectKind.TENANT,
            PolicyChange(weight=math.nan),
            ["a weight is a number from 0.01 to 1000, not nan"],
        ),
        (
            SubjectKind.TASK,
            PolicyChange(weight=5000, limit=-1),
            [
                "weight cannot be set on a task",
                "limit cannot be set on a task",
                "limit must be 0 or more, not -1",
                "a weight is a number from 0.01 to 1000, not 5000",
            ],
        ),
        (SubjectKind.QUEUE, PolicyChange(max_waiting=0), []),
        (SubjectKind.QUEUE, PolicyChange(max_waiting=None), []),
        (SubjectKind.GATE, PolicyChange(limit=0), []),
        (SubjectKind.TASK, PolicyChange(rate=None), []),
    ],
)
def test_a_change_that_means_nothing_is_told_so(
    kind: SubjectKind, change: PolicyChange, problems: list[str]
) -> None:
    """All that is wrong at once; None takes a limit away and is a change."""
    assert change_problems(kind, change) == problems


def test_a_change_lists_what_it_sets_and_only_that() -> None:
    """UNSET stays as declared, None does not."""
    assert PolicyChange().fields() == {}
    assert PolicyChange(rate=None, max_waiting=0).fields() == {"rate": None, "max_waiting": 0}
    assert PolicyChange().rate is UNSET


DECLARED: dict[SubjectKind, Rules] = {
    SubjectKind.QUEUE: QueueRules(limits=Limits(waiting=1), rate=Rate(1), max_waiting=1, cost="seconds"),
    SubjectKind.TENANT: TenantRules(weight=3.0, labels={"plan": "gold"}, limits={"mail": Limits(waiting=2)}),
    SubjectKind.TASK: TaskRules(rate=Rate(1), gate="screens"),
    SubjectKind.GATE: GateRules(limit=1, rate=Rate(1)),
    SubjectKind.BREAKER: BreakerRules(failures=3),
    SubjectKind.BUDGET: BudgetRules(ceiling=1, currency="USD"),
}


@pytest.mark.parametrize("kind", SubjectKind)
def test_an_override_changes_what_it_sets_and_nothing_else(kind: SubjectKind) -> None:
    """Value by value, on top of what is declared."""
    declared = DECLARED[kind]
    for name, value in SETTABLE[kind].items():
        found = overlay(declared, above(**{name: value}), 0)
        for field in declared.__struct_fields__:
            if field == name:
                assert getattr(found, field) == value
            elif (name, field) != ("queue_limits", "limits"):
                assert getattr(found, field) == getattr(declared, field)


@pytest.mark.parametrize("kind", SubjectKind)
def test_without_an_override_the_declared_values_hold(kind: SubjectKind) -> None:
    """The very same ones."""
    assert overlay(DECLARED[kind], None, 0) is DECLARED[kind]


def test_an_override_can_take_a_limit_away() -> None:
    """None is a value; only UNSET leaves what is declared."""
    found = overlay(DECLARED[SubjectKind.QUEUE], above(rate=None, max_waiting=None, limits=NO_LIMITS), 0)
    assert found == QueueRules(cost="seconds")


@pytest.mark.parametrize(
    ("until", "now", "holds"),
    [(None, 10**18, True), (10, 9, True), (10, 10, False), (10, 11, False), (0, 0, False)],
)
def test_an_override_or_a_hold_ends_at_its_until(until: int | None, now: int, holds: bool) -> None:
    """The instant itself is after it; without one it lasts until it is reset."""
    assert is_active(until, now) is holds
    found = overlay(QueueRules(max_waiting=1), above(until, max_waiting=5), now)
    assert found.max_waiting == (5 if holds else 1)
    assert is_active(Hold(who="ops", reason="x", set_at=0, until=until).until, now) is holds


def test_a_tenants_limits_are_overridden_queue_by_queue() -> None:
    """Others that were declared stay, and the declared value itself is not touched."""
    declared = TenantRules(limits={"mail": Limits(waiting=2), "bulk": Limits(waiting=3)})
    found = overlay(declared, above(queue_limits={"bulk": LIMITS, EVERY: Limits(running=1)}), 0)
    assert found.limits == {"mail": Limits(waiting=2), "bulk": LIMITS, EVERY: Limits(running=1)}
    assert declared.limits == {"mail": Limits(waiting=2), "bulk": Limits(waiting=3)}


def test_limits_by_queue_mean_nothing_on_other_subjects() -> None:
    """`change_problems` refuses them; were one stored all the same, it would do nothing."""
    assert (
        overlay(DECLARED[SubjectKind.QUEUE], above(queue_limits={"bulk": LIMITS}), 0)
        == DECLARED[SubjectKind.QUEUE]
    )


# ── precedence ───────────────────────────────────────────────────────────────

OWN_QUEUE, OWN_ALL, ANY_QUEUE, ANY_ALL, OF_QUEUE = (Limits(running=number) for number in range(1, 6))
LADDER = [
    ("tenant", "bulk", OWN_QUEUE),
    ("tenant", EVERY, OWN_ALL),
    ("any", "bulk", ANY_QUEUE),
    ("any", EVERY, ANY_ALL),
]


@pytest.mark.parametrize("given", [[bool(bits >> place & 1) for place in range(4)] for bits in range(16)])
def test_the_most_specific_limits_that_are_given_hold_as_a_whole(given: list[bool]) -> None:
    """The tenant's for the queue, the tenant's for all, the same of everyone, the queue's own."""
    tables: dict[str, dict[str, Limits]] = {"tenant": {"mail": Limits(running=99)}, "any": {}}
    present = [rung for rung, is_given in zip(LADDER, given, strict=True) if is_given]
    for whose, queue, limits in present:
        tables[whose][queue] = limits
    found = limits_of(
        "bulk",
        TenantRules(limits=tables["tenant"]),
        TenantRules(limits=tables["any"]),
        QueueRules(limits=OF_QUEUE),
    )
    assert found is (present[0][2] if present else OF_QUEUE)


def test_a_more_specific_table_is_not_filled_up_from_a_less_specific_one() -> None:
    """As a whole: what it does not limit is not limited."""
    own = TenantRules(limits={"bulk": Limits(running=8)})
    found = limits_of("bulk", own, TenantRules(), QueueRules(limits=Limits(waiting=100, running=1)))
    assert (found.running, found.waiting) == (8, None)


# ── the rest ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("weight", [0, -1, 0.001, 5000, math.nan])
def test_a_tenant_cannot_be_declared_with_a_weight_that_means_nothing(weight: float) -> None:
    """At the declaration, not at the first claim."""
    with pytest.raises(ValueError, match="a weight is a number from"):
        TenantRules(weight=weight)


def test_the_defaults_limit_nothing() -> None:
    """One entry for each kind."""
    assert set(DEFAULTS) == set(SubjectKind)
    assert DEFAULTS[SubjectKind.QUEUE] == QueueRules(NO_LIMITS, None, None, "jobs")
    assert DEFAULTS[SubjectKind.TENANT] == TenantRules(1.0, {}, {})
    assert DEFAULTS[SubjectKind.TASK] == TaskRules(None, None)
    assert DEFAULTS[SubjectKind.GATE] == GateRules(None, None)


def test_the_sign_for_everyone_is_no_legal_name() -> None:
    """No queue and no tenant can be called so."""
    assert name_hint(EVERY) is not None
    assert tenant_hint(EVERY) is not None


def test_subjects_are_named_sorted_and_usable_as_keys() -> None:
    """As `explain` names them."""
    subjects = [
        Subject(SubjectKind.TASK, "a"),
        Subject(SubjectKind.GATE, "b"),
        Subject(SubjectKind.GATE, "a"),
    ]
    assert [str(one) for one in sorted(subjects)] == ["gate a", "gate b", "task a"]
    assert len({*subjects, Subject(SubjectKind.TASK, "a")}) == 3
