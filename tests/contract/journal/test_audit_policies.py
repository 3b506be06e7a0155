"""A policy that an operator changes is in the audit, before and after (S60)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import msgspec
import pytest

from fairlane.model.errors import TenantMismatch
from fairlane.model.journal.operations import Operation, entry_of
from fairlane.model.policy.overrides import EVERY, PolicyChange, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import HoldRequest, OverrideRequest, PolicyView, SubjectRequest
from tests.contract.world import ALL, OPERATION, World

BULK: Final = Subject(SubjectKind.QUEUE, "bulk")
ACME: Final = Subject(SubjectKind.TENANT, "acme")
EVERYONE: Final = Subject(SubjectKind.TENANT, EVERY)
SEND: Final = Subject(SubjectKind.TASK, "mail.send")
DOOR: Final = Subject(SubjectKind.GATE, "door")
SUBJECTS: Final = (BULK, ACME, EVERYONE, SEND)

CHANGES: Final = {
    SubjectKind.QUEUE: PolicyChange(max_waiting=5),
    SubjectKind.TENANT: PolicyChange(weight=2.0),
    SubjectKind.TASK: PolicyChange(rate=None),
    SubjectKind.GATE: PolicyChange(limit=3),
}

Change: TypeAlias = Callable[[World, Subject, Operation | None, Scope], Awaitable[PolicyView]]


async def override(
    world: World, subject: Subject, operation: Operation | None = OPERATION, scope: Scope = ALL
) -> PolicyView:
    """Override."""
    request = OverrideRequest(
        scope=scope, subject=subject, change=CHANGES[subject.kind], who="ann", operation=operation
    )
    return await world.store.policies.override(request)


async def pause(
    world: World, subject: Subject, operation: Operation | None = OPERATION, scope: Scope = ALL
) -> PolicyView:
    """Pause."""
    request = HoldRequest(scope=scope, subject=subject, who="ann", reason="zoë's", operation=operation)
    return await world.store.policies.pause(request)


async def close(
    world: World, subject: Subject, operation: Operation | None = OPERATION, scope: Scope = ALL
) -> PolicyView:
    """Close."""
    request = HoldRequest(scope=scope, subject=subject, who="ann", reason="zoë's", operation=operation)
    return await world.store.policies.close(request)


def ending(verb: str) -> Change:
    """End what was set, by this verb."""

    async def end(
        world: World, subject: Subject, operation: Operation | None = OPERATION, scope: Scope = ALL
    ) -> PolicyView:
        request = SubjectRequest(scope=scope, subject=subject, who="ann", operation=operation)
        view: PolicyView = await getattr(world.store.policies, verb)(request)
        return view

    return end


PARTS: Final[dict[str, tuple[Change, Change]]] = {
    "override": (override, ending("reset")),
    "paused": (pause, ending("resume")),
    "closed": (close, ending("reopen")),
}
"""Each part of a policy: how it is set, and how it is ended."""


def part_of(view: PolicyView, part: str) -> dict[str, Any]:
    """Return a part of a policy as it is noted; nothing if it is not set."""
    value = getattr(view, part)
    return {} if value is None else {part: msgspec.to_builtins(value)}


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
@pytest.mark.parametrize("part", PARTS)
async def test_each_part_is_noted_as_it_was_and_is(world: World, part: str, subject: Subject) -> None:
    """S46, S54, S60: set, replaced, ended; the entry is the tenant's if the policy is one tenant's."""
    change, end = PARTS[part]
    tenant = "acme" if subject == ACME else None
    first = part_of(await change(world, subject, OPERATION, ALL), part)
    world.advance(1)
    second = part_of(await change(world, subject, OPERATION, ALL), part)
    assert first
    assert first != second
    world.advance(1)
    assert part_of(await end(world, subject, OPERATION, ALL), part) == {}
    assert await world.appended("audit") == [
        entry_of(OPERATION, str(subject), tenant, {}, first),
        entry_of(OPERATION, str(subject), tenant, first, second),
        entry_of(OPERATION, str(subject), tenant, second, {}),
    ]
    assert (await world.pending("audit")).entries[-1].at == world.now


@pytest.mark.parametrize("part", PARTS)
async def test_what_stays_as_it_was_is_not_noted(world: World, part: str) -> None:
    """S60: the same again at the same instant, and an end of what is not set; also beside other parts."""
    change, end = PARTS[part]
    others = [PARTS[name][0] for name in PARTS if name != part]
    for other in others:
        await other(world, BULK, None, ALL)
    await end(world, BULK, OPERATION, ALL)
    assert await world.appended("audit") == []
    for _ in range(2):
        await change(world, BULK, OPERATION, ALL)
    for _ in range(2):
        await end(world, BULK, OPERATION, ALL)
    assert len(await world.appended("audit")) == 2


@pytest.mark.parametrize("part", PARTS)
async def test_without_an_operation_nothing_is_noted(world: World, part: str) -> None:
    """S60: what a test or a program of its own does is no operator's."""
    for change in PARTS[part]:
        await change(world, BULK, None, ALL)
    assert await world.appended("audit") == []


@pytest.mark.parametrize("part", PARTS)
async def test_a_policy_outside_the_scope_is_neither_changed_nor_noted(world: World, part: str) -> None:
    """S9, S60: under the tenant's own scope its own is both."""
    change, end = PARTS[part]
    for verb in (change, end):
        for subject in SUBJECTS:
            with pytest.raises(TenantMismatch):
                await verb(world, subject, OPERATION, Scope("globex"))
    assert await world.appended("audit") == []
    await change(world, ACME, OPERATION, Scope("acme"))
    assert [entry.tenant for entry in await world.appended("audit", Scope("acme"))] == ["acme"]


async def test_a_gates_limit_is_noted_and_a_request_that_is_refused_is_not(world: World) -> None:
    """S43, S60: a gate has an override and nothing else."""
    view = await override(world, DOOR)
    for change in (pause, close):
        with pytest.raises(ValueError, match="gate"):
            await change(world, DOOR)
    with pytest.raises(ValueError, match="weight"):
        await world.store.policies.override(
            OverrideRequest(
                scope=ALL, subject=DOOR, change=PolicyChange(weight=1.0), who="ann", operation=OPERATION
            )
        )
    assert await world.appended("audit") == [
        entry_of(OPERATION, "gate door", None, {}, part_of(view, "override"))
    ]
