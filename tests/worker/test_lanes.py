"""Lanes: slots, weights, strict order with minimum shares, headroom; claims in batches, settled with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from fairlane import ConfigError, Fairlane, Gate, Lane, Limits, Queue, Rate, Share, State
from fairlane.model.policy.overrides import Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import ReadRequest
from fairlane.worker.lane_state import LaneState
from fairlane.worker.startup.lanes import choose_lanes
from tests.seconds import counted
from tests.worker.world import World, until


def test_without_lanes_there_is_one_of_sixteen_slots_over_all_queues() -> None:
    """S47: the declared queues, and those that tasks name."""
    app = Fairlane(queues=[Queue("mail")])

    @app.task(name="fax", queue="fax")
    async def fax() -> None: ...

    (lane,) = choose_lanes(app, None)
    assert (lane.name, lane.slots, lane.queues) == ("main", 16, ("default", "mail", "fax"))
    assert lane.headroom_slots == 2


def test_lanes_are_chosen_by_name_or_given() -> None:
    """A worker may serve some of the declared lanes; one that is not declared is a mistake."""
    fast, slow = Lane("fast", 2, ["a"]), Lane("slow", 2, ["b"])
    app = Fairlane(lanes=[fast, slow])
    other = Lane("other", 1, ["c"])
    assert choose_lanes(app, None) == [fast, slow]
    assert choose_lanes(app, ["slow", other]) == [slow, other]
    with pytest.raises(ConfigError, match=r"no lane fat. Allowed: fast, slow"):
        choose_lanes(app, ["fat"])


@pytest.mark.parametrize("prefetch", [0, 5, None])
@pytest.mark.parametrize("calls", [1, 2])
async def test_a_lane_never_runs_more_than_its_slots(world: World, calls: int, prefetch: int | None) -> None:
    """S47: whatever it has claimed; one slot may be taken for long."""
    world.concurrent_calls = calls
    app = world.app(lanes=[Lane("main", 3, ["default"], headroom=0, prefetch=prefetch)])
    now, limit, ended = 0, 0, 0
    full, release = asyncio.Event(), asyncio.Event()

    @app.task(name="count")
    async def count(*, is_long: bool) -> None:
        nonlocal now, limit, ended
        now += 1
        limit = max(limit, now)
        if now == 3:
            full.set()
        await full.wait()  # every slot has a job in it, however the calls of the lane are timed
        await (release.wait() if is_long else asyncio.sleep(0))
        now, ended = now - 1, ended + 1
        if ended == 20:
            release.set()

    await app.aenqueue_many(count.using(tenant="acme").bind(is_long=not number) for number in range(50))
    worker = await world.burst(app)
    assert (worker.settled, limit) == (50, 3)
    requests = [*world.requests("claim"), *(one.claim for one in world.requests("settle") if one.claim)]
    most = max(request.total for request in requests)
    if prefetch is not None:
        assert most <= 3 + prefetch
        assert max(request.ahead for request in requests) <= prefetch


async def test_jobs_are_claimed_in_batches_and_settled_in_the_same_round_trip(world: World) -> None:
    """S35: a hundred short jobs with ten slots take about ten calls, each settling ten and claiming ten."""
    app = world.app(lanes=[Lane("main", 10, ["default"], headroom=0)])

    @app.task(name="noop")
    async def noop() -> None: ...

    await app.aenqueue_many(noop.using(tenant="acme").bind() for _ in range(100))
    await world.burst(app, duties=False)
    settles = world.requests("settle")
    assert sum(len(one.settlements) for one in settles) == 100
    assert len(settles) <= 12, [len(one.settlements) for one in settles]
    assert all(one.claim is not None for one in settles)
    assert len(world.requests("claim")) <= 4


@pytest.mark.parametrize(
    ("lane", "under_way"),
    [
        (Lane("main", 4, ["default"], headroom=0), 2),
        (Lane("main", 4, ["default", "other"], headroom=0), 1),
        (Lane("main", 4, ["default"]), 2),
    ],
)
async def test_while_a_server_settles_half_of_the_slots_the_other_half_works(
    world: World, lane: Lane, under_way: int
) -> None:
    """A second call goes out before the first is answered, but not if it would have to know the answer."""
    world.concurrent_calls = 2
    app = world.app(lanes=[lane])
    releases = [asyncio.Event() for _ in range(10)]
    began: list[int] = []

    @app.task(name="wait")
    async def wait(number: int) -> None:
        began.append(number)
        await releases[number].wait()

    bound = (wait.using(tenant=f"t{number}").bind(number) for number in range(10))
    await app.aenqueue_many(bound)
    async with world.working(app, duties=False) as worker:
        await until(lambda: len(began) == 4)
        world.held.add("settle")
        for number in (0, 1):
            releases[number].set()
        await until(lambda: len(world.requests("settle")) == 1)
        for number in (2, 3):
            releases[number].set()
        await until(lambda: worker._parts is not None and len(worker._parts.attempts.running()) == 0)
        await until(lambda: len(world.requests("settle")) == under_way)
        beats = len(world.requests("heartbeat"))
        await until(lambda: len(world.requests("heartbeat")) >= beats + 2)
        settles = world.requests("settle")
        assert [len(one.settlements) for one in settles] == [2] * under_way
        assert len(began) == 4, "nothing can be claimed without an answer"
        world.held.clear()
        for release in releases:
            release.set()
        await until(lambda: worker.settled == 10)
    assert sorted(began) == list(range(10))


async def test_of_long_jobs_only_free_slots_are_claimed_for(world: World) -> None:
    """S68: nothing is claimed ahead before it is known how long jobs run."""
    app = world.app(lanes=[Lane("main", 4, ["default"], headroom=0)])
    release = asyncio.Event()
    began: list[int] = []

    @app.task(name="slow")
    async def slow(number: int) -> None:
        began.append(number)
        await release.wait()

    await app.aenqueue_many(slow.using(tenant="acme").bind(number) for number in range(10))
    async with world.working(app) as worker:
        await until(lambda: len(began) == 4)
        counts = await app.jobs.acount()
        assert (counts[State.RUNNING], counts[State.READY]) == (4, 6)
        release.set()
        await until(lambda: worker.settled == 10)


async def test_weights_share_a_lane_between_its_queues(world: World) -> None:
    """S49: counted in starts, over the backlog of both, also of what was claimed ahead (S68)."""
    app = world.app(lanes=[Lane("main", 4, {"high": 3, "low": 1}, headroom=0)])
    order = await _order(world, app, {"high": 90, "low": 90}, 4)
    assert Counter(order[:80]) == {"high": 60, "low": 20}


async def test_a_strict_lane_keeps_minimum_shares(world: World) -> None:
    """S49: the listed order, but a tenth of the starts goes to the last."""
    queues = {"first": Share(), "last": Share(min_share=0.1)}
    app = world.app(lanes=[Lane("main", 5, queues, order="strict", headroom=0)])
    order = await _order(world, app, {"first": 150, "last": 50}, 5)
    assert Counter(order[:100]) == {"first": 90, "last": 10}


async def _order(world: World, app: Fairlane, jobs: dict[str, int], slots: int) -> list[str]:
    order: list[str] = []
    for queue, number in jobs.items():

        @app.task(name=f"note.{queue}", queue=queue)
        async def note(queue: str) -> None:
            order.append(queue)

        await app.aenqueue_many(note.using(tenant="acme").bind(queue) for _ in range(number))
    worker = await world.burst(app)
    assert worker.settled == sum(jobs.values())
    return order


async def test_headroom_keeps_a_slot_for_tenants_with_nothing_running(world: World) -> None:
    """S48: the noisy tenant fills all slots but one; the quiet one starts at once."""
    app = world.app(lanes=[Lane("main", 4, ["default"], headroom=1)])
    release = asyncio.Event()
    began: list[str] = []

    @app.task(name="slow")
    async def slow(who: str) -> None:
        began.append(who)
        await release.wait()

    await app.aenqueue_many(slow.using(tenant="noisy").bind("noisy") for _ in range(20))
    async with world.working(app):
        await until(lambda: len(began) == 3)
        await slow.using(tenant="quiet").aenqueue("quiet")
        await until(lambda: len(began) == 4)
        assert began == ["noisy"] * 3 + ["quiet"]
        release.set()


async def test_the_slots_of_one_lane_are_not_taken_by_another(world: World) -> None:
    """A lane full of long jobs does not touch the other."""
    app = world.app(lanes=[Lane("slow", 1, ["slow"]), Lane("fast", 1, ["fast"])])
    release = asyncio.Event()

    @app.task(name="slow", queue="slow")
    async def slow() -> None:
        await release.wait()

    @app.task(name="fast", queue="fast")
    async def fast() -> None: ...

    blocked = [await slow.using(tenant="acme").aenqueue() for _ in range(3)]
    async with world.working(app):
        for _ in range(3):
            await world.ended(await fast.using(tenant="acme").aenqueue())
        assert not any([(await job.arefresh()).is_finished for job in blocked])
        release.set()
        for job in blocked:
            await world.ended(job)


async def test_an_idle_worker_picks_up_a_job_when_it_is_due(world: World, app: Fairlane) -> None:
    """It knows the time of the next job from its last claim, and needs no duty for it."""
    ran = asyncio.Event()

    @app.task(name="soon")
    async def soon() -> None:
        ran.set()

    async with world.working(app, duties=False):
        job = await soon.using(tenant="acme", delay=0.5).aenqueue()
        async with counted() as seconds:
            await asyncio.wait_for(ran.wait(), 10)
        ended = await world.ended(job)
    assert ended.attempts[-1].started_at >= ended.run_at
    assert seconds() < 0.8


async def test_a_store_whose_clock_was_moved_back_is_not_asked_without_end(
    world: World, app: Fairlane
) -> None:
    """The worker compares the clocks again and waits as long as the store says."""

    @app.task(name="soon")
    async def soon() -> None: ...

    async with world.working(app, duties=False):
        await soon.using(tenant="acme", delay=0.5).aenqueue()
        await until(lambda: any(one.queues for one in world.requests("wait")))
        world.ahead -= 3_600_000_000
        before = len(world.requests("claim"))
        renewals = len(world.requests("heartbeat"))
        await until(lambda: len(world.requests("heartbeat")) >= renewals + 8)
        assert len(world.requests("claim")) - before < 30


async def test_a_full_lane_does_not_spin_when_another_job_falls_due(world: World) -> None:
    """It has no room for it, and waits until it has."""
    app = world.app(lanes=[Lane("main", 1, ["default"])])
    release = asyncio.Event()

    @app.task(name="slow")
    async def slow() -> None:
        await release.wait()

    @app.task(name="soon")
    async def soon() -> None: ...

    async with world.working(app, duties=False) as worker:
        later = await soon.using(tenant="acme", delay=0.3).aenqueue()
        await until(lambda: worker._parts is not None and worker._parts.lanes[0].due_at is not None)
        await slow.using(tenant="acme").aenqueue()
        await until(lambda: worker.running == 1)
        assert worker._parts is not None
        passes, real = list[int](), worker._parts.shutdown.end_if_done

        def counted(lane: LaneState) -> bool:
            passes.append(1)
            return real(lane)

        worker._parts.shutdown.end_if_done = counted  # type: ignore[method-assign]
        beats = len(world.requests("heartbeat"))
        await until(lambda: len(world.requests("heartbeat")) >= beats + 4)
        assert len(passes) < 20
        release.set()
        await world.ended(later)


# ── what is declared ─────────────────────────────────────────────────────────


async def test_a_worker_declares_queues_tasks_and_gates_and_logs_what_changed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """S54: the newest start wins."""

    def declared(limit: int) -> Fairlane:
        app = world.app(queues=[Queue("mail", limits=Limits(running=limit))], gates=[Gate("fax", 3)])

        @app.task(name="send", queue="mail", gate="fax", rate=Rate(5, "second"))
        async def send() -> None: ...

        return app

    await world.burst(declared(4))
    assert "policy_changed" not in [record.__dict__.get("event") for record in caplog.records]
    app = declared(8)
    await world.burst(app)
    changes = [record for record in caplog.records if record.__dict__.get("event") == "policy_changed"]
    assert [record.__dict__["subject"] for record in changes] == ["queue mail"]
    subjects = (
        Subject(SubjectKind.QUEUE, "mail"),
        Subject(SubjectKind.TASK, "send"),
        Subject(SubjectKind.GATE, "fax"),
    )
    views = await app.client.store.policies.read(ReadRequest(scope=Scope.all(), subjects=subjects))
    queue, task, gate = (views[subject].declared for subject in subjects)
    assert queue.limits.running == 8  # type: ignore[union-attr]
    assert (task.gate, task.rate) == ("fax", Rate(5, "second"))  # type: ignore[union-attr]
    assert gate.limit == 3  # type: ignore[union-attr]


async def test_starts_are_spaced_by_a_declared_rate(world: World, app: Fairlane) -> None:
    """The worker waits as long as the store says, and no longer."""

    @app.task(name="paced", rate=Rate(20, "second"))
    async def paced() -> None: ...

    jobs = await app.aenqueue_many(paced.using(tenant="acme").bind() for _ in range(10))
    async with world.working(app), counted() as seconds:
        ended = [await world.ended(job) for job in jobs]
    starts = sorted(job.attempts[0].started_at for job in ended)
    assert min(after - before for before, after in pairwise(starts)) >= timedelta(milliseconds=50)
    assert seconds() < 3
