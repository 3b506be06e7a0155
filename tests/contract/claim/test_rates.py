"""Starts are spaced by rates: of a queue, a tenant in a queue, a task, a gate (S44)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.policy.overrides import (
    GateRules,
    PolicyChange,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
    TenantRules,
)
from tests.contract.world import ENDINGS, MICRO, World

SCOPES = {"queue": "queue default", "tenant": "tenant acme", "task": "task noop", "gate": "gate door"}
"""The four scopes of a rate, and what `explain` calls each here."""

in_every_scope = pytest.mark.parametrize("scope", SCOPES)


def _rules(scope: str, rate: Rate) -> Mapping[Subject, Rules]:
    rules: Mapping[str, Mapping[Subject, Rules]] = {
        "queue": {Subject(SubjectKind.QUEUE, "default"): QueueRules(rate=rate)},
        "tenant": {Subject(SubjectKind.TENANT, "acme"): TenantRules(limits={"default": Limits(rate=rate)})},
        "task": {Subject(SubjectKind.TASK, "noop"): TaskRules(rate=rate)},
        "gate": {
            Subject(SubjectKind.GATE, "door"): GateRules(rate=rate),
            Subject(SubjectKind.TASK, "noop"): TaskRules(gate="door"),
            Subject(SubjectKind.TASK, "twin"): TaskRules(gate="door"),
        },
    }
    return rules[scope]


async def _starts(world: World, total: int = 50) -> int:
    return len(await world.claim(total))


# ── the spacing ──────────────────────────────────────────────────────────────


@in_every_scope
async def test_starts_are_evenly_spaced_by_default(world: World, scope: str) -> None:
    """S44: two a second are one each half second, not two at once; a batch gets no more."""
    await world.put(_rules(scope, Rate(2, "second")))
    await world.enqueue_many(9)
    assert await _starts(world) == 1
    for _ in range(3):
        world.advance(0.5 - MICRO)
        assert await _starts(world) == 0
        world.advance(MICRO)
        assert await _starts(world) == 1


@in_every_scope
@pytest.mark.parametrize("jobs", [25, 30])
async def test_a_burst_goes_at_once_and_the_rest_at_the_rate(world: World, scope: str, jobs: int) -> None:
    """S44: ten a second with a burst of 20: of 25 jobs 20 now and five in half a second, of 30 in one."""
    await world.put(_rules(scope, Rate(10, "second", burst=20)))
    await world.enqueue_many(jobs)
    assert await _starts(world) == 20
    rest = jobs - 20
    world.advance(rest / 10 - 0.1)
    assert await _starts(world) == rest - 1
    world.advance(0.1 - MICRO)
    assert await _starts(world) == 0
    world.advance(MICRO)
    assert await _starts(world) == 1


async def test_a_burst_is_earned_back_at_the_rate_and_never_exceeds_itself(world: World) -> None:
    """S44: a third of a second gives back three starts, an idle hour no more than the burst."""
    await world.put(_rules("queue", Rate(10, "second", burst=4)))
    await world.enqueue_many(30)
    assert await _starts(world) == 4
    world.advance(0.35)
    assert await _starts(world) == 3
    world.advance(3600)
    assert await _starts(world) == 4


@in_every_scope
async def test_an_idle_hour_saves_up_nothing_where_starts_are_spaced(world: World, scope: str) -> None:
    """S44: one, and the next after the interval."""
    await world.put(_rules(scope, Rate(1, "second")))
    await world.enqueue_many(9)
    assert await _starts(world) == 1
    world.advance(3600)
    assert await _starts(world) == 1
    world.advance(1)
    assert await _starts(world) == 1


async def test_fifty_a_minute_on_a_queue_are_fifty_over_all_tenants(world: World) -> None:
    """S41, S44: for a whole minute each claim comes when the last reply said so; tenants take turns."""
    await world.put(_rules("queue", Rate(50, "minute")))
    await world.send(*(world.new(tenant) for tenant in "abc" for _ in range(20)))
    begin, served, due = world.now, "", world.now
    while due < begin + MINUTE:
        world.advance((due - world.now) / SECOND)
        reply = await world.claim_whole(9)
        served += "".join(claim.job.tenant for claim in reply.claims)
        assert reply.next_due_at == world.now + 1_200_000
        due = reply.next_due_at
    assert served == ("abc" * 17)[:50]


# ── what counts together ─────────────────────────────────────────────────────

OTHERS = {
    "another tenant": ("globex", "default", "noop"),
    "another task": ("acme", "default", "other"),
    "another queue": ("acme", "mail", "noop"),
    "all other": ("globex", "mail", "other"),
    "its twin at the gate": ("globex", "mail", "twin"),
}

COUNTED = {
    "queue": {"another tenant", "another task"},
    "tenant": {"another task"},
    "task": {"another tenant", "another queue"},
    "gate": {"another tenant", "another queue", "its twin at the gate"},
}


@in_every_scope
@pytest.mark.parametrize("other", OTHERS)
async def test_a_rate_counts_what_is_in_its_scope_and_nothing_else(
    world: World, scope: str, other: str
) -> None:
    """S44: after acme's start of `noop` in the default queue, others wait or go."""
    await world.put(_rules(scope, Rate(1, "minute")))
    await world.enqueue()
    await world.claim_one()
    tenant, queue, task = OTHERS[other]
    await world.enqueue(tenant, queue=queue, task=task)
    assert len(await world.claim(9, queue)) == (other not in COUNTED[scope])


