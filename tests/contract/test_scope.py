"""Under one tenant's scope another tenant's jobs do not exist (S9): every verb of the contract is asked."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest

from fairlane.model.errors import TenantMismatch
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import PolicyChange, Subject, SubjectKind, TenantRules
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.access import AccessListRequest
from fairlane.store.contract.policies import ListRequest, OverrideRequest, PutRequest, ReadRequest
from tests.contract.probes import ACCESS, HARMLESS, NAMING, PROBES, SERVING_ALL, settle_down, unused
from tests.contract.schedules.scene import SCHEDULES
from tests.contract.world import World

OWN, OTHER = Scope("acme"), Scope("globex")
ACME = Subject(SubjectKind.TENANT, "acme")


def verbs() -> set[str]:
    """Name every verb of every facet."""
    facets = {
        name: get_type_hints(facet.fget)["return"]
        for name, facet in vars(Store).items()
        if isinstance(facet, property)
    }
    return {
        f"{name}.{verb}"
        for name, facet in facets.items()
        for verb, function in vars(facet).items()
        if inspect.iscoroutinefunction(function)
    }


async def whole(world: World) -> tuple[object, ...]:
    """All that can be seen of jobs, their order and acme's policy."""
    return await world.sight(), await world.peek(50), await world.view(SubjectKind.TENANT, "acme")


async def test_every_verb_of_the_contract_is_asked(world: World) -> None:
    """S9: a verb that is in no table here has not been looked at.

    Closing and expecting ask nothing; what happens on the application's own connection is tried where a store
    takes one.
    """
    assert len(verbs()) > 40
    joining = {"jobs.enqueue_in", "claims.settle_in"}
    assert {
        *PROBES,
        *SERVING_ALL,
        *NAMING,
        *HARMLESS,
        *ACCESS,
        *SCHEDULES,
        *joining,
        "upkeep.aclose",
        "registry.expect",
    } == verbs()


@pytest.mark.parametrize("verb", PROBES)
async def test_a_foreign_job_answers_exactly_like_one_that_never_was(world: World, verb: str) -> None:
    """S9: nothing is found, counted, moved or changed, and the answers do not differ."""
    ask, nothing = PROBES[verb]
    target = await settle_down(world)
    strange = unused(world, target)
    before = await whole(world)
    assert await ask(world, OTHER, strange) == nothing(strange)
    assert await ask(world, OTHER, target) == nothing(target)
    assert await whole(world) == before


@pytest.mark.parametrize("verb", PROBES)
async def test_under_its_own_scope_the_same_call_finds_something(world: World, verb: str) -> None:
    """S9: so that the refusals of other tenants prove something."""
    ask, nothing = PROBES[verb]
    target = await settle_down(world)
    assert await ask(world, OWN, target) != nothing(target)


@pytest.mark.parametrize("verb", PROBES)
async def test_what_a_tenant_does_in_its_own_scope_leaves_others_alone(world: World, verb: str) -> None:
    """S9: with jobs of both, each verb under one scope changes nothing of the other's."""
    target = await settle_down(world)
    await world.enqueue("globex")
    await world.enqueue("globex", delay=1, expires_in=9)
    await world.bring_to(State.DEAD, "globex", queue="own")
    await world.bring_to(State.RUNNING, "globex", queue="own")
    world.advance(60)
    before = await world.find_all(OTHER), await world.counts(OTHER), await world.peek(9, scope=OTHER)
    await PROBES[verb][0](world, OWN, target)
    after = await world.find_all(OTHER), await world.counts(OTHER), await world.peek(9, scope=OTHER)
    assert after == before


@pytest.mark.parametrize("verb", NAMING)
async def test_naming_a_foreign_tenant_is_refused(world: World, verb: str) -> None:
    """S9: whether or not the tenant exists, and nothing has changed."""
    await settle_down(world)
    before = await whole(world)
    for name in ("acme", "never-used", "*"):
        with pytest.raises(TenantMismatch):
            await NAMING[verb](world, OTHER, Subject(SubjectKind.TENANT, name))
    assert await whole(world) == before


@pytest.mark.parametrize("verb", NAMING)
async def test_a_tenant_may_name_itself(world: World, verb: str) -> None:
    """S9: the scope forbids others, not oneself."""
    await NAMING[verb](world, OWN, ACME)


