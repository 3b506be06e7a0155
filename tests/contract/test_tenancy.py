"""Who may have jobs at all: open and declared tenancy, and the tenant of the application (S7, S8)."""

from __future__ import annotations

import pytest

from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import EVERY, PolicyChange, QueueRules, Subject, SubjectKind, TenantRules
from fairlane.model.scope import SYSTEM
from fairlane.store.contract.policies import ListRequest, ReadRequest
from tests.contract.world import ALL, World

TIGHT = Limits(waiting=1, on_full="reject")


async def tenants(world: World) -> list[str]:
    """Name the tenants that the store knows of."""
    views = await world.store.policies.list(ListRequest(scope=ALL, kind=SubjectKind.TENANT))
    return [view.subject.name for view in views]


async def test_under_open_tenancy_a_tenant_exists_from_its_first_enqueue(world: World) -> None:
    """S7: nothing has to be prepared for it, and nothing is there before."""
    assert await tenants(world) == []
    await world.enqueue("acme")
    assert await tenants(world) == ["acme"]
    assert (await world.claim_one()).job.tenant == "acme"


async def test_an_undeclared_tenant_has_what_is_declared_for_everyone(world: World) -> None:
    """S7: the defaults are in force from the first enqueue, and a declared tenant has its own instead."""
    everyone = TenantRules(weight=2.0, limits={"default": TIGHT})
    await world.declare(SubjectKind.TENANT, EVERY, everyone)
    await world.declare(
        SubjectKind.TENANT, "globex", TenantRules(weight=3.0, limits={"default": Limits(waiting=2)})
    )
    acme, globex = Subject(SubjectKind.TENANT, "acme"), Subject(SubjectKind.TENANT, "globex")
    views = await world.store.policies.read(ReadRequest(scope=ALL, subjects=(acme, globex)))
    assert views[acme].effective == everyone
    assert views[globex].effective == TenantRules(weight=3.0, limits={"default": Limits(waiting=2)})
    reply = await world.send(*(world.new(tenant) for tenant in ("acme", "acme", "globex", "globex")))
    assert [(one.index, one.tenant) for one in reply.refused] == [(1, "acme")]


async def test_under_declared_tenancy_an_unknown_tenant_is_refused(world: World) -> None:
    """S7: with the tenant named, and nothing stored, of its batch either."""
    await world.declare(SubjectKind.TENANT, "acme", TenantRules())
    reply = await world.send(world.new("acme"), world.new("globex"), must_be_declared=True)
    assert [(one.index, one.kind, one.tenant) for one in reply.refused] == [
        (1, RefusalKind.UNKNOWN_TENANT, "globex")
    ]
    assert await world.counts() == {}
    assert await tenants(world) == ["acme"]


async def test_under_declared_tenancy_a_declared_tenant_comes_in(world: World) -> None:
    """S7: from the declaration on."""
    refused = await world.send(world.new("acme"), must_be_declared=True)
    assert [one.kind for one in refused.refused] == [RefusalKind.UNKNOWN_TENANT]
    await world.declare(SubjectKind.TENANT, "acme", TenantRules())
    reply = await world.send(world.new("acme"), must_be_declared=True)
    assert [one.is_created for one in reply.enqueued] == [True]


@pytest.mark.parametrize("name", ["Acme", "acme2", "acm", EVERY])
async def test_a_declaration_is_of_one_exact_name(world: World, name: str) -> None:
    """S7, S4: neither a name that looks alike nor the defaults for everyone make a tenant known."""
    await world.declare(SubjectKind.TENANT, name, TenantRules())
    reply = await world.send(world.new("acme"), must_be_declared=True)
    assert [one.kind for one in reply.refused] == [RefusalKind.UNKNOWN_TENANT]


async def test_having_jobs_does_not_make_a_tenant_declared(world: World) -> None:
    """S7: what came in while tenancy was open stays and runs, and brings nothing more in."""
    job = await world.enqueue("acme")
    reply = await world.send(world.new("acme"), must_be_declared=True)
    assert [one.kind for one in reply.refused] == [RefusalKind.UNKNOWN_TENANT]
    assert (await world.claim_one()).job.id == job.id


async def test_tenancy_is_asked_for_by_each_enqueue(world: World) -> None:
    """S7: an application that does not ask for declared tenants is not refused for another's sake."""
    await world.send(world.new("acme"), must_be_declared=True)
    assert (await world.send(world.new("acme"))).refused == ()


async def test_the_tenant_of_the_application_is_always_known(world: World) -> None:
    """S8, S7: it is reserved, not declared."""
    reply = await world.send(world.new(SYSTEM), must_be_declared=True)
    assert [one.job.tenant for one in reply.enqueued] == [SYSTEM]


@pytest.mark.parametrize("on_full", ["warn", "reject"])
async def test_the_tenant_of_the_application_has_no_waiting_limit(world: World, on_full: str) -> None:
    """S8: whichever layer the limit comes from, it is neither refused nor reported."""
    tight = Limits(waiting=1, on_full=on_full)  # type: ignore[arg-type]
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=tight))
    await world.declare(SubjectKind.TENANT, EVERY, TenantRules(limits={EVERY: tight}))
    await world.declare(SubjectKind.TENANT, SYSTEM, TenantRules(limits={"default": tight}))
    reply = await world.send(*(world.new(SYSTEM) for _ in range(3)))
    assert (len(reply.enqueued), reply.refused, reply.over) == (3, (), ())
    other = await world.send(world.new("acme"), world.new("acme"))
    assert (bool(other.refused), bool(other.over)) == (on_full == "reject", on_full == "warn")


async def test_the_tenant_of_the_application_counts_towards_the_whole_queue(world: World) -> None:
    """S8, S18: the total of a queue refuses it like any other."""
    await world.override(SubjectKind.QUEUE, "default", PolicyChange(max_waiting=2))
    await world.enqueue_many(2, SYSTEM)
    for tenant in (SYSTEM, "acme"):
        refused = (await world.send(world.new(tenant))).refused
        assert [(one.kind, one.waiting) for one in refused] == [(RefusalKind.QUEUE_FULL, 2)]


async def test_the_tenant_of_the_application_takes_turns_like_any_other(world: World) -> None:
    """S8: a backlog of its own does not go before a tenant's job, nor behind all of them."""
    await world.enqueue_many(4, SYSTEM)
    await world.enqueue_many(4, "acme")
    assert await world.tenants_served(6) == [SYSTEM, "acme"] * 3


async def test_the_tenant_of_the_application_has_a_weight(world: World) -> None:
    """S8: with half the weight of the others it gets every third turn."""
    await world.declare(SubjectKind.TENANT, SYSTEM, TenantRules(weight=0.5))
    await world.enqueue_many(6, SYSTEM)
    await world.enqueue_many(6, "acme")
    assert (await world.tenants_served(6)).count(SYSTEM) == 2


async def test_the_tenant_of_the_application_obeys_other_limits(world: World) -> None:
    """S8: only the waiting limit is not for it; at most so many of its jobs run."""
    await world.declare(SubjectKind.QUEUE, "default", QueueRules(limits=Limits(waiting=1, running=1)))
    await world.enqueue_many(3, SYSTEM)
    assert len(await world.claim(3)) == 1
    assert (await world.states()) == {State.READY: 2, State.RUNNING: 1}