async def test_of_two_rates_both_must_allow_a_start_and_both_count_it(world: World) -> None:
    """S44: the queue every 10 s, acme once a minute in it."""
    await world.put({**_rules("queue", Rate(6, "minute")), **_rules("tenant", Rate(1, "minute"))})
    await world.send(*(world.new(tenant) for tenant in ("acme", "acme", "globex", "globex")))
    served = []
    for _ in range(7):
        served.append(await world.tenants_served(9))
        world.advance(10)
    assert served == [["acme"], ["globex"], ["globex"], [], [], [], ["acme"]]


async def test_a_start_refused_by_one_rate_is_not_counted_by_another(world: World) -> None:
    """S44: acme's job of the spent task comes first and may not start; the one behind it may."""
    await world.put({**_rules("task", Rate(1, "minute")), **_rules("tenant", Rate(1, "minute"))})
    await world.enqueue("globex")
    await world.claim_one()
    await world.enqueue("acme", task="noop", priority=9)
    free = await world.enqueue("acme", task="free")
    assert [claim.job.id for claim in await world.claim(9)] == [free.id]


@in_every_scope
async def test_asking_in_vain_makes_the_wait_no_longer(world: World, scope: str) -> None:
    """S44: only starts count."""
    await world.put(_rules(scope, Rate(1, "minute")))
    await world.enqueue_many(3)
    begin = world.now
    await world.claim_one()
    for _ in range(5):
        world.advance(10)
        assert (await world.claim_whole(9)).next_due_at == begin + MINUTE
    world.advance(10)
    assert await _starts(world) == 1


async def test_room_that_a_rate_leaves_unused_passes_to_the_next_queue(world: World) -> None:
    """S35, S44: one start here, the rest there."""
    await world.put(_rules("queue", Rate(1, "minute")))
    await world.send(*(world.new(queue=queue) for queue in ("default", "mail") for _ in range(5)))
    claims = await world.claim(4, queue_requests=[("default", 4), ("mail", 4)])
    assert [claim.job.queue for claim in claims] == ["default", "mail", "mail", "mail"]


# ── never given back ─────────────────────────────────────────────────────────


@in_every_scope
@pytest.mark.parametrize("how", [*ENDINGS, "lost"])
async def test_a_start_is_never_given_back(world: World, scope: str, how: str) -> None:
    """S44: however the attempt ends, also when the handler never ran."""
    await world.put(_rules(scope, Rate(2, "minute")))
    await world.enqueue_many(2)
    begin = world.now
    claim = await world.claim_one()
    if how == "lost":
        await world.lose()
    else:
        await world.settle(claim, ENDINGS[how])
    world.advance((begin + 30 * SECOND - world.now) / SECOND - MICRO)
    assert await _starts(world) == 0
    world.advance(MICRO)
    assert await _starts(world) == 1


