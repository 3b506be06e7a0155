"""Finished jobs, results and keys are stored for their retention times and no longer (S52)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from fairlane.model.instants import DAY, HOUR, SECOND, Micros
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import FINISHED, HOT, State
from fairlane.model.policy.retention import Retention
from fairlane.model.retry.decision import Succeeded
from fairlane.model.scope import Scope
from fairlane.store.contract.upkeep import PruneReply, PruneRequest
from tests.contract.world import ALL, World, numbers_of

INSTANT: Final = 0.000_001
NOTHING: Final = PruneReply()
AT_ONCE: Final[dict[str, Any]] = {"succeeded": 0, "cancelled": 0, "dead": 0, "results": 0, "keys": 0}


async def prune(world: World, limit: int = 1_000, scope: Scope = ALL, **times: Any) -> PruneReply:
    """Make one bounded pass."""
    request = PruneRequest(scope=scope, retention=Retention(**times), limit=limit)
    return numbers_of(await world.store.upkeep.prune(request))


KEPT: Final[list[tuple[State, dict[str, Any], Micros]]] = [
    *((state, {}, 30 * DAY if state is State.DEAD else 7 * DAY) for state in sorted(FINISHED)),
    *((state, {state.value: 5 * SECOND}, 5 * SECOND) for state in sorted(FINISHED)),
    (State.SUCCEEDED, {"succeeded": HOUR, "queues": {"default": SECOND}}, SECOND),
    (State.DEAD, {"dead": SECOND, "queues": {"default": HOUR}}, HOUR),
    (State.CANCELLED, {"queues": {"other": SECOND}}, 7 * DAY),
    (State.SUCCEEDED, {"tenants": {"acme": SECOND}}, SECOND),
    (State.SUCCEEDED, {"tenants": {"globex": SECOND}}, 7 * DAY),
    (State.DEAD, {"queues": {"default": SECOND}, "tenants": {"acme": HOUR}}, HOUR),
    (State.CANCELLED, {"queues": {"default": HOUR}, "tenants": {"acme": SECOND}}, SECOND),
    (State.SUCCEEDED, {"succeeded": SECOND, "cancelled": 0, "dead": 0, "results": 0, "keys": 0}, SECOND),
]
"""A state, the times that are set, and how long a job of acme in the default queue is then stored."""


@pytest.mark.parametrize(("state", "times", "kept"), KEPT, ids=str)
async def test_a_finished_job_is_kept_until_its_time_is_over(
    world: World, state: State, times: dict[str, Any], kept: Micros
) -> None:
    """S52: by tenant, else by queue, else by state; counted from settling, over at that very instant."""
    world.advance(100)
    claim = await world.bring_to(state)
    world.advance(kept / SECOND - INSTANT)
    before = await world.sight()
    assert await prune(world, **times) == NOTHING
    assert await world.sight() == before
    world.advance(INSTANT)
    assert await prune(world, **times) == PruneReply(jobs=1)
    assert not await world.is_known(claim.job.id)
    assert await world.counts() == {}
    assert await world.letters() == []
    assert (await world.census()).homes == {}
    assert await prune(world, **times) == NOTHING


@pytest.mark.parametrize("state", sorted(HOT))
async def test_a_job_that_lives_is_never_removed(world: World, state: State) -> None:
    """S52: however old, whatever is set, with all that it holds."""
    await world.bring_to(state, idempotency_key="k", dedup_key="d")
    world.advance(400 * 86_400)
    before = await world.sight()
    assert await prune(world, **AT_ONCE, tenants={"acme": 0}, queues={"default": 0}) == NOTHING
    assert await world.sight() == before


async def test_a_result_may_go_before_its_job(world: World) -> None:
    """S34, S52: at its own time; the job stays as it is, and one without result is not counted."""
    await world.enqueue_many(2)
    kept = await world.run(Succeeded(b'"result"'))
    plain = await world.run()
    assert kept.result == b'"result"'
    world.advance(10 - INSTANT)
    assert await prune(world, results=10 * SECOND) == NOTHING
    world.advance(INSTANT)
    assert await prune(world, results=10 * SECOND) == PruneReply(results=1)
    assert await world.get(kept.id) == msgspec.structs.replace(kept, result=b"")
    assert await world.get(plain.id) == plain
    assert await prune(world, results=10 * SECOND) == NOTHING


async def test_a_job_takes_its_result_along(world: World) -> None:
    """S52: and is counted once, as a job."""
    await world.enqueue()
    await world.run(Succeeded(b"1"))
    world.advance(1)
    assert await prune(world, succeeded=SECOND, results=HOUR) == PruneReply(jobs=1)


async def test_a_key_is_never_removed_before_its_job(world: World) -> None:
    """S13, S52: its own time may be over long before; it goes in the same pass as the job."""
    sent = world.new(idempotency_key="k", fingerprint=b"f")
    await world.send(sent)
    await world.run()
    world.advance(100)
    assert await prune(world, succeeded=HOUR, keys=SECOND) == NOTHING
    again = await world.send(world.new(idempotency_key="k", fingerprint=b"f"))
    assert [(one.job.id, one.is_created) for one in again.enqueued] == [(sent.id, False)]
    world.advance(3_500)
    assert await prune(world, succeeded=HOUR, keys=SECOND) == PruneReply(jobs=1, keys=1)
    assert (await world.census()).idempotency_keys == 0
    assert (await world.send(world.new(idempotency_key="k", fingerprint=b"g"))).enqueued[0].is_created


async def test_a_key_outlives_its_job_and_answers_for_it(world: World) -> None:
    """S13, S52: a repeat gets a tombstone of the first job; the key is free at the end of its own time."""
    sent = world.new(idempotency_key="k", fingerprint=b"f")
    await world.send(sent)
    settled_at = (await world.run()).settled_at
    world.advance(10)
    assert await prune(world, succeeded=SECOND, keys=HOUR) == PruneReply(jobs=1)
    (again,) = (await world.send(world.new(idempotency_key="k", fingerprint=b"f"))).enqueued
    assert not again.is_created
    husk = again.job.id, again.job.state, again.job.settled_at
    assert husk == (sent.id, State.SUCCEEDED, settled_at)
    (other,) = (await world.send(world.new(idempotency_key="k", fingerprint=b"g"))).refused
    assert other.kind is RefusalKind.IDEMPOTENCY_MISMATCH
    world.advance(3_590 - INSTANT)
    assert await prune(world, succeeded=SECOND, keys=HOUR) == NOTHING
    world.advance(INSTANT)
    assert await prune(world, succeeded=SECOND, keys=HOUR) == PruneReply(keys=1)
    assert (await world.census()).idempotency_keys == 0


async def test_a_generated_key_leaves_nothing_to_remove(world: World) -> None:
    """S13, S52: it equals the id and costs no row."""
    await world.bring_to(State.CANCELLED)
    world.advance(1)
    assert await prune(world, **AT_ONCE) == PruneReply(jobs=1)


async def test_a_pass_removes_no_more_than_asked(world: World) -> None:
    """S52: it says whether there was more, and passes lose nothing and take nothing twice."""
    await world.enqueue_many(7)
    for _ in range(7):
        await world.run(Succeeded(b"1"))
    waiting = await world.enqueue()
    world.advance(1)
    removed = 0
    passes: list[bool] = []
    while not passes or passes[-1]:
        reply = await prune(world, limit=3, **AT_ONCE)
        removed += reply.jobs
        passes.append(reply.is_partial)
        assert reply.jobs <= 3
        assert await world.counts() == {
            key: number
            for key, number in {
                ("acme", "default", State.READY): 1,
                ("acme", "default", State.SUCCEEDED): 7 - removed,
            }.items()
            if number
        }
    assert (removed, passes) == (7, [True, True, False])
    assert await world.find_all() == [waiting]


async def test_results_count_towards_a_pass(world: World) -> None:
    """S52: five results in passes of two."""
    await world.enqueue_many(5)
    for _ in range(5):
        await world.run(Succeeded(b"1"))
    world.advance(1)
    replies = [await prune(world, limit=2, results=SECOND) for _ in range(3)]
    assert [(one.jobs, one.results, one.is_partial) for one in replies] == [
        (0, 2, True),
        (0, 2, True),
        (0, 1, False),
    ]


async def test_exactly_as_many_as_asked_is_not_partial(world: World) -> None:
    """S52: there was no more."""
    for _ in range(2):
        await world.bring_to(State.CANCELLED)
    world.advance(1)
    assert await prune(world, limit=2, **AT_ONCE) == PruneReply(jobs=2)


async def test_each_job_goes_by_its_own_tenant_and_queue(world: World) -> None:
    """S52: shorter times take out of the midst what others keep."""
    jobs = {
        (tenant, queue): (await world.bring_to(State.SUCCEEDED, tenant, queue=queue)).job.id
        for tenant in ("acme", "globex")
        for queue in ("mail", "bulk")
    }
    world.advance(10)
    times: dict[str, Any] = {"queues": {"mail": 5 * SECOND}, "tenants": {"globex": 20 * SECOND}}
    assert await prune(world, **times) == PruneReply(jobs=1)
    assert not await world.is_known(jobs["acme", "mail"])
    world.advance(10)
    assert await prune(world, **times) == PruneReply(jobs=2)
    assert [job.id for job in await world.find_all()] == [jobs["acme", "bulk"]]


async def test_a_scope_prunes_its_own_jobs_and_keys_alone(world: World) -> None:
    """S9, S52: another tenant's stay, also a key that has outlived its job."""
    await world.bring_to(State.SUCCEEDED, "globex", idempotency_key="alone")
    assert await prune(world, succeeded=0) == PruneReply(jobs=1)
    for tenant in ("acme", "globex"):
        await world.bring_to(State.SUCCEEDED, tenant, idempotency_key="k")
    world.advance(1)
    assert await prune(world, scope=Scope("acme"), **AT_ONCE) == PruneReply(jobs=1, keys=1)
    assert [job.tenant for job in await world.find_all()] == ["globex"]
    assert (await world.census()).idempotency_keys == 2
    assert await prune(world, scope=Scope("globex"), **AT_ONCE) == PruneReply(jobs=1, keys=2)


async def test_what_is_kept_longer_does_not_hide_what_is_over(world: World) -> None:
    """S52: many dead letters that stay stand before one success that goes; a small pass finds it."""
    for job in await world.enqueue_many(40):
        await world.condemn(job.id)
    await world.enqueue()
    await world.run()
    world.advance(10)
    assert await prune(world, limit=1, succeeded=SECOND, dead=HOUR) == PruneReply(jobs=1)
    assert await prune(world, limit=1, succeeded=SECOND, dead=HOUR) == NOTHING
