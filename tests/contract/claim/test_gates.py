"""A gate bounds what runs at once, over all workers and queues (S43).

Limits that change stand in `test_gate_changes`, a gate's rate in `test_rates`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import GateRules, PolicyChange, SubjectKind, TenantRules
from fairlane.model.scope import Scope
from fairlane.store.contract.request import Request
from tests.contract.world import ENDINGS, World
from tests.invariants import check


async def _gate(world: World, limit: int | None, *tasks: str) -> None:
    await world.put_gate("door", *(tasks or ("gated",)))
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=limit))


async def _used(world: World) -> int:
    """Read the gate's own count, which must be what a recount gives."""
    await check(world.store, gates_are_stable=True)
    gates = await world.store.upkeep.gates(Request(scope=Scope.all()))
    assert gates == (await world.census()).gates
    assert await world.store.upkeep.gates(Request(scope=Scope("acme"))) == ()
    return sum(book.used for book in gates if book.gate == "door")


# ── the limit ────────────────────────────────────────────────────────────────


async def test_a_gate_counts_over_queues_tasks_tenants_and_workers(world: World) -> None:
    """S43: three places, whoever asks and from where."""
    await _gate(world, 3, "fax", "scan")
    await world.send(
        *(
            world.new(tenant, queue=queue, task=task)
            for queue in ("a", "b")
            for tenant in ("acme", "globex")
            for task in ("fax", "scan")
        )
    )
    claims = await world.claim(2, "a", worker="w1")
    claims += await world.claim(9, "b", worker="w2")
    assert [claim.job.queue for claim in claims] == ["a", "a", "b"]
    assert await world.claim(9, queue_requests=[("a", 9), ("b", 9)], worker="w3") == []
    assert await _used(world) == 3


@pytest.mark.parametrize("limit", [1, 3, 10])
async def test_a_batch_takes_exactly_the_places_there_are(world: World, limit: int) -> None:
    """S43: the gated jobs in order, up to the limit; other jobs are not counted."""
    await _gate(world, limit)
    await world.send(*(world.new(tenant, task="gated") for _ in range(4) for tenant in "abc"))
    await world.enqueue_many(2, "d", task="plain")
    claims = await world.claim(50)
    gated = [claim.job.tenant for claim in claims if claim.job.task == "gated"]
    assert gated == [*"abcabcabcabc"][:limit]
    assert len(claims) == limit + 2
    assert await _used(world) == limit


async def test_a_task_without_a_gate_and_other_gates_are_not_affected(world: World) -> None:
    """S43: of the same tenant, in the same queue."""
    await _gate(world, 0)
    await world.put_gate("other", "elsewhere")
    await world.declare(SubjectKind.GATE, "other", GateRules(limit=1))
    await world.send(
        *(world.new(task=task) for task in ("gated", "plain", "elsewhere", "plain", "elsewhere"))
    )
    assert [claim.job.task for claim in await world.claim(9)] == ["plain", "elsewhere", "plain"]


async def test_a_gate_of_zero_lets_nobody_through_until_it_is_raised(world: World) -> None:
    """S43: shut is a limit like any other."""
    await _gate(world, 0)
    (first, *_) = await world.enqueue_many(3, task="gated")
    assert await world.claim(9) == []
    why = await world.explain(first.id)
    assert (why.reason, why.subject, why.until) == ("gate", "gate door", None)
    await world.override(SubjectKind.GATE, "door", PolicyChange(limit=2))
    assert len(await world.claim(9)) == 2


@pytest.mark.parametrize("is_declared", [True, False], ids=["without limit", "never declared"])
async def test_a_gate_without_a_limit_is_open(world: World, *, is_declared: bool) -> None:
    """S43: what is not limited does not wait."""
    await world.put_gate("door", "gated")
    if is_declared:
        await world.declare(SubjectKind.GATE, "door", GateRules())
    await world.enqueue_many(20, task="gated")
    assert len(await world.claim(50)) == 20


async def test_concurrent_claimers_never_pass_more_than_the_limit(world: World) -> None:
    """S43: eight at once, from two queues; afterwards no place is left empty either."""
    await _gate(world, 5)
    jobs = [world.new(f"t{n % 4}", queue="ab"[n % 2], task="gated") for n in range(24)]
    await world.send(*jobs)
    taken = await asyncio.gather(*(world.claim(3, "ab"[n % 2], worker=f"w{n}") for n in range(8)))
    claims = [claim for one in taken for claim in one]
    assert len(claims) <= 5
    claims += await world.claim(9, queue_requests=[("a", 9), ("b", 9)])
    assert len({claim.job.id for claim in claims}) == len(claims) == 5


