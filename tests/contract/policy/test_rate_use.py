"""How far rates are used, as it is shown (S44)."""

from __future__ import annotations

from typing import Final

from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    PolicyChange,
    QueueRules,
    Subject,
    SubjectKind,
    TaskRules,
)
from fairlane.store.contract.policies import RatesReply, RatesRequest, RateUse
from tests.contract.world import ALL, World

QUEUE: Final = Subject(SubjectKind.QUEUE, "default")
TENANT: Final = Subject(SubjectKind.TENANT, "acme")
TASK: Final = Subject(SubjectKind.TASK, "noop")
GATE: Final = Subject(SubjectKind.GATE, "door")
SUBJECTS: Final = (QUEUE, TENANT, TASK, GATE)
RATES: Final = (Rate(1, "second"), Rate(2, "minute"), Rate(3, "hour"), Rate(4, "day"))


async def ask(world: World, *subjects: Subject, queue: str = "default") -> RatesReply:
    """Ask how far rates are used."""
    return await world.store.policies.rates(RatesRequest(scope=ALL, subjects=subjects, queue=queue))


async def declare(world: World) -> None:
    """Give a rate to each: the queue, its tenants, the task, the gate of the task."""
    each = Limits(rate=RATES[1])
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=each, rate=RATES[0]))
    await world.declare(SubjectKind.TASK, "noop", TaskRules(rate=RATES[2], gate="door"))
    await world.declare(SubjectKind.GATE, "door", GateRules(rate=RATES[3]))


async def test_a_start_counts_against_each_of_its_rates(world: World) -> None:
    """S44: each is used up to its interval after the start; nothing is used before."""
    await declare(world)
    assert await ask(world, *SUBJECTS) == RatesReply(world.now, dict.fromkeys(SUBJECTS, RateUse()))
    await world.enqueue()
    await world.claim()
    started_at = world.now
    world.advance(1)
    expected = {
        subject: RateUse(rate.rate_id, started_at + rate.interval)
        for subject, rate in zip(SUBJECTS, RATES, strict=True)
    }
    assert await ask(world, *SUBJECTS) == RatesReply(world.now, expected)


async def test_another_tenant_queue_or_name_has_its_own(world: World) -> None:
    """S44: and what never started anything is unused."""
    await declare(world)
    await world.enqueue()
    await world.claim()
    others = tuple(Subject(one.kind, "other") for one in SUBJECTS)
    assert (await ask(world, *others)).uses == dict.fromkeys(others, RateUse())
    assert (await ask(world, TENANT, queue="other")).uses == {TENANT: RateUse()}


async def test_the_use_says_by_which_rate_it_was_counted(world: World) -> None:
    """S44, S54: a changed rate begins anew, and whoever asks can tell."""
    await declare(world)
    await world.enqueue()
    await world.claim()
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(rate=Rate(9, "second")))
    use = (await ask(world, QUEUE)).uses[QUEUE]
    assert use.rate_id == RATES[0].rate_id
    assert Rate(9, "second").next_allowed_from(use.rate_id, use.next_allowed_at) == 0
