"""What may not run now steps aside, holds up nobody, and is back when time or an event frees it (S42)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from fairlane.model.instants import SECOND, Instant
from fairlane.model.job import Claim, JobRecord
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    PolicyChange,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from fairlane.store.contract.jobs import Reason
from tests.contract.world import MICRO, World

EVERY_30_S = Rate(2, "minute")
ACME = Subject(SubjectKind.TENANT, "acme")
HELD = Subject(SubjectKind.TASK, "held")
DOOR = Subject(SubjectKind.GATE, "door")


class Hold(NamedTuple):
    """A reason not to run: what it is about, how it comes, and which policy change ends it.

    Those that need a start hold back acme's second job of the task `held`, not the first.
    """

    reason: Reason
    subject: Subject
    put_on: Callable[[World, Instant | None], Awaitable[object]]
    lift: Callable[[World], Awaitable[object]]
    needs_start: bool = True

    @property
    def is_of_tenant(self) -> bool:
        """Whether all tasks of the tenant are held, and no other tenant."""
        return self.subject == ACME


def _pause(subject: Subject) -> Hold:
    return Hold(
        "paused",
        subject,
        lambda world, until: world.pause(subject.kind, subject.name, until),
        lambda world: world.resume(subject.kind, subject.name),
        needs_start=False,
    )


async def _limit(
    world: World, subject: Subject, rules: Rules, change: PolicyChange, until: Instant | None
) -> None:
    if until is None:
        await world.put({subject: rules})
    else:
        await world.override(subject.kind, subject.name, change, until)


async def _limit_running(world: World, until: Instant | None) -> None:
    one = {"default": Limits(running=1)}
    await _limit(world, ACME, TenantRules(limits=one), PolicyChange(queue_limits=one), until)


async def _rate_tenant(world: World, until: Instant | None) -> None:
    await world.put({ACME: TenantRules(limits={"default": Limits(rate=EVERY_30_S)})})


async def _rate_task(world: World, until: Instant | None) -> None:
    await world.put({HELD: TaskRules(rate=EVERY_30_S)})


async def _fill_gate(world: World, until: Instant | None) -> None:
    await world.put_gate("door", "held")
    await _limit(world, DOOR, GateRules(limit=1), PolicyChange(limit=1), until)


async def _rate_gate(world: World, until: Instant | None) -> None:
    await world.put_gate("door", "held")
    await world.put({DOOR: GateRules(rate=EVERY_30_S)})


async def _unlimit_tenant(world: World) -> None:
    await world.override(SubjectKind.TENANT, "acme", PolicyChange(queue_limits={"default": Limits()}))


HOLDS = {
    "tenant paused": _pause(ACME),
    "task paused": _pause(HELD),
    "running limit": Hold("running_limit", ACME, _limit_running, _unlimit_tenant),
    "rate of tenant": Hold("rate", ACME, _rate_tenant, _unlimit_tenant),
    "rate of task": Hold(
        "rate",
        HELD,
        _rate_task,
        lambda world: world.override(SubjectKind.TASK, "held", PolicyChange(rate=None)),
    ),
    "gate full": Hold(
        "gate",
        DOOR,
        _fill_gate,
        lambda world: world.override(SubjectKind.GATE, "door", PolicyChange(limit=None)),
    ),
    "rate of gate": Hold(
        "rate",
        DOOR,
        _rate_gate,
        lambda world: world.override(SubjectKind.GATE, "door", PolicyChange(rate=None)),
    ),
}

by_hold = pytest.mark.parametrize("hold", HOLDS.values(), ids=list(HOLDS))


class Scene(NamedTuple):
    """Four waiting jobs, by tenant and task, and acme's claim that makes a limit or rate bite."""

    jobs: dict[tuple[str, str], JobRecord]
    started: list[Claim]

    @property
    def held(self) -> JobRecord:
        """The job that is held by any of the reasons."""
        return self.jobs["acme", "held"]


async def _set(world: World, hold: Hold, until: Instant | None = None) -> Scene:
    await hold.put_on(world, until)
    started: list[Claim] = []
    if hold.needs_start:
        await world.enqueue("acme", task="held")
        started = await world.claim(1)
    pairs = [(tenant, task) for tenant in ("acme", "globex") for task in ("held", "free")]
    reply = await world.send(*(world.new(tenant, task=task) for tenant, task in pairs))
    return Scene(dict(zip(pairs, (one.job for one in reply.enqueued), strict=True)), started)


async def _pairs(world: World, total: int = 9) -> set[tuple[str, str]]:
    return {(claim.job.tenant, claim.job.task) for claim in await world.claim(total)}


# ── for every reason ─────────────────────────────────────────────────────────


@by_hold
async def test_what_is_held_steps_aside_for_all_that_is_not(world: World, hold: Hold) -> None:
    """S42: other tenants go on, and the tenant's own other tasks unless it is held itself."""
    scene = await _set(world, hold)
    others = ("globex", "held") if hold.is_of_tenant else ("acme", "free")
    assert await _pairs(world) == {others, ("globex", "free")}
    assert await _pairs(world) == set()
    assert await world.get(scene.held.id) == scene.held


@by_hold
async def test_why_it_waits_is_known_before_and_after_it_was_parked(world: World, hold: Hold) -> None:
    """S42: reason, subject and end; what runs past it is told nothing of the kind."""
    until = world.now + 30 * SECOND
    scene = await _set(world, hold, until)
    for _ in range(2):
        why = await world.explain(scene.held.id)
        assert (why.reason, why.subject, why.until) == (hold.reason, str(hold.subject), until)
        assert (await world.explain(scene.jobs["globex", "free"].id)).reason in {"no_worker", "running"}
        await world.claim(9)