# ── giving a place back ──────────────────────────────────────────────────────


async def _held_and_waiting(world: World) -> tuple[Claim, Claim]:
    """Let a and b hold both places of the gate, with a strand each of c and d waiting there."""
    await _gate(world, 2)
    await world.send(*(world.new(tenant, task="gated") for tenant in "abcd"))
    held = await world.claim(9)
    assert [claim.job.tenant for claim in held] == ["a", "b"]
    return held[0], held[1]


@pytest.mark.parametrize("ending", ENDINGS)
async def test_every_ending_gives_one_place_back_to_one_that_waits(world: World, ending: str) -> None:
    """S43: in the same step; the next claim takes it, and only one does."""
    claim, _ = await _held_and_waiting(world)
    await world.settle(claim, ENDINGS[ending])
    assert await _used(world) == 1
    assert await world.tenants_served(9) == ["c"]
    assert await _used(world) == 2


async def test_a_reclaim_gives_the_places_back(world: World) -> None:
    """S38, S43: of as many as were lost."""
    await _held_and_waiting(world)
    await world.lose()
    assert await _used(world) == 0
    assert await world.tenants_served(9) == ["c", "d"]


async def test_a_cancel_gives_the_place_back_when_it_is_obeyed_not_when_it_is_asked(world: World) -> None:
    """S30, S43: until then the job still runs."""
    claim, _ = await _held_and_waiting(world)
    await world.cancel(claim.job.id)
    assert (await _used(world), await world.claim(9)) == (2, [])
    assert await world.settle(claim, ENDINGS["cancelled"]) is State.CANCELLED
    assert await world.tenants_served(9) == ["c"]


async def test_a_stale_settlement_gives_no_place_back(world: World) -> None:
    """S36, S43: nor does the same one twice."""
    claim, _ = await _held_and_waiting(world)
    await world.settle_reply(world.verdict(claim), worker="w2")
    assert await world.claim(9) == []
    for _ in range(2):
        await world.settle_reply(world.verdict(claim))
    assert await world.tenants_served(9) == ["c"]


# ── who gets it ──────────────────────────────────────────────────────────────


async def test_the_place_goes_to_who_had_the_least(world: World) -> None:
    """S41, S43: by virtual time, not by who came to the gate first."""
    await _gate(world, 1)
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    await world.enqueue_many(3, "busy", task="plain")
    await world.enqueue("busy", task="gated", priority=-1)
    await world.enqueue("modest", task="gated")
    assert await world.tenants_served(9) == ["busy"] * 3
    await world.settle(holder)
    (next_one,) = await world.claim(9)
    assert next_one.job.tenant == "modest"
    await world.settle(next_one)
    assert await world.tenants_served(9) == ["busy"]


@pytest.mark.parametrize("how", ["a place given back", "a raised limit"])
async def test_the_line_is_in_the_order_of_turns_at_which_strands_came_to_it(world: World, how: str) -> None:
    """S43: neither who came first, nor who has the least by now: what it was served since does not count."""
    await _gate(world, 1)
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    await world.enqueue_many(3, "busy", task="plain")
    await world.enqueue("busy", task="gated", priority=-1)
    assert await world.tenants_served(9) == ["busy"] * 3
    await world.enqueue("modest", task="gated", priority=1)
    await world.enqueue_many(5, "modest", task="plain")
    assert await world.tenants_served(9) == ["modest"] * 5
    if how == "a raised limit":
        await world.override(SubjectKind.GATE, "door", PolicyChange(limit=2))
    else:
        await world.settle(holder)
    (next_one,) = await world.claim(9)
    assert next_one.job.tenant == "modest"
    await world.settle(next_one)
    assert await world.tenants_served(9) == ["busy"]


async def test_the_place_goes_to_the_next_claim_of_a_queue_in_which_somebody_waits(world: World) -> None:
    """S43: a free place is reserved for no queue; each has its own line, and the limit holds over all."""
    await _gate(world, 1)
    await world.enqueue("holder", queue="a", task="gated")
    holder = await world.claim_one("a")
    for queue in ("b", "c"):
        await world.enqueue("acme", queue=queue, task="gated")
    assert await world.claim(9, queue_requests=[("b", 9), ("c", 9)]) == []
    await world.settle(holder)
    assert await world.claim(9, "a") == []
    (second,) = await world.claim(9, "c")
    assert await world.claim(9, "b") == []
    await world.settle(second)
    assert len(await world.claim(9, "b")) == 1
    assert await _used(world) == 1


