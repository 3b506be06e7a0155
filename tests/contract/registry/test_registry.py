"""The registry: workers, the tasks they publish, and their newest heartbeats (S33, S38, S61)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from fairlane.model.instants import SECOND, Micros
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.registry import (
    LIVE_WITHIN,
    ForgetWorkersRequest,
    HeartbeatRequest,
    LeaveRequest,
    RegisterRequest,
    StoreStatus,
    TaskRecord,
    TasksRequest,
    TaskView,
    WorkerRecord,
    WorkersRequest,
    WorkerView,
)
from fairlane.store.contract.request import Request
from tests.contract.world import ALL, World

INSTANT: Final = 0.000_001
MAIL: Final = TaskRecord(
    name="mail.send",
    queue="mail",
    version=3,
    schema=b'{"to":1}',
    aliases=("send", "post"),
    sensitive=("address",),
)
SORT: Final = TaskRecord(name="mail.sort", queue="bulk")


async def beat(world: World, worker: str = "w1", renew_every: Micros = 4 * SECOND, **options: Any) -> bool:
    """Let a worker say that it lives."""
    request = HeartbeatRequest(
        scope=ALL, worker=worker, renew_every=renew_every, **{"state": "idle", **options}
    )
    return await world.store.registry.heartbeat(request)


async def leave(world: World, worker: str = "w1") -> None:
    """Let a worker go in good order."""
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker=worker))


async def workers(world: World, seen_within: Micros | None = None) -> list[WorkerView]:
    """List the workers."""
    request = WorkersRequest(scope=ALL, seen_within=seen_within)
    return list(await world.store.registry.workers(request))


async def tasks(world: World, *names: str) -> list[TaskView]:
    """List published tasks."""
    return list(await world.store.registry.tasks(TasksRequest(scope=ALL, names=names)))


async def every_version(world: World, *names: str) -> list[tuple[int, int]]:
    """List the versions of published tasks, and when each was last seen."""
    request = TasksRequest(scope=ALL, names=names, every_version=True)
    return [(view.record.version, view.seen_at) for view in await world.store.registry.tasks(request)]


async def clean(world: World, silent_for: Micros) -> tuple[str, ...]:
    """Forget silent workers."""
    return await world.store.registry.clean(ForgetWorkersRequest(scope=ALL, silent_for=silent_for))


async def status(world: World) -> StoreStatus:
    """Return the status of the store."""
    return await world.store.registry.status(Request(scope=ALL))


# ── workers ───────────────────────────────────────────────────────────────────


async def test_a_worker_is_listed_as_it_introduced_itself(world: World) -> None:
    """S61: with every field of its record, the state `starting`, and its first heartbeat now."""
    record = WorkerRecord(
        id="host-7-1-ab",
        host="host",
        pid=7,
        version="1.2",
        queues=("mail", "bulk"),
        slots=16,
        tasks=(MAIL, SORT),
        labels=("eu", "big"),
    )
    await world.store.registry.register(RegisterRequest(scope=ALL, record=record, renew_every=SECOND))
    assert await workers(world) == [
        WorkerView(record=record, state="starting", started_at=world.now, beat_at=world.now)
    ]


async def test_a_heartbeat_says_what_the_process_of_a_worker_uses(world: World) -> None:
    """S122: the last one counts; before the first, after it is registered again, and if it does not say."""

    async def uses() -> list[tuple[int | None, float | None]]:
        return [(one.memory, one.cpu) for one in await workers(world)]

    await world.register("w1")
    assert await uses() == [(None, None)]
    assert await beat(world, memory=61_000_000, cpu=0.42)
    assert await uses() == [(61_000_000, 0.42)]
    assert await beat(world, memory=2**40, cpu=3.0)
    assert await uses() == [(2**40, 3.0)]
    assert await beat(world, memory=0, cpu=0.0)
    assert await uses() == [(0, 0.0)]
    assert await beat(world)
    assert await uses() == [(None, None)]
    assert await beat(world, memory=7, cpu=0.5)
    await world.register("w1")
    assert await uses() == [(None, None)]


async def test_a_heartbeat_says_what_a_worker_does(world: World) -> None:
    """S61: state, counts and time are the newest; when it started stays."""
    record, started_at = await world.register(), world.now
    world.advance(3)
    assert await beat(world, state="busy", running=2, settled=7, failed=1)
    busy = WorkerView(
        record=record, state="busy", started_at=started_at, beat_at=world.now, running=2, settled=7, failed=1
    )
    assert await workers(world) == [busy]
    world.advance(1)
    assert await beat(world, state="draining")
    assert await workers(world) == [
        WorkerView(record=record, state="draining", started_at=started_at, beat_at=world.now)
    ]


async def test_registering_again_replaces_what_was_said_before(world: World) -> None:
    """S61: record, state, counts and start; there is still one worker with that id."""
    record = await world.register()
    await beat(world, state="busy", running=2)
    again = msgspec.structs.replace(record, slots=1, labels=("new",))
    now = world.advance(1)
    await world.store.registry.register(RegisterRequest(scope=ALL, record=again, renew_every=SECOND))
    assert await workers(world) == [WorkerView(record=again, state="starting", started_at=now, beat_at=now)]


async def test_a_worker_that_is_not_known_must_register_again(world: World) -> None:
    """S61: its heartbeat answers False and leaves no trace, whether it left, was forgotten or never was."""
    assert not await beat(world)
    assert await workers(world) == []
    assert (await status(world)).beat_at is None
    await world.register("w1")
    await leave(world, "w1")
    await world.register("w2")
    world.advance(60)
    await clean(world, 60 * SECOND)
    assert [await beat(world, name) for name in ("w1", "w2")] == [False, False]
    assert await workers(world) == []


async def test_leaving_takes_one_worker_off_the_list(world: World) -> None:
    """S61: at once; leaving twice or without having come is no error."""
    for name in ("w3", "w1", "w2"):
        await world.register(name)
    await leave(world, "w2")
    await leave(world, "w2")
    await leave(world, "never")
    assert [view.record.id for view in await workers(world)] == ["w1", "w3"]


async def test_workers_are_listed_by_how_lately_they_were_seen(world: World) -> None:
    """S61: not older than asked for, by id."""
    await world.register("b")
    world.advance(10)
    await world.register("a")
    for within, seen in ((None, "ab"), (0, "a"), (10 * SECOND - 1, "a"), (10 * SECOND, "ab")):
        assert "".join(view.record.id for view in await workers(world, within)) == seen


async def test_silent_workers_are_forgotten_and_their_claims_are_not(world: World) -> None:
    """S38, S61: leases decide over claims; forgetting names who was forgotten, by id."""
    await world.register("w2")
    await world.register("w1")
    await world.enqueue()
    claim = await world.claim_one()
    world.advance(10)
    await world.register("w3")
    assert await clean(world, 10 * SECOND + 1) == ()
    before = await world.sight()
    assert await clean(world, 10 * SECOND) == ("w1", "w2")
    assert await clean(world, 10 * SECOND) == ()
    assert [view.record.id for view in await workers(world)] == ["w3"]
    assert await world.sight() == before
    assert await world.settle(claim) is State.SUCCEEDED


# ── tasks ─────────────────────────────────────────────────────────────────────


async def test_tasks_are_found_by_name_and_by_alias(world: World) -> None:
    """S33: each once, by name; unknown names are left out."""
    await world.register("w1", SORT, MAIL)
    mail, sort = TaskView(MAIL, world.now), TaskView(SORT, world.now)
    assert await tasks(world) == [mail, sort]
    assert await tasks(world, "mail.sort", "mail.send") == [mail, sort]
    assert await tasks(world, "post") == [mail]
    assert await tasks(world, "send", "post", "mail.send") == [mail]
    assert await tasks(world, "mail", "SEND", "never") == []


async def test_a_task_is_seen_as_long_as_a_worker_that_knows_it_lives(world: World) -> None:
    """S33: by every heartbeat of such a worker, and by no other."""
    await world.register("w1", MAIL)
    first = world.now
    world.advance(5)
    await world.register("w2", SORT)
    await beat(world, "w2")
    assert await tasks(world) == [TaskView(MAIL, first), TaskView(SORT, world.now)]
    world.advance(5)
    await beat(world, "w1")
    assert await tasks(world, "send") == [TaskView(MAIL, world.now)]


async def test_a_task_stays_published_after_its_worker(world: World) -> None:
    """S33: since when nobody knows it any more is what decides over its jobs."""
    await world.register("w1", MAIL)
    await world.register("w2", SORT)
    seen = [TaskView(MAIL, world.now), TaskView(SORT, world.now)]
    world.advance(100)
    await leave(world, "w1")
    await clean(world, SECOND)
    assert await tasks(world) == seen


async def test_a_worker_that_no_longer_names_a_task_does_not_keep_it_seen(world: World) -> None:
    """S33: after it registered again, its heartbeats speak for its new tasks only."""
    await world.register("w1", MAIL, SORT)
    first = world.now
    world.advance(1)
    await world.register("w1", SORT)
    world.advance(1)
    await beat(world)
    assert await tasks(world) == [TaskView(MAIL, first), TaskView(SORT, world.now)]


async def test_the_newest_card_of_a_task_is_the_published_one(world: World) -> None:
    """S33: old aliases find it no more."""
    await world.register("w1", MAIL)
    newer = TaskRecord(name="mail.send", queue="mail", version=4, aliases=("dispatch",))
    await world.register("w2", newer)
    assert await tasks(world) == [TaskView(newer, world.now)]
    assert await tasks(world, "post") == []
    assert await tasks(world, "dispatch") == [TaskView(newer, world.now)]


async def test_a_worker_with_an_older_version_does_not_hide_the_newer_one(world: World) -> None:
    """S33: whoever speaks last, the newest version that a live worker knows is the published one."""
    newer = msgspec.structs.replace(MAIL, version=4, schema=b'{"to":2}')
    await world.register("w1", MAIL)
    await world.register("w2", newer)
    for _ in range(3):
        world.advance(4)
        await beat(world, "w2")
        world.advance(1)
        await beat(world, "w1")
        assert await tasks(world, "send") == [TaskView(newer, world.now)]
    assert await every_version(world, "send") == [(3, world.now), (4, world.now - SECOND)]


async def test_a_version_that_no_live_worker_knows_any_more_speaks_no_longer(world: World) -> None:
    """S33: after a roll-back the older one is published again; when the newer was seen last stays known."""
    newer = msgspec.structs.replace(MAIL, version=4)
    await world.register("w1", MAIL)
    await world.register("w2", newer)
    last = world.now
    await leave(world, "w2")
    world.advance(LIVE_WITHIN / SECOND)
    await beat(world, "w1")
    assert await tasks(world) == [TaskView(newer, world.now)]
    world.advance(INSTANT)
    await beat(world, "w1")
    assert await tasks(world) == [TaskView(MAIL, world.now)]
    assert await every_version(world) == [(3, world.now), (4, last)]


async def test_each_version_is_found_by_its_own_aliases(world: World) -> None:
    """S33: a job under the old name is known to those who still have that alias."""
    await world.register("w1", MAIL)
    newer = TaskRecord(name="mail.send", queue="mail", version=4, aliases=("dispatch",))
    await world.register("w2", newer)
    assert await every_version(world, "post") == [(3, world.now)]
    assert await every_version(world, "dispatch") == [(4, world.now)]


# ── pulse ─────────────────────────────────────────────────────────────────────


async def test_without_workers_there_is_no_pulse(world: World) -> None:
    """S38: but the store says what time it is."""
    world.advance(5)
    assert await status(world) == StoreStatus(world.now, None, None)


@pytest.mark.parametrize(("silence", "is_gap"), [(1, False), (6, False), (6 + INSTANT, True), (60, True)])
@pytest.mark.parametrize("is_new", [False, True])
async def test_the_pulse_resumes_after_all_were_silent(
    world: World, silence: float, is_gap: bool, is_new: bool
) -> None:
    """S38: longer than the renew interval and two seconds; a worker that comes in counts as well."""
    await world.register()
    first = world.now
    assert await status(world) == StoreStatus(first, first, first)
    now = world.advance(silence)
    if is_new:
        await world.register("w2")
    else:
        await beat(world)
    assert await status(world) == StoreStatus(now, now, now if is_gap else first)
    later = world.advance(1)
    assert await status(world) == StoreStatus(later, now, now if is_gap else first)


async def test_one_worker_that_beats_keeps_the_pulse_for_all(world: World) -> None:
    """S38: another's silence, return or leaving is no outage."""
    await world.register("w1")
    await world.register("w2")
    first = world.now
    for _ in range(4):
        world.advance(5)
        await beat(world, "w1")
    await beat(world, "w2")
    await leave(world, "w1")
    assert await status(world) == StoreStatus(world.now, world.now, first)


async def test_the_interval_of_the_heartbeat_decides_what_is_a_silence(world: World) -> None:
    """S38: five seconds are long for a worker that renews every second."""
    await world.register(renew_every=SECOND)
    now = world.advance(5)
    await beat(world, renew_every=SECOND)
    assert (await status(world)).resumed_at == now
    world.advance(5)
    await beat(world, renew_every=3 * SECOND)
    assert (await status(world)).resumed_at == now
