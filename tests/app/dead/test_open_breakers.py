"""Groups of dead letters whose task has a breaker that is not closed: whoever runs them again should know."""

from __future__ import annotations

from fairlane import DeadGroup, Fairlane
from fairlane.model.policy.overrides import BreakerRules, Rules, Subject, SubjectKind, TaskRules
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PutRequest
from tests.app.dead.conftest import Die
from tests.app.world import World


async def protect(world: World) -> None:
    """Put the task of the letters behind a breaker."""
    rules: dict[Subject, Rules] = {
        Subject(SubjectKind.BREAKER, "bank"): BreakerRules(),
        Subject(SubjectKind.TASK, "bill"): TaskRules(breaker="bank"),
    }
    await world.oracle.policies.put(PutRequest(scope=Scope.all(), rules=rules))


async def group_of(app: Fairlane) -> DeadGroup:
    """Return the only group."""
    (group,) = await app.dead.agroups()
    return group


async def test_a_group_has_the_breaker_of_its_task_while_that_is_not_closed(
    world: World, app: Fairlane, die: Die
) -> None:
    """An open one, and one that recovers; nothing once it is closed, nor of another task's breaker."""
    await die(7)
    await protect(world)
    assert (await group_of(app)).breaker is None
    await app.breakers.aopen("bank", reason="it is down")
    group = await group_of(app)
    assert group.breaker == await app.breakers.aget("bank")
    assert (group.breaker.state, group.breaker.until) == ("open", None)
    await app.breakers.areset("bank")
    assert (await group_of(app)).breaker is None
    await world.oracle.policies.put(
        PutRequest(scope=Scope.all(), rules={Subject(SubjectKind.TASK, "bill"): TaskRules()})
    )
    await app.breakers.aopen("bank", reason="it is down")
    assert (await group_of(app)).breaker is None


async def test_the_breaker_of_one_tenant_concerns_the_groups_with_its_letters(
    world: World, app: Fairlane, die: Die
) -> None:
    """That of another tenant stops none of these jobs."""
    await die(7)
    await protect(world)
    await app.breakers.aopen("bank", tenant="globex", reason="their account is closed")
    assert (await group_of(app)).breaker is None
    await app.breakers.aopen("bank", tenant="acme", reason="their account is closed")
    found = (await group_of(app)).breaker
    assert found is not None
    assert found.tenant == "acme"


async def test_a_tenant_is_told_of_no_breaker(world: World, app: Fairlane, die: Die) -> None:
    """S9: breakers belong to all tenants."""
    await die(7)
    await protect(world)
    await app.breakers.aopen("bank", reason="it is down")
    with app.tenant("acme"):
        assert (await group_of(app)).breaker is None