# ── the wait is known ────────────────────────────────────────────────────────


@in_every_scope
@pytest.mark.parametrize(
    ("rate", "starts", "wait"),
    [
        (Rate(50, "minute"), 1, 1_200_000),
        (Rate(3, "second"), 1, 333_334),
        (Rate(3, "second", burst=2), 2, 333_334),
        (Rate(7, "day"), 1, 12_342_857_143),
    ],
    ids=str,
)
async def test_the_wait_is_shown_to_the_microsecond(
    world: World, scope: str, rate: Rate, starts: int, wait: int
) -> None:
    """S44: by `explain` and by the claim's reply; the start comes then and not before."""
    await world.put(_rules(scope, rate))
    jobs = await world.enqueue_many(starts + 2)
    reply = await world.claim_whole(9)
    assert (len(reply.claims), reply.next_due_at) == (starts, world.now + wait)
    why = await world.explain(jobs[-1].id)
    assert (why.reason, why.subject, why.until) == ("rate", SCOPES[scope], world.now + wait)
    world.advance(wait / SECOND - MICRO)
    assert await _starts(world) == 0
    world.advance(MICRO)
    assert await _starts(world) == 1


# ── at once, and changed ─────────────────────────────────────────────────────


@in_every_scope
async def test_concurrent_claimers_start_no_more_than_the_burst(world: World, scope: str) -> None:
    """S44: eight at once ask for three each; afterwards none of the burst is left over either."""
    await world.put(_rules(scope, Rate(1, "hour", burst=10)))
    await world.enqueue_many(30)
    taken = await asyncio.gather(*(world.claim(3, worker=f"w{n}") for n in range(8)))
    claims = [claim for one in taken for claim in one]
    assert len(claims) <= 10
    claims += await world.claim(30)
    assert len({claim.job.id for claim in claims}) == len(claims) == 10


def _change(scope: str, rate: Rate | None) -> PolicyChange:
    return (
        PolicyChange(queue_limits={"default": Limits(rate=rate)})
        if scope == "tenant"
        else PolicyChange(rate=rate)
    )


async def _override(world: World, scope: str, rate: Rate | None, until: int | None = None) -> None:
    kind, name = SCOPES[scope].split()
    await world.override(SubjectKind(kind), name, _change(scope, rate), until)


@in_every_scope
async def test_a_rate_that_is_lifted_holds_nobody_any_more(world: World, scope: str) -> None:
    """S44, S54: at the next claim; the starts before it are not forgotten when it is back."""
    await world.put(_rules(scope, Rate(1, "minute")))
    await world.enqueue_many(5)
    assert await _starts(world) == 1
    await _override(world, scope, None)
    assert await _starts(world, 2) == 2
    kind, name = SCOPES[scope].split()
    await world.reset(SubjectKind(kind), name)
    assert await _starts(world) == 0
    world.advance(60)
    assert await _starts(world) == 1


@in_every_scope
async def test_a_rate_for_a_while_ends_by_itself(world: World, scope: str) -> None:
    """S44, S54: one an hour for the next ten seconds; then what was declared, which is no rate at all."""
    await world.put_gate("door", "noop")
    await world.enqueue_many(5)
    await _override(world, scope, Rate(1, "hour"), until=world.now + 10 * SECOND)
    assert await _starts(world) == 1
    world.advance(10 - MICRO)
    assert await _starts(world) == 0
    world.advance(MICRO)
    assert await _starts(world) == 4


@in_every_scope
async def test_a_raised_rate_holds_at_the_next_claim(world: World, scope: str) -> None:
    """S44, S54: what was started at one an hour does not keep a thousand a second waiting for an hour."""
    await world.put(_rules(scope, Rate(1, "hour")))
    await world.enqueue_many(5)
    assert await _starts(world, 5) == 1
    await _override(world, scope, Rate(1_000, "second", burst=3))
    assert await _starts(world, 5) == 3
    world.advance(0.001)
    assert await _starts(world, 5) == 1
