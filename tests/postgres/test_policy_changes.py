"""A changed policy lets what it held run, whatever claims do meanwhile (S46, S54)."""

from __future__ import annotations

import asyncio
from typing import Final

import psycopg

from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import EVERY, PolicyChange, Subject, SubjectKind
from fairlane.store.contract.policies import HoldRequest, OverrideRequest, SubjectRequest
from tests.contract.world import ALL, World

ROUNDS: Final = 6
TENANTS: Final = ("acme", "globex", "initech")
TASK: Final = Subject(SubjectKind.TASK, "work")
EVERYONE: Final = Subject(SubjectKind.TENANT, EVERY)


async def toggle(world: World) -> None:
    """Hold and let go, by a task, a tenant and everyone's limits, again and again; let go at last."""
    policies = world.store.policies
    for number in range(ROUNDS):
        tenant = Subject(SubjectKind.TENANT, TENANTS[number % 3])
        await policies.pause(HoldRequest(scope=ALL, subject=TASK, who="ops", reason="drill"))
        await policies.pause(HoldRequest(scope=ALL, subject=tenant, who="ops", reason="drill"))
        change = PolicyChange(queue_limits={EVERY: Limits(running=0)})
        await policies.override(OverrideRequest(scope=ALL, subject=EVERYONE, change=change, who="ops"))
        await policies.resume(SubjectRequest(scope=ALL, subject=tenant))
        await policies.reset(SubjectRequest(scope=ALL, subject=EVERYONE))
        await policies.resume(SubjectRequest(scope=ALL, subject=TASK))


async def test_nothing_stays_asleep_when_policies_change_while_claims_run(world: World) -> None:
    """S54: a strand that is parked by a rule while the rule is being changed is woken, too."""
    number = 0
    for tenant in TENANTS:
        number += len(await world.enqueue_many(20, tenant, task=TASK.name))
    taken: list[object] = []
    is_over = False

    async def claim() -> None:
        while not is_over:
            taken.extend(claim.job.id for claim in await world.claim(1))

    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(claim())
        await toggle(world)
        is_over = True
    while claims := await world.claim(20):
        taken.extend(claim.job.id for claim in claims)
    assert len(taken) == len(set(taken)) == number


async def test_policy_changes_that_every_queue_has_applied_are_removed(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S54: what is changed often leaves no trail behind that grows forever."""
    await world.enqueue()
    await world.claim(1)
    await toggle(world)
    await world.claim(1)
    world.advance(3_601)
    await world.prune()
    row = admin.execute(f"SELECT count(*) FROM {schema}.policy_change".encode()).fetchone()  # noqa: S608 (ours)
    assert row is not None
    assert row[0] <= 1