async def test_a_place_is_filled_while_others_have_work_for_long(world: World) -> None:
    """S41, S43: a tenant that waited at the gate is served, also among tenants that are never idle."""
    await _gate(world, 1)
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    await world.enqueue_many(2, "patient", task="gated")
    await world.enqueue_many(40, "busy", task="plain")
    assert await world.tenants_served(8) == ["busy"] * 8
    await world.settle(holder)
    assert (await world.tenants_served(4)).count("patient") == 1


async def test_tenants_at_a_narrow_gate_take_turns(world: World) -> None:
    """S41, S43: one place, two backlogs of different size."""
    await _gate(world, 1)
    await world.enqueue_many(9, "a", task="gated")
    await world.enqueue_many(3, "b", task="gated")
    served = []
    for _ in range(6):
        (claim,) = await world.claim(9)
        served.append(claim.job.tenant)
        await world.settle(claim)
    assert served == ["a", "b"] * 3


async def _paused_tenant(world: World) -> None:
    await world.pause(SubjectKind.TENANT, "c")


async def _paused_task(world: World) -> None:
    await world.put_gate("door", "elsewhere")
    await world.pause(SubjectKind.TASK, "elsewhere")


async def _no_running_room(world: World) -> None:
    await world.declare(SubjectKind.TENANT, "c", TenantRules(limits={"default": Limits(running=0)}))


async def _no_job_left(world: World) -> None:
    await world.cancel(*(job.id for job in await world.find_all() if job.tenant == "c"))


async def _nothing(world: World) -> None:
    """A queue that nobody asks for is reason enough."""


UNABLE: dict[str, tuple[str, str, Callable[[World], Awaitable[None]]]] = {
    "tenant paused": ("default", "gated", _paused_tenant),
    "task paused": ("default", "elsewhere", _paused_task),
    "at its running limit": ("default", "gated", _no_running_room),
    "cancelled meanwhile": ("default", "gated", _no_job_left),
    "in a queue nobody serves": ("lonely", "gated", _nothing),
}


@pytest.mark.parametrize("why", UNABLE)
async def test_one_that_cannot_run_for_another_reason_does_not_block_the_gate(world: World, why: str) -> None:
    """S42, S43: it waits first in line, the place goes to the next all the same."""
    queue, task, make_unable = UNABLE[why]
    await _gate(world, 1, "gated", task)
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    await world.enqueue("c", queue=queue, task=task)
    await world.enqueue("d", task="gated")
    assert await world.claim(9, queue_requests=[("default", 9), ("lonely", 9)]) == []
    await make_unable(world)
    await world.settle(holder)
    assert await world.tenants_served(9) == ["d"]


async def test_several_that_cannot_run_do_not_block_the_gate_together(world: World) -> None:
    """S35, S42, S43: three tenants parked as a whole stand before the one that can run."""
    await _gate(world, 1)
    await world.enqueue("holder", task="gated")
    holder = await world.claim_one()
    tenants = ["c1", "c2", "c3"]
    await world.send(*(world.new(tenant, task="gated") for tenant in [*tenants, "d"]))
    assert await world.claim(9) == []
    for tenant in tenants:
        await world.pause(SubjectKind.TENANT, tenant)
    await world.send(*(world.new(tenant, task="plain") for tenant in tenants))
    assert await world.claim(9) == []
    await world.settle(holder)
    assert await world.tenants_served(9) == ["d"]


async def test_a_line_at_the_gate_does_not_delay_the_tenants_other_tasks(world: World) -> None:
    """S42, S43: a hundred jobs wait at the gate; each job without a gate is served when it is next."""
    await _gate(world, 1)
    await world.enqueue_many(100, task="gated", priority=50)
    await world.enqueue_many(5, task="plain")
    assert [claim.job.task for claim in await world.claim(20)] == ["gated"] + ["plain"] * 5


# ── clocks ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, None], ids=["limited", "limited only after"])
async def test_a_place_taken_while_the_clock_was_back_is_counted(world: World, limit: int | None) -> None:
    """S43: by claims before and after, whatever the clock says of which is older."""
    await _gate(world, 1)
    await world.send(*(world.new(task="gated") for _ in range(3)))
    await world.settle(await world.claim_one())
    await _gate(world, limit)
    world.advance(-60)
    await world.claim_one(lease=3_600 * SECOND)
    world.advance(60)
    await _gate(world, 1)
    assert await world.claim(5) == []
    assert await _used(world) == 1
