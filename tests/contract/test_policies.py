"""Declared rules, overrides above them, and what is in force (S54)."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane.model.admission import RefusalKind
from fairlane.model.instants import LAST_INSTANT, SECOND
from fairlane.model.layers import (
    DEFAULTS,
    Change,
    GateRules,
    Kind,
    Override,
    QueueRules,
    Rules,
    Subject,
    TaskRules,
    TenantRules,
)
from fairlane.model.limits import Limits, Rate
from fairlane.store.contract.policies import Difference, OverrideRequest, PolicyView, PutRequest, ReadRequest
from tests.contract.world import ALL, World

INSTANT: Final = 0.000_001
BULK: Final = Subject(Kind.QUEUE, "bulk")
SLOW, FAST = Rate(1, "minute"), Rate(9, "second", burst=3)

RULES: Final[dict[Kind, Rules]] = {
    Kind.QUEUE: QueueRules(Limits(waiting=5, on_full="reject", running=2, rate=SLOW), FAST, 100, "seconds"),
    Kind.TENANT: TenantRules(2.5, {"plan": "gold"}, {"bulk": Limits(running=1), "*": Limits(waiting=3)}),
    Kind.TASK: TaskRules(SLOW, "door"),
    Kind.GATE: GateRules(3, FAST),
}
"""Rules with every value set."""


async def put(world: World, **rules: Rules) -> tuple[Difference, ...]:
    """Declare queues by name."""
    return await world.store.policies.put(
        PutRequest(scope=ALL, rules={Subject(Kind.QUEUE, name): one for name, one in rules.items()})
    )


@pytest.mark.parametrize("kind", Kind)
async def test_what_was_never_named_has_defaults(world: World, kind: Kind) -> None:
    """S54: nothing declared, nothing above, nothing held."""
    subject = Subject(kind, "new")
    assert await world.view(kind, "new") == PolicyView(subject, None, None, DEFAULTS[kind], None, None)


@pytest.mark.parametrize("kind", Kind)
async def test_what_is_declared_is_in_force(world: World, kind: Kind) -> None:
    """S54: every value of every kind comes back as it was put."""
    await world.declare(kind, "it", RULES[kind])
    subject = Subject(kind, "it")
    assert await world.view(kind, "it") == PolicyView(subject, RULES[kind], None, RULES[kind], None, None)


async def test_a_put_reports_what_was_different_before(world: World) -> None:
    """S54: new values with nothing before, changed ones with both, equal ones not at all."""
    one, two = QueueRules(max_waiting=1), QueueRules(max_waiting=2)
    assert set(await put(world, a=one, b=one)) == {
        Difference(Subject(Kind.QUEUE, "a"), None, one),
        Difference(Subject(Kind.QUEUE, "b"), None, one),
    }
    assert await put(world, a=one, b=one) == ()
    assert await put(world, a=one, b=two) == (Difference(Subject(Kind.QUEUE, "b"), one, two),)
    assert await put(world) == ()


async def test_the_newest_put_wins_and_replaces_whole(world: World) -> None:
    """S54: values that it leaves out are defaults again; subjects that it leaves out stay."""
    await put(world, bulk=QueueRules(max_waiting=1, rate=SLOW), mail=QueueRules(max_waiting=3))
    await put(world, bulk=QueueRules(rate=FAST))
    assert (await world.view(Kind.QUEUE, "bulk")).effective == QueueRules(rate=FAST)
    assert (await world.view(Kind.QUEUE, "mail")).effective == QueueRules(max_waiting=3)


OVERLAYS: Final[list[tuple[Kind, Rules, Change, Rules]]] = [
    (Kind.QUEUE, QueueRules(rate=SLOW), Change(max_waiting=5), QueueRules(rate=SLOW, max_waiting=5)),
    (Kind.QUEUE, QueueRules(rate=SLOW, max_waiting=5), Change(rate=None), QueueRules(max_waiting=5)),
    (Kind.QUEUE, QueueRules(max_waiting=5), Change(max_waiting=None, rate=FAST), QueueRules(rate=FAST)),
    (
        Kind.QUEUE,
        QueueRules(Limits(waiting=9, running=9)),
        Change(limits=Limits(running=1)),
        QueueRules(Limits(running=1)),
    ),
    (
        Kind.QUEUE,
        QueueRules(cost="seconds"),
        Change(max_waiting=0),
        QueueRules(max_waiting=0, cost="seconds"),
    ),
    (Kind.TENANT, TenantRules(2.0, {"a": "b"}), Change(weight=0.01), TenantRules(0.01, {"a": "b"})),
    (
        Kind.TENANT,
        TenantRules(2.0, {}, {"a": Limits(running=1), "b": Limits(running=2)}),
        Change(queue_limits={"b": Limits(running=3), "*": Limits(running=4)}),
        TenantRules(2.0, {}, {"a": Limits(running=1), "b": Limits(running=3), "*": Limits(running=4)}),
    ),
    (Kind.TASK, TaskRules(gate="door"), Change(rate=SLOW), TaskRules(SLOW, "door")),
    (Kind.GATE, GateRules(3, SLOW), Change(limit=0), GateRules(0, SLOW)),
    (Kind.GATE, GateRules(3, SLOW), Change(limit=None, rate=None), GateRules()),
]


@pytest.mark.parametrize(("kind", "declared", "change", "effective"), OVERLAYS, ids=str)
async def test_an_override_lies_above_what_is_declared(
    world: World, kind: Kind, declared: Rules, change: Change, effective: Rules
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
    before = await world.override(Kind.QUEUE, "bulk", Change(max_waiting=7))
    await put(world, bulk=QueueRules(max_waiting=2, rate=SLOW))
    view = await world.view(Kind.QUEUE, "bulk")
    assert view.override == before.override
    assert view.effective == QueueRules(max_waiting=7, rate=SLOW)
    await world.reset(Kind.QUEUE, "bulk")
    assert (await world.view(Kind.QUEUE, "bulk")).effective == QueueRules(max_waiting=2, rate=SLOW)


async def test_an_override_needs_nothing_declared_beneath(world: World) -> None:
    """S54: it lies above the defaults then."""
    view = await world.override(Kind.QUEUE, "bulk", Change(max_waiting=7))
    assert (view.declared, view.effective) == (None, QueueRules(max_waiting=7))


async def test_a_later_override_replaces_an_earlier_one_whole(world: World) -> None:
    """S54: values that only the earlier one set are as declared again, and so is its end."""
    await world.override(Kind.QUEUE, "bulk", Change(max_waiting=7), until=world.now + SECOND)
    await world.override(Kind.QUEUE, "bulk", Change(rate=FAST))
    world.advance(5)
    assert (await world.view(Kind.QUEUE, "bulk")).effective == QueueRules(rate=FAST)


async def test_an_override_ends_by_its_time(world: World) -> None:
    """S54: in force up to that instant, not at it, and not shown any more."""
    await put(world, bulk=QueueRules(max_waiting=1))
    await world.override(Kind.QUEUE, "bulk", Change(max_waiting=0), until=world.now + SECOND)
    world.advance(1 - INSTANT)
    refused = (await world.send(world.new(queue="bulk"))).refused
    assert [(one.kind, one.limit) for one in refused] == [(RefusalKind.QUEUE_FULL, 0)]
    world.advance(INSTANT)
    view = await world.view(Kind.QUEUE, "bulk")
    assert (view.override, view.effective) == (None, QueueRules(max_waiting=1))
    assert not (await world.send(world.new(queue="bulk"))).refused


async def test_a_reset_without_an_override_changes_nothing(world: World) -> None:
    """S54: also of a subject that was never named."""
    await put(world, bulk=QueueRules(max_waiting=1))
    before = await world.view(Kind.QUEUE, "bulk")
    assert await world.reset(Kind.QUEUE, "bulk") == before
    assert (await world.reset(Kind.GATE, "new")).effective == GateRules()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Kind.QUEUE, Change(weight=2.0)),
        (Kind.QUEUE, Change(limit=2)),
        (Kind.QUEUE, Change(max_waiting=2, queue_limits={})),
        (Kind.TENANT, Change(max_waiting=2)),
        (Kind.TENANT, Change(limits=Limits())),
        (Kind.TENANT, Change(weight=2.0, rate=SLOW)),
        (Kind.TASK, Change(limit=2)),
        (Kind.TASK, Change(weight=2.0)),
        (Kind.GATE, Change(limits=Limits())),
        (Kind.GATE, Change(limit=3, max_waiting=2)),
        (Kind.TENANT, Change(weight=0.0)),
        (Kind.TENANT, Change(weight=0.009)),
        (Kind.TENANT, Change(weight=1000.1)),
        (Kind.TENANT, Change(weight=-1.0)),
        (Kind.TENANT, Change(weight=float("nan"))),
        (Kind.QUEUE, Change(max_waiting=-1)),
        (Kind.GATE, Change(limit=-1)),
        *((kind, Change()) for kind in Kind),
    ],
    ids=str,
)
async def test_a_change_that_does_not_fit_is_refused_and_not_stored(
    world: World, kind: Kind, change: Change
) -> None:
    """S54: values that the kind does not have or that are out of range, and a change of nothing."""
    good = {
        Kind.QUEUE: Change(max_waiting=8),
        Kind.TENANT: Change(weight=8.0),
        Kind.TASK: Change(rate=FAST),
        Kind.GATE: Change(limit=8),
    }
    before = await world.override(kind, "it", good[kind])
    with pytest.raises(ValueError, match=r"cannot be set|weight|nothing is set|must be"):
        await world.override(kind, "it", change)
    assert await world.view(kind, "it") == before


async def test_many_subjects_are_read_at_once(world: World) -> None:
    """S54: each under its own name, known or not; kinds of one name are different subjects."""
    subjects = tuple(Subject(kind, "x") for kind in Kind)
    await world.declare(Kind.GATE, "x", GateRules(1))
    views = await world.store.policies.read(ReadRequest(scope=ALL, subjects=subjects))
    assert {subject: view.effective for subject, view in views.items()} == {
        Subject(kind, "x"): GateRules(1) if kind is Kind.GATE else DEFAULTS[kind] for kind in Kind
    }
    assert all(view.subject == subject for subject, view in views.items())
    assert await world.store.policies.read(ReadRequest(scope=ALL, subjects=())) == {}


@pytest.mark.parametrize("verb", ["pause", "close", "override"])
async def test_an_end_beyond_all_instants_is_refused(world: World, verb: str) -> None:
    """S2, S54: whoever means for ever leaves it out; the last instant is fine."""

    async def ask(until: int) -> object:
        if verb == "override":
            return await world.override(Kind.TENANT, "acme", Change(weight=2.0), until)
        return await getattr(world, verb)(Kind.TENANT, "acme", until)

    with pytest.raises(ValueError, match="until is 9007199254740993"):
        await ask(LAST_INSTANT + 1)
    view = await world.view(Kind.TENANT, "acme")
    assert (view.override, view.paused, view.closed) == (None, None, None)
    await ask(LAST_INSTANT)
    assert await world.view(Kind.TENANT, "acme") != view
