"""Policies take effect at the next enqueue or claim, and the most specific limits hold (S7, S54)."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    EVERY,
    GateRules,
    PolicyChange,
    QueueRules,
    Rules,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from tests.contract.world import World

INSTANT: Final = 0.000_001

OWN, OWN_EVERY, ALL_QUEUE, ALL_EVERY, QUEUE = range(1, 6)
"""Where a limit of so many waiting jobs is given: from the most specific place to the least."""


@pytest.mark.parametrize("first", [OWN, OWN_EVERY, ALL_QUEUE, ALL_EVERY, QUEUE])
async def test_the_most_specific_limits_hold(world: World, first: int) -> None:
    """S7, S54: the tenant's for the queue, its for every queue, the same of everyone, the queue's."""

    def limits(queue: int, every: int) -> dict[str, Limits]:
        given = {"default": queue, EVERY: every}
        return {"elsewhere": Limits(waiting=0)} | {
            name: Limits(waiting=place) for name, place in given.items() if place >= first
        }

    await world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(waiting=QUEUE)))
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(limits=limits(ALL_QUEUE, ALL_EVERY)))
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits=limits(OWN, OWN_EVERY)))
    reply = await world.send(*(world.new() for _ in range(6)))
    assert {one.limit for one in reply.over} == {first}


async def test_limits_are_taken_as_a_whole(world: World) -> None:
    """S54: a tenant's own limits leave nothing of the queue's, also where they say nothing."""
    await world.declare(
        SubjectKind.QUEUE, "default", QueueRules(Limits(waiting=0, on_full="reject", running=0))
    )
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(limits={"default": Limits(running=1)}))
    await world.enqueue_many(2)
    assert len(await world.claim(2)) == 1
    assert [one.kind for one in (await world.send(world.new("globex"))).refused] == [
        RefusalKind.WAITING_LIMIT
    ]


async def test_everyones_weight_is_for_those_that_declare_nothing(world: World) -> None:
    """S7, S41: three turns to one against a declared tenant."""
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(weight=3.0))
    await world.declare(SubjectKind.TENANT, "acme", TenantRules())
    await world.enqueue_many(4, "acme")
    await world.enqueue_many(6, "globex")
    assert sorted(await world.tenants_served(8)) == ["acme"] * 2 + ["globex"] * 6


async def test_an_override_for_everyone_reaches_those_that_declare_nothing(world: World) -> None:
    """S7, S54: weight and limits alike; a tenant of its own rules keeps its weight."""
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(labels={"plan": "free"}))
    await world.declare(SubjectKind.TENANT, "acme", TenantRules(weight=2.0))
    await world.override(
        SubjectKind.TENANT,
        EVERY,
        PolicyChange(weight=5.0, queue_limits={"default": Limits(waiting=1, on_full="reject")}),
    )
    assert (await world.view(SubjectKind.TENANT, "globex")).effective == TenantRules(
        5.0, {"plan": "free"}, {"default": Limits(waiting=1, on_full="reject")}
    )
    assert (await world.view(SubjectKind.TENANT, "acme")).effective == TenantRules(weight=2.0)
    refused = (await world.send(*(world.new("globex") for _ in range(2)))).refused
    assert [(one.index, one.limit) for one in refused] == [(1, 1)]
    await world.reset(SubjectKind.TENANT, EVERY)
    assert (await world.view(SubjectKind.TENANT, "globex")).effective == TenantRules(labels={"plan": "free"})


async def test_an_own_override_lies_above_what_everyone_has(world: World) -> None:
    """S7, S54: of one that declares nothing itself."""
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(3.0, {"plan": "free"}))
    view = await world.override(SubjectKind.TENANT, "globex", PolicyChange(weight=7.0))
    assert (view.declared, view.effective) == (None, TenantRules(7.0, {"plan": "free"}))


STOPS: Final[dict[str, tuple[SubjectKind, str, Rules, PolicyChange]]] = {
    "running limit of the queue": (
        SubjectKind.QUEUE,
        "default",
        QueueRules(Limits(running=0)),
        PolicyChange(limits=Limits(running=2)),
    ),
    "running limit of the tenant": (
        SubjectKind.TENANT,
        "acme",
        TenantRules(limits={"default": Limits(running=0)}),
        PolicyChange(queue_limits={"default": Limits(running=2)}),
    ),
    "running limit of everyone": (
        SubjectKind.TENANT,
        EVERY,
        TenantRules(limits={EVERY: Limits(running=0)}),
        PolicyChange(queue_limits={EVERY: Limits(running=2)}),
    ),
    "limit of the gate": (SubjectKind.GATE, "door", GateRules(0), PolicyChange(limit=2)),
}
"""What lets nothing run, and the change that lets two."""


async def declare(world: World, kind: SubjectKind, name: str, rules: Rules) -> None:
    """Declare one subject, and that the task goes through the gate."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.declare(kind, name, rules)


