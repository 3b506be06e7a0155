"""Pauses and closes as they are stored and shown (S46, S54)."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from fairlane.model.instants import SECOND
from fairlane.model.policy.overrides import (
    Hold,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TenantRules,
)
from fairlane.store.contract.policies import HoldRequest, ListRequest, PolicyView
from tests.contract.world import ALL, World

INSTANT: Final = 0.000_001
HELD: Final = [SubjectKind.QUEUE, SubjectKind.TENANT, SubjectKind.TASK]


@pytest.mark.parametrize("kind", HELD)
async def test_a_pause_and_a_close_are_shown_beside_each_other(world: World, kind: SubjectKind) -> None:
    """S46: who, why, since when, until when; each ends by itself or by its own verb."""
    subject = Subject(kind, "it")
    plain = await world.view(kind, "it")
    paused = Hold(who="ops", reason="maintenance", set_at=world.now, until=None)
    view = await world.pause(kind, "it")
    assert view == msgspec.structs.replace(plain, paused=paused)
    set_at = world.advance(1)
    closed = Hold(who="eve", reason="full", set_at=set_at, until=set_at + SECOND)
    view = await world.store.policies.close(
        HoldRequest(scope=ALL, subject=subject, who="eve", reason="full", until=set_at + SECOND)
    )
    assert view == msgspec.structs.replace(plain, paused=paused, closed=closed)
    assert await world.view(kind, "it") == view
    assert await world.resume(kind, "it") == msgspec.structs.replace(plain, closed=closed)
    assert await world.reopen(kind, "it") == plain


@pytest.mark.parametrize("kind", HELD)
async def test_a_hold_with_an_end_is_not_shown_at_that_instant(world: World, kind: SubjectKind) -> None:
    """S46: it held until then, and nobody has to end it."""
    plain = await world.view(kind, "it")
    await world.pause(kind, "it", until=world.now + SECOND)
    await world.close(kind, "it", until=world.now + SECOND)
    world.advance(1 - INSTANT)
    view = await world.view(kind, "it")
    assert view.paused is not None
    assert view.closed is not None
    world.advance(INSTANT)
    assert await world.view(kind, "it") == plain


async def test_a_later_hold_replaces_the_earlier_one(world: World) -> None:
    """S46: its reason and its end, also if it ends sooner."""
    await world.pause(SubjectKind.QUEUE, "default")
    await world.pause(SubjectKind.QUEUE, "default", until=world.now + SECOND)
    await world.enqueue()
    assert await world.claim() == []
    world.advance(1)
    assert len(await world.claim()) == 1


async def test_ending_what_does_not_hold_changes_nothing(world: World) -> None:
    """S46: a resume is no reopening, and neither needs anything to end."""
    view = await world.close(SubjectKind.QUEUE, "default")
    assert await world.resume(SubjectKind.QUEUE, "default") == view
    assert (await world.reopen(SubjectKind.TASK, "new")) == await world.view(SubjectKind.TASK, "new")


async def test_a_gate_cannot_be_held(world: World) -> None:
    """S46: its limit is what stops it; nothing is stored."""
    plain = await world.view(SubjectKind.GATE, "door")
    with pytest.raises(ValueError, match="gate"):
        await world.pause(SubjectKind.GATE, "door")
    with pytest.raises(ValueError, match="gate"):
        await world.close(SubjectKind.GATE, "door")
    assert await world.view(SubjectKind.GATE, "door") == plain


async def test_holds_rules_and_overrides_do_not_touch_each_other(world: World) -> None:
    """S46, S54: a put or a reset ends no pause, and a resume resets nothing."""
    await world.pause(SubjectKind.QUEUE, "bulk")
    await world.declare(SubjectKind.QUEUE, "bulk", QueueRules(max_waiting=1))
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=2))
    await world.reset(SubjectKind.QUEUE, "bulk")
    assert (await world.view(SubjectKind.QUEUE, "bulk")).paused is not None
    await world.override(SubjectKind.QUEUE, "bulk", PolicyChange(max_waiting=3))
    view = await world.resume(SubjectKind.QUEUE, "bulk")
    assert (view.paused, view.effective) == (None, QueueRules(max_waiting=3))


# ── lists ─────────────────────────────────────────────────────────────────────


async def names(world: World, kind: SubjectKind, **options: object) -> list[str]:
    """List the known subjects of a kind."""
    request = msgspec.structs.replace(ListRequest(scope=ALL, kind=kind), **options)
    return [view.subject.name for view in await world.store.policies.list(request)]


@pytest.mark.parametrize("kind", HELD)
async def test_subjects_are_known_by_rules_overrides_holds_and_jobs(world: World, kind: SubjectKind) -> None:
    """S54: in the order of their names, each once and as `read` gives it. Jobs make no task known."""
    declared: dict[SubjectKind, Rules] = {
        SubjectKind.QUEUE: QueueRules(max_waiting=1),
        SubjectKind.TENANT: TenantRules(2.0),
    }
    assert await names(world, kind) == []
    if kind in declared:
        await world.declare(kind, "e", declared[kind])
    change = {
        SubjectKind.QUEUE: PolicyChange(max_waiting=2),
        SubjectKind.TENANT: PolicyChange(weight=2.0),
    }.get(kind, PolicyChange(rate=None))
    await world.override(kind, "d", change)
    await world.pause(kind, "b")
    await world.close(kind, "c")
    for name in ("a", "B"):
        tenant, queue, task = (
            name if kind is one else "z" for one in (SubjectKind.TENANT, SubjectKind.QUEUE, SubjectKind.TASK)
        )
        await world.enqueue(tenant, queue=queue, task=task)
    with_jobs = () if kind is SubjectKind.TASK else ("B", "a")
    known = [*with_jobs, "b", "c", "d", *("e" for _ in range(kind in declared))]
    views = await world.store.policies.list(ListRequest(scope=ALL, kind=kind))
    assert [view.subject.name for view in views] == known
    assert list(views) == [await world.view(kind, name) for name in known]


@pytest.mark.parametrize("kind", HELD)
async def test_only_those_with_a_policy_are_listed_if_asked_for(world: World, kind: SubjectKind) -> None:
    """S54: jobs do not matter then; one with both is there."""
    for name in ("both", "jobs"):
        tenant, queue, task = (
            name if kind is one else "z" for one in (SubjectKind.TENANT, SubjectKind.QUEUE, SubjectKind.TASK)
        )
        await world.enqueue(tenant, queue=queue, task=task)
    for name in ("both", "held"):
        await world.pause(kind, name)
    assert await names(world, kind, with_jobs=False) == ["both", "held"]
    assert await names(world, kind, with_jobs=False, after="both") == ["held"]


async def test_gates_are_known_by_rules_and_overrides(world: World) -> None:
    """S54: a gate has no jobs of its own."""
    await world.override(SubjectKind.GATE, "b", PolicyChange(limit=1))
    await world.override(SubjectKind.GATE, "a", PolicyChange(limit=1))
    assert await names(world, SubjectKind.GATE) == ["a", "b"]


async def test_a_tenant_is_known_while_any_job_of_it_is_kept(world: World) -> None:
    """S50, S54: finished ones too."""
    await world.enqueue("globex")
    await world.run()
    assert await names(world, SubjectKind.TENANT) == ["globex"]
    world.advance(1)
    await world.prune(succeeded=0)
    assert await names(world, SubjectKind.TENANT) == []


async def test_tenants_are_listed_by_their_labels(world: World) -> None:
    """S54: all that are asked for must be there with that value."""
    labels = {"a": {"plan": "gold", "zone": "eu"}, "b": {"plan": "gold"}, "c": {"plan": "free", "zone": "eu"}}
    for name, given in labels.items():
        await world.declare(SubjectKind.TENANT, name, TenantRules(labels=given))
    await world.enqueue("d")
    assert await names(world, SubjectKind.TENANT) == ["a", "b", "c", "d"]
    assert await names(world, SubjectKind.TENANT, labels={"plan": "gold"}) == ["a", "b"]
    assert await names(world, SubjectKind.TENANT, labels={"plan": "gold", "zone": "eu"}) == ["a"]
    assert await names(world, SubjectKind.TENANT, labels={"plan": "Gold"}) == []


async def test_lists_go_on_after_a_name(world: World) -> None:
    """S54: in pages, also with labels; the name itself need not exist."""
    for name in "abcde":
        label = {"odd": str(name in "ace")}
        await world.declare(SubjectKind.TENANT, name, TenantRules(labels=label))
    assert await names(world, SubjectKind.TENANT, limit=2) == ["a", "b"]
    assert await names(world, SubjectKind.TENANT, limit=2, after="b") == ["c", "d"]
    assert await names(world, SubjectKind.TENANT, limit=2, after="bb") == ["c", "d"]
    assert await names(world, SubjectKind.TENANT, limit=2, after="a", labels={"odd": "True"}) == ["c", "e"]
    assert await names(world, SubjectKind.TENANT, after="e") == []


async def test_a_view_is_of_one_subject(world: World) -> None:
    """S54: a queue, a tenant and a task of one name have nothing to do with each other."""
    await world.pause(SubjectKind.QUEUE, "same")
    tenant = Subject(SubjectKind.TENANT, "same")
    assert await world.view(SubjectKind.TENANT, "same") == PolicyView(
        tenant, None, None, TenantRules(), None, None
    )
    assert await names(world, SubjectKind.TASK) == []
