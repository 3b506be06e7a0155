"""Declared rules, overrides above them, and what is in force (S54)."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane.model.instants import LAST_INSTANT, SECOND
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.policy.budget import BudgetRules
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    DEFAULTS,
    BreakerRules,
    GateRules,
    Override,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.store.contract.policies import Difference, OverrideRequest, PolicyView, PutRequest, ReadRequest
from tests.contract.world import ALL, World

INSTANT: Final = 0.000_001
BULK: Final = Subject(SubjectKind.QUEUE, "bulk")
SLOW, FAST = Rate(1, "minute"), Rate(9, "second", burst=3)

RULES: Final[dict[SubjectKind, Rules]] = {
    SubjectKind.QUEUE: QueueRules(
        Limits(waiting=5, on_full="reject", running=2, rate=SLOW), FAST, 100, "seconds"
    ),
    SubjectKind.TENANT: TenantRules(
        2.5, {"plan": "gold"}, {"bulk": Limits(running=1), "*": Limits(waiting=3)}
    ),
    SubjectKind.TASK: TaskRules(SLOW, "door", "purse", "mail"),
    SubjectKind.GATE: GateRules(3, FAST),
    SubjectKind.BREAKER: BreakerRules(3, 30 * SECOND, 40 * SECOND, "tenant", "fail", 1),
    SubjectKind.BUDGET: BudgetRules(5, "USD", "week", "Europe/Berlin", 2, "park", True, (50, 100)),
}
"""Rules with every value set."""


async def put(world: World, **rules: Rules) -> tuple[Difference, ...]:
    """Declare queues by name."""
    return await world.store.policies.put(
        PutRequest(scope=ALL, rules={Subject(SubjectKind.QUEUE, name): one for name, one in rules.items()})
    )


@pytest.mark.parametrize("kind", SubjectKind)
async def test_what_was_never_named_has_defaults(world: World, kind: SubjectKind) -> None:
    """S54: nothing declared, nothing above, nothing held."""
    subject = Subject(kind, "new")
    assert await world.view(kind, "new") == PolicyView(subject, None, None, DEFAULTS[kind], None, None)


@pytest.mark.parametrize("kind", SubjectKind)
async def test_what_is_declared_is_in_force(world: World, kind: SubjectKind) -> None:
    """S54: every value of every kind comes back as it was put."""
    await world.declare(kind, "it", RULES[kind])
    subject = Subject(kind, "it")
    assert await world.view(kind, "it") == PolicyView(subject, RULES[kind], None, RULES[kind], None, None)


async def test_a_put_reports_what_was_different_before(world: World) -> None:
    """S54: new values with nothing before, changed ones with both, equal ones not at all."""
    one, two = QueueRules(max_waiting=1), QueueRules(max_waiting=2)
    assert set(await put(world, a=one, b=one)) == {
        Difference(Subject(SubjectKind.QUEUE, "a"), None, one),
        Difference(Subject(SubjectKind.QUEUE, "b"), None, one),
    }
    assert await put(world, a=one, b=one) == ()
    assert await put(world, a=one, b=two) == (Difference(Subject(SubjectKind.QUEUE, "b"), one, two),)
    assert await put(world) == ()


async def test_the_newest_put_wins_and_replaces_whole(world: World) -> None:
    """S54: values that it leaves out are defaults again; subjects that it leaves out stay."""
    await put(world, bulk=QueueRules(max_waiting=1, rate=SLOW), mail=QueueRules(max_waiting=3))
    await put(world, bulk=QueueRules(rate=FAST))
    assert (await world.view(SubjectKind.QUEUE, "bulk")).effective == QueueRules(rate=FAST)
    assert (await world.view(SubjectKind.QUEUE, "mail")).effective == QueueRules(max_waiting=3)


OVERLAYS: Final[list[tuple[SubjectKind, Rules, PolicyChange, Rules]]] = [
    (
        SubjectKind.QUEUE,
        QueueRules(rate=SLOW),
        PolicyChange(max_waiting=5),
        QueueRules(rate=SLOW, max_waiting=5),
    ),
    (
        SubjectKind.QUEUE,
        QueueRules(rate=SLOW, max_waiting=5),
        PolicyChange(rate=None),
        QueueRules(max_waiting=5),
    ),
    (
        SubjectKind.QUEUE,
        QueueRules(max_waiting=5),
        PolicyChange(max_waiting=None, rate=FAST),
        QueueRules(rate=FAST),
    ),
    (
        SubjectKind.QUEUE,
        QueueRules(Limits(waiting=9, running=9)),
        PolicyChange(limits=Limits(running=1)),
        QueueRules(Limits(running=1)),
    ),
    (
        SubjectKind.QUEUE,
        QueueRules(cost="seconds"),
        PolicyChange(max_waiting=0),
        QueueRules(max_waiting=0, cost="seconds"),
    ),
    (
        SubjectKind.TENANT,
        TenantRules(2.0, {"a": "b"}),
        PolicyChange(weight=0.01),
        TenantRules(0.01, {"a": "b"}),
    ),
    (
        SubjectKind.TENANT,
        TenantRules(2.0, {}, {"a": Limits(running=1), "b": Limits(running=2)}),
        PolicyChange(queue_limits={"b": Limits(running=3), "*": Limits(running=4)}),
        TenantRules(2.0, {}, {"a": Limits(running=1), "b": Limits(running=3), "*": Limits(running=4)}),
    ),
    (SubjectKind.TASK, TaskRules(gate="door"), PolicyChange(rate=SLOW), TaskRules(SLOW, "door")),
    (SubjectKind.GATE, GateRules(3, SLOW), PolicyChange(limit=0), GateRules(0, SLOW)),
    (SubjectKind.GATE, GateRules(3, SLOW), PolicyChange(limit=None, rate=None), GateRules()),
    (SubjectKind.BUDGET, BudgetRules(5, "USD"), PolicyChange(ceiling=7), BudgetRules(7, "USD")),
]


@pytest.mark.parametrize(("kind", "declared", "change", "effective"), OVERLAYS, ids=str)
async def test_an_override_lies_above_what_is_declared(
    world: World, kind: SubjectKind, declared: Rules, change: PolicyChange, effective: Rules
) -> None:
    """S54: what it sets is in force, the rest is as declared; it says who, why and since when."""
    await world.declare(kind, "it", declared)
    set_at = world.advance(1)
    subject, until = Subject(kind, "it"), world.now + SECOND
    view = await world.store.policies.override(
        OverrideRequest(scope=ALL, subject=subject, change=change, who="ops", note="calm", until=until)
    )
    above = Override(change=change, who="ops", note="calm", set_at=set_at, until=until)
    assert view == PolicyView(subject, declared, above, effective, None, None)
    assert await world.view(kind, "it") == view
    assert await world.reset(kind, "it") == PolicyView(subject, declared, None, declared, None, None)


async def test_an_override_survives_a_put(world: World) -> None:
    """S54: a deploy changes what lies beneath, not what is in force above it."""
    await put(world, bulk=QueueRules(max_waiting=1))
    before = await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=7))
    await put(world, bulk=QueueRules(max_waiting=2, rate=SLOW))
    view = await world.view(SubjectKind.QUEUE, "bulk")
    assert view.override == before.override
    assert view.effective == QueueRules(max_waiting=7, rate=SLOW)
    await world.reset(SubjectKind.QUEUE, "bulk")
    assert (await world.view(SubjectKind.QUEUE, "bulk")).effective == QueueRules(max_waiting=2, rate=SLOW)


async def test_an_override_needs_nothing_declared_beneath(world: World) -> None:
    """S54: it lies above the defaults then."""
    view = await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=7))
    assert (view.declared, view.effective) == (None, QueueRules(max_waiting=7))


async def test_a_later_override_replaces_an_earlier_one_whole(world: World) -> None:
    """S54: values that only the earlier one set are as declared again, and so is its end."""
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=7), until=world.now + SECOND)
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(rate=FAST))
    world.advance(5)
    assert (await world.view(SubjectKind.QUEUE, "bulk")).effective == QueueRules(rate=FAST)


async def test_an_override_ends_by_its_time(world: World) -> None:
    """S54: in force up to that instant, not at it, and not shown any more."""
    await put(world, bulk=QueueRules(max_waiting=1))
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=0), until=world.now + SECOND)
    world.advance(1 - INSTANT)
    refused = (await world.send(world.new(queue="bulk"))).refused
    assert [(one.kind, one.limit) for one in refused] == [(RefusalKind.QUEUE_FULL, 0)]
    world.advance(INSTANT)
    view = await world.view(SubjectKind.QUEUE, "bulk")
    assert (view.override, view.effective) == (None, QueueRules(max_waiting=1))
    assert not (await world.send(world.new(queue="bulk"))).refused


async def test_a_reset_without_an_override_changes_nothing(world: World) -> None:
    """S54: also of a subject that was never named."""
    await put(world, bulk=QueueRules(max_waiting=1))
    before = await world.view(SubjectKind.QUEUE, "bulk")
    assert await world.reset(SubjectKind.QUEUE, "bulk") == before
    assert (await world.reset(SubjectKind.GATE, "new")).effective == GateRules()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (SubjectKind.QUEUE, PolicyChange(weight=2.0)),
        (SubjectKind.QUEUE, PolicyChange(limit=2)),
        (SubjectKind.QUEUE, PolicyChange(max_waiting=2, queue_limits={})),
        (SubjectKind.TENANT, PolicyChange(max_waiting=2)),
        (SubjectKind.TENANT, PolicyChange(limits=Limits())),
        (SubjectKind.TENANT, PolicyChange(weight=2.0, rate=SLOW)),
        (SubjectKind.TASK, PolicyChange(limit=2)),
        (SubjectKind.TASK, PolicyChange(weight=2.0)),
        (SubjectKind.GATE, PolicyChange(limits=Limits())),
        (SubjectKind.GATE, PolicyChange(limit=3, max_waiting=2)),
        (SubjectKind.TENANT, PolicyChange(weight=0.0)),
        (SubjectKind.TENANT, PolicyChange(weight=0.009)),
        (SubjectKind.TENANT, PolicyChange(weight=1000.1)),
        (SubjectKind.TENANT, PolicyChange(weight=-1.0)),
        (SubjectKind.TENANT, PolicyChange(weight=float("nan"))),
        (SubjectKind.QUEUE, PolicyChange(max_waiting=-1)),
        (SubjectKind.GATE, PolicyChange(limit=-1)),
        (SubjectKind.BUDGET, PolicyChange(limit=1)),
        (SubjectKind.BUDGET, PolicyChange(ceiling=-1)),
        *((kind, PolicyChange()) for kind in SubjectKind),
    ],
    ids=str,
)
async def test_a_change_that_does_not_fit_is_refused_and_not_stored(
    world: World, kind: SubjectKind, change: PolicyChange
) -> None:
    """S54: values that the kind does not have or that are out of range, and a change of nothing."""
    good = {
        SubjectKind.QUEUE: PolicyChange(max_waiting=8),
        SubjectKind.TENANT: PolicyChange(weight=8.0),
        SubjectKind.TASK: PolicyChange(rate=FAST),
        SubjectKind.GATE: PolicyChange(limit=8),
        SubjectKind.BUDGET: PolicyChange(ceiling=8),
    }
    if kind is SubjectKind.BREAKER:  # whatever may be set by hand is no rule of it
        before = await world.view(kind, "it")
    else:
        before = await world.override(kind, "it", good[kind])
    with pytest.raises(ValueError, match=r"cannot be set|weight|nothing is set|must be"):
        await world.override(kind, "it", change)
    assert await world.view(kind, "it") == before


async def test_many_subjects_are_read_at_once(world: World) -> None:
    """S54: each under its own name, known or not; kinds of one name are different subjects."""
    subjects = tuple(Subject(kind, "x") for kind in SubjectKind)
    await world.declare(SubjectKind.GATE, "x", GateRules(1))
    views = await world.store.policies.read(ReadRequest(scope=ALL, subjects=subjects))
    assert {subject: view.effective for subject, view in views.items()} == {
        Subject(kind, "x"): GateRules(1) if kind is SubjectKind.GATE else DEFAULTS[kind]
        for kind in SubjectKind
    }
    assert all(view.subject == subject for subject, view in views.items())
    assert await world.store.policies.read(ReadRequest(scope=ALL, subjects=())) == {}


@pytest.mark.parametrize("verb", ["pause", "close", "override"])
async def test_an_end_beyond_all_instants_is_refused(world: World, verb: str) -> None:
    """S2, S54: whoever means for ever leaves it out; the last instant is fine."""

    async def ask(until: int) -> object:
        if verb == "override":
            return await world.override(SubjectKind.TENANT, "acme", PolicyChange(weight=2.0), until)
        return await getattr(world, verb)(SubjectKind.TENANT, "acme", until)

    with pytest.raises(ValueError, match="until is 9007199254740993"):
        await ask(LAST_INSTANT + 1)
    view = await world.view(SubjectKind.TENANT, "acme")
    assert (view.override, view.paused, view.closed) == (None, None, None)
    await ask(LAST_INSTANT)
    assert await world.view(SubjectKind.TENANT, "acme") != view