@pytest.mark.parametrize("stop", STOPS)
async def test_a_raised_limit_lets_in_what_waited_for_it(world: World, stop: str) -> None:
    """S42, S54: at the next claim, though an earlier one parked the jobs; a lowered one interrupts none."""
    kind, name, rules, change = STOPS[stop]
    await world.enqueue_many(4)
    await declare(world, kind, name, rules)
    assert await world.claim(4) == []
    await world.override(kind, name, change)
    first, second = await world.claim(4)
    await world.reset(kind, name)
    await world.settle(first)
    assert await world.claim(4) == []
    assert not (await world.renew(second)).stale


SLOW: Final = Rate(1, "minute")

RATES: Final[dict[str, tuple[SubjectKind, str, PolicyChange]]] = {
    "queue": (SubjectKind.QUEUE, "default", PolicyChange(rate=SLOW)),
    "each tenant of the queue": (SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(rate=SLOW))),
    "tenant": (SubjectKind.TENANT, "acme", PolicyChange(queue_limits={"default": Limits(rate=SLOW)})),
    "everyone": (SubjectKind.TENANT, EVERY, PolicyChange(queue_limits={EVERY: Limits(rate=SLOW)})),
    "task": (SubjectKind.TASK, "noop", PolicyChange(rate=SLOW)),
    "gate": (SubjectKind.GATE, "door", PolicyChange(rate=SLOW)),
}


@pytest.mark.parametrize("rate", RATES)
async def test_a_rate_set_at_run_time_holds_from_the_next_claim(world: World, rate: str) -> None:
    """S44, S54: the starts before it was set do not count against it."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.enqueue_many(6)
    assert len(await world.claim(2)) == 2
    await world.override(*RATES[rate])
    assert len(await world.claim(4)) == 1
    world.advance(60)
    assert len(await world.claim(4)) == 1


LIMITS: Final[dict[str, tuple[SubjectKind, str, PolicyChange]]] = {
    "queue": (SubjectKind.QUEUE, "default", PolicyChange(limits=Limits(running=1))),
    "tenant": (SubjectKind.TENANT, "acme", PolicyChange(queue_limits={"default": Limits(running=1)})),
    "everyone": (SubjectKind.TENANT, EVERY, PolicyChange(queue_limits={EVERY: Limits(running=1)})),
    "gate": (SubjectKind.GATE, "door", PolicyChange(limit=1)),
}


@pytest.mark.parametrize("change", [*RATES.values(), *LIMITS.values()], ids=str)
async def test_what_an_override_held_runs_when_the_override_ends(
    world: World, change: tuple[SubjectKind, str, PolicyChange]
) -> None:
    """S35, S54: by time alone, although a claim had parked the jobs for longer, or for good."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.enqueue_many(4)
    await world.override(*change, until=world.now + SECOND)
    assert len(await world.claim(4)) == 1
    world.advance(1 - INSTANT)
    assert await world.claim(4) == []
    world.advance(INSTANT)
    assert len(await world.claim(4)) == 3


async def test_a_new_weight_counts_from_the_next_turn(world: World) -> None:
    """S41, S54: first alternating, then three to one."""
    await world.enqueue_many(12, "acme")
    await world.enqueue_many(12, "globex")
    assert sorted(await world.tenants_served(4)) == ["acme"] * 2 + ["globex"] * 2
    await world.override(SubjectKind.TENANT, "globex", PolicyChange(weight=3.0))
    assert sorted(await world.tenants_served(8)) == ["acme"] * 2 + ["globex"] * 6


async def test_a_new_waiting_limit_counts_what_is_there(world: World) -> None:
    """S16, S54: at the next enqueue, and nothing that waits is taken out."""
    await world.enqueue_many(3)
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(Limits(waiting=2, on_full="reject")))
    (refused,) = (await world.send(world.new())).refused
    assert (refused.kind, refused.waiting, refused.limit) == (RefusalKind.WAITING_LIMIT, 3, 2)
    assert len(await world.claim(9)) == 3