@pytest.mark.parametrize("verb", [verb for verb in NAMING if verb.startswith("policies.")])
@pytest.mark.parametrize("kind", [SubjectKind.QUEUE, SubjectKind.TASK, SubjectKind.GATE, SubjectKind.BUDGET])
async def test_what_all_tenants_share_is_not_a_tenants_to_read_or_change(
    world: World, verb: str, kind: SubjectKind
) -> None:
    """S9: queues, tasks, gates and budgets are nobody's own, not even under the tenant's own name."""
    with pytest.raises(TenantMismatch):
        await NAMING[verb](world, OWN, Subject(kind, "acme"))


async def test_one_foreign_name_among_own_ones_refuses_the_whole_request(world: World) -> None:
    """S9, S12: neither the job nor the policy that was the caller's own is stored."""
    with pytest.raises(TenantMismatch):
        await world.send(world.new("acme"), world.new("globex"), scope=OWN)
    rules = {ACME: TenantRules(weight=2.0), Subject(SubjectKind.TENANT, "globex"): TenantRules(weight=2.0)}
    with pytest.raises(TenantMismatch):
        await world.store.policies.put(PutRequest(scope=OWN, rules=rules))
    with pytest.raises(TenantMismatch):
        await world.store.policies.read(ReadRequest(scope=OWN, subjects=tuple(rules)))
    assert await world.counts() == {}
    assert (await world.view(SubjectKind.TENANT, "acme")).declared is None


@pytest.mark.parametrize("kind", SubjectKind)
async def test_a_tenant_lists_no_policy_but_its_own(world: World, kind: SubjectKind) -> None:
    """S9: of tenants it sees itself; what belongs to all is refused."""
    await settle_down(world)
    await world.enqueue("globex")
    request = ListRequest(scope=OWN, kind=kind)
    if kind is SubjectKind.TENANT:
        assert [view.subject for view in await world.store.policies.list(request)] == [ACME]
    else:
        with pytest.raises(TenantMismatch):
            await world.store.policies.list(request)


@pytest.mark.parametrize("verb", HARMLESS)
async def test_verbs_about_workers_show_and_move_no_job(world: World, verb: str) -> None:
    """S9: under any scope; there is nothing of a tenant in them."""
    target = await settle_down(world)
    await world.register()
    before = await whole(world)
    answer = repr(await HARMLESS[verb](world, OTHER))
    assert [word for word in ("acme", *map(str, target.ids)) if word in answer] == []
    assert await whole(world) == before


@pytest.mark.parametrize("verb", SERVING_ALL)
@pytest.mark.parametrize("scope", [OWN, OTHER], ids=["own", "other"])
async def test_claims_and_passes_serve_all_tenants_or_nobody(world: World, verb: str, scope: Scope) -> None:
    """S9, S35: under the scope of one they are refused in a sentence, and nothing has changed."""
    target = await settle_down(world)
    before = await whole(world)
    with pytest.raises(ValueError, match=r"serve all tenants: use Scope\.all\(\)"):
        await SERVING_ALL[verb](world, scope, target)
    assert await whole(world) == before
    await SERVING_ALL[verb](world, Scope.all(), target)
    assert await whole(world) != before


@pytest.mark.parametrize("verb", ACCESS)
@pytest.mark.parametrize("scope", [OWN, OTHER], ids=["own", "other"])
async def test_who_may_sign_in_is_no_tenants_business(world: World, verb: str, scope: Scope) -> None:
    """S9, S79: under the scope of one every verb is refused in a sentence, and nothing has changed."""
    users = AccessListRequest(scope=Scope.all(), kind="user")
    with pytest.raises(ValueError, match=r"serve all tenants: use Scope\.all\(\)"):
        await ACCESS[verb](world, scope)
    assert (await world.store.access.list(users)).rows == ()
    await ACCESS[verb](world, Scope.all())
    assert len((await world.store.access.list(users)).rows) == (verb == "access.write")


async def test_an_override_within_the_own_scope_works_and_stays_there(world: World) -> None:
    """S9, S54: a tenant's own policy can be changed under its own scope."""
    await world.store.policies.override(
        OverrideRequest(scope=OWN, subject=ACME, change=PolicyChange(weight=3.0), who="ops")
    )
    assert (await world.view(SubjectKind.TENANT, "acme")).effective == TenantRules(weight=3.0)
    assert (await world.view(SubjectKind.TENANT, "globex")).effective == TenantRules()