@by_hold
async def test_lifting_the_hold_lets_it_run_at_once(world: World, hold: Hold) -> None:
    """S42: no time has to pass, and nobody has to promote anything."""
    scene = await _set(world, hold)
    await world.claim(9)
    await hold.lift(world)
    assert ("acme", "held") in await _pairs(world)
    assert (await world.explain(scene.held.id)).reason == "running"


@pytest.mark.parametrize("name", ["running limit", "gate full"])
async def test_the_end_of_the_attempt_that_held_it_lets_it_run_at_once(world: World, name: str) -> None:
    """S42, S43, S45: a place is given back by a settlement, too."""
    scene = await _set(world, HOLDS[name])
    await world.claim(9)
    await world.settle(scene.started[0])
    claims = await world.claim(1)
    assert claims[0].job.id == scene.held.id


@by_hold
async def test_time_alone_lets_it_run_not_a_microsecond_early(world: World, hold: Hold) -> None:
    """S42: the reply of a claim says when; nobody has to promote anything."""
    start = world.now
    await _set(world, hold, start + 30 * SECOND)
    assert (await world.claim_whole(9)).next_due_at == start + 30 * SECOND
    world.advance(30 - MICRO)
    assert (await world.claim_whole(9)).claims == ()
    world.advance(MICRO)
    assert ("acme", "held") in await _pairs(world)


@by_hold
async def test_what_comes_later_to_a_held_strand_waits_with_it(world: World, hold: Hold) -> None:
    """S42: a new job, however urgent, does not wake it; of a free strand it runs."""
    await _set(world, hold)
    await world.claim(9)
    await world.send(
        world.new("acme", task="held", priority=100),
        world.new("acme", task="new"),
        world.new("globex", task="new"),
    )
    expected = {("globex", "new")} if hold.is_of_tenant else {("acme", "new"), ("globex", "new")}
    assert await _pairs(world) == expected


@by_hold
async def test_a_parked_tenant_gets_no_credit_for_the_time_it_was_away(world: World, hold: Hold) -> None:
    """S41, S42: it starts again at the queue's virtual time: every second turn, no more."""
    await world.enqueue_many(30, "globex", task="free")
    await hold.put_on(world, None)
    await world.enqueue_many(6, "acme", task="held")
    assert (await world.tenants_served(12)).count("acme") == hold.needs_start
    await hold.lift(world)
    assert await world.tenants_served(8) == ["globex", "acme"] * 4


# ── several at once ──────────────────────────────────────────────────────────


async def test_a_strand_is_held_until_the_last_of_its_reasons_has_gone(world: World) -> None:
    """S42: task and tenant paused, the gate shut; each is lifted, and only then it runs."""
    await world.put_gate("door", "held")
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
    for subject in (ACME, HELD):
        await world.pause(subject.kind, subject.name)
    job = await world.enqueue(task="held")
    await world.claim(1)
    lifts: dict[str, Callable[[], Awaitable[object]]] = {
        "tenant acme": lambda: world.resume(SubjectKind.TENANT, "acme"),
        "task held": lambda: world.resume(SubjectKind.TASK, "held"),
        "gate door": lambda: world.override(SubjectKind.GATE, "door", PolicyChange(limit=1)),
    }
    for name, lift in lifts.items():
        assert (await world.explain(job.id)).subject == name
        assert await world.claim(1) == []
        await lift()
    assert [claim.job.id for claim in await world.claim(1)] == [job.id]


async def test_hundreds_of_held_jobs_hide_nobody_behind_them(world: World) -> None:
    """S42: 300 urgent jobs of a paused task step aside as one strand."""
    await world.pause(SubjectKind.TASK, "held")
    await world.enqueue_many(300, "acme", task="held", priority=100)
    world.advance(60)
    mine = await world.enqueue("acme", task="free", priority=-100)
    other = await world.enqueue("globex", task="free")
    assert {claim.job.id for claim in await world.claim(2)} == {mine.id, other.id}


async def _paused_task(world: World) -> None:
    await world.pause(SubjectKind.TASK, "held")
    await world.send(*(world.new(f"t{n}", task="held") for n in range(70)))


async def _shut_gate(world: World) -> None:
    tasks = [f"held{n}" for n in range(70)]
    await world.put_gate("door", *tasks)
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=0))
    await world.send(*(world.new("acme", task=task) for task in tasks))


async def _no_room(world: World) -> None:
    none = TenantRules(limits={"default": Limits(running=0)})
    await world.put({Subject(SubjectKind.TENANT, "*"): none, ACME: TenantRules(limits={"default": Limits()})})
    await world.send(*(world.new(f"t{n}") for n in range(70)))


async def _spent_rate(world: World) -> None:
    rules = TenantRules(limits={"default": Limits(rate=EVERY_30_S)})
    await world.put(
        {Subject(SubjectKind.TENANT, "*"): rules, ACME: TenantRules(limits={"default": Limits()})}
    )
    await world.send(*(world.new(f"t{n}") for n in range(70)))
    assert len(await world.claim(70)) == 70
    await world.send(*(world.new(f"t{n}") for n in range(70)))


@pytest.mark.parametrize("block", [_paused_task, _shut_gate, _no_room, _spent_rate])
async def test_more_held_strands_than_a_claim_parks_still_let_a_free_job_through(
    world: World, block: Callable[[World], Awaitable[None]]
) -> None:
    """S35, S42: 70 of them, because a claim may stop after 64; if it has nothing then it says it stopped."""
    await block(world)
    world.advance(1)
    free = await world.enqueue("acme", task="free")
    found: list[Claim] = []
    for _ in range(3):
        reply = await world.claim_reply(5)
        found += reply.claims
        assert found or reply.is_partial
    assert [claim.job.id for claim in found] == [free.id]
