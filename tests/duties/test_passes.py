"""Each duty is one pass that says when to come back; any number of leaders does no harm (S38, S61)."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import Any

import pytest

from fairlane.app.settings import settings_of
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties import clean, expire, follow, promote, prune
from fairlane.duties.duties import Duties
from fairlane.duties.leader_election import LeaderElection
from fairlane.duties.reclaim import EVERY, QUIET, Reclaim
from fairlane.duties.stuck import TakeStuck
from fairlane.model.instants import DAY, HOUR, SECOND, Instant, Micros
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.retention import Retention
from fairlane.model.scope import Scope
from fairlane.runtime.clock import MachineClock
from fairlane.runtime.outage import StoreOutage
from fairlane.store.contract.claims import MAX_RECLAIMED
from fairlane.store.contract.registry import LeaveRequest, StoreStatus, WorkersRequest
from fairlane.store.contract.request import Request
from tests.contract.world import HANDED_BACK, World
from tests.worker.world import until, until_async

RENEW = 4 * SECOND
LEASE = 12 * SECOND
IDLE = LEASE - QUIET


class Beside:
    """A process's local clock: it runs with the store's unless a test says otherwise."""

    def __init__(self, world: World) -> None:
        """Begin with the store's time."""
        self._world = world
        self.behind: Micros = 0

    def wall(self) -> Instant:
        """Say what time it is."""
        return self._world.now

    def elapsed(self) -> Micros:
        """Count on."""
        return self._world.now - self.behind

    async def wait(self, duration: Micros) -> None:
        """Never wait."""


class FrozenStore:
    """A store that freezes for a minute after it has told its status."""

    def __init__(self, world: World) -> None:
        """Be the world's store otherwise."""
        self._world = world
        self.claims = world.store.claims
        self.registry = self

    async def status(self, request: Request) -> StoreStatus:
        """Tell it as it was."""
        told = await self._world.store.registry.status(request)
        self._world.advance(60)
        return told


def reclaim_of(world: World) -> tuple[Reclaim, Beside]:
    """Return a reclaiming duty, and the clock it looks at."""
    clock = Beside(world)
    return Reclaim(clock, WorkerSettings(lease=LEASE, renew_every=RENEW), Retention()), clock


# ── reclaim ──────────────────────────────────────────────────────────────────


async def _alive(world: World, seconds: int, worker: str = "w2") -> None:
    """Let time pass while a worker sends heartbeats."""
    for _ in range(seconds // 4):
        world.advance(4)
        await world.beat(worker)


async def test_a_dead_worker_s_jobs_are_taken_back_and_told_of(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Another worker lives, so the store was not away: the job is ready again within 18 seconds."""
    duty, _ = reclaim_of(world)
    await world.register("w1")
    await world.register("w2")
    await _alive(world, 8)
    job = await world.enqueue()
    await world.claim_one(worker="w1")
    await _alive(world, 12)
    assert await duty(world.store) == EVERY == SECOND
    assert (await world.get(job.id)).state is State.READY
    (told,) = [one.__dict__ for one in caplog.records if one.__dict__.get("event") == "job_lost"]
    assert (told["tenant"], told["job"], told["worker"]) == ("acme", str(job.id), "w1")


async def test_each_worker_that_has_lost_claims_is_an_event(world: World) -> None:
    """With how many, and of which queues; one for each pass and worker."""
    duty, _ = reclaim_of(world)
    await world.register("w9")
    await _alive(world, 8, "w9")
    for queue, worker in (("default", "w1"), ("bulk", "w1"), ("bulk", "w1"), ("default", "w2")):
        await world.enqueue(queue=queue)
        await world.claim_one(queue, worker=worker)
    await _alive(world, 12, "w9")
    await duty(world.store)
    await duty(world.store)
    told = {one.subject: (one.kind, one.tenant, one.count) for one in await world.appended("events")}
    assert told == {"w1": ("worker_lost", None, 3), "w2": ("worker_lost", None, 1)}
    bodies = {one.subject: one.body for one in await world.appended("events")}
    assert bodies == {"w1": b'{"queues":["bulk","default"]}', "w2": b'{"queues":["default"]}'}


@pytest.mark.parametrize("is_lost", [True, False])
async def test_jobs_that_are_taken_back_keep_as_many_attempts_as_configured(
    world: World, *, is_lost: bool
) -> None:
    """S24: `retention.attempts_per_job` of the process that leads."""
    settings, retention = WorkerSettings(lease=LEASE, renew_every=RENEW), Retention(attempts=1)
    duty_of = Reclaim if is_lost else TakeStuck
    duty = duty_of(Beside(world), settings, retention)
    world.attempts_kept = 1
    await world.register("w2")
    await _alive(world, 8)
    job = await world.enqueue(timeout=SECOND, on_stuck="requeue")
    await world.settle(await world.claim_one(worker="w1"), HANDED_BACK, worker="w1")
    await world.claim_one(worker="w1", lease=LEASE if is_lost else 60 * SECOND)
    await _alive(world, 12)
    await duty(world.store)
    attempts = (await world.get(job.id)).attempts
    assert [(one.number, one.outcome) for one in attempts] == [(2, "lost" if is_lost else "failed")]


async def test_a_living_claim_is_left_alone(world: World) -> None:
    """Its lease has not ended."""
    duty, _ = reclaim_of(world)
    await world.register("w2")
    await _alive(world, 8)
    job = await world.enqueue()
    await world.claim_one(worker="w1")
    await _alive(world, 8)
    await duty(world.store)
    assert (await world.get(job.id)).state is State.RUNNING


async def test_reclaiming_rests_while_and_after_all_workers_were_silent(world: World) -> None:
    """S38: the store was away, not they; whoever reports back in time keeps its job."""
    duty, _ = reclaim_of(world)
    await world.register("w1")
    await _alive(world, 8, "w1")
    job = await world.enqueue()
    claim = await world.claim_one(worker="w1")
    world.advance(60)
    assert await duty(world.store) == EVERY
    assert (await world.get(job.id)).state is State.RUNNING
    await world.beat("w1")
    world.advance(4)
    assert await duty(world.store) == EVERY
    assert (await world.get(job.id)).state is State.RUNNING
    assert (await world.renew(claim)).stale == ()
    world.advance(1)
    await world.beat("w1")
    await duty(world.store)
    assert (await world.get(job.id)).state is State.RUNNING


async def test_after_the_rest_what_nobody_renewed_is_taken_back(world: World) -> None:
    """One renew interval and a second after the first heartbeat back."""
    duty, _ = reclaim_of(world)
    await world.register("w1")
    job = await world.enqueue()
    await world.claim_one(worker="w1")
    world.advance(60)
    await world.register("w2")
    assert await duty(world.store) > 0
    assert (await world.get(job.id)).state is State.RUNNING
    world.advance(4)
    await world.beat("w2")
    world.advance(1)
    await duty(world.store)
    assert (await world.get(job.id)).state is State.READY


@pytest.mark.parametrize("jump", [6, -6])
async def test_reclaiming_rests_after_the_store_s_clock_has_jumped(
    world: World, caplog: pytest.LogCaptureFixture, jump: int
) -> None:
    """By more than five seconds against the own monotonic clock."""
    duty, clock = reclaim_of(world)
    await world.register("w2")
    await _alive(world, 8)
    job = await world.enqueue()
    await world.claim_one(worker="w1", lease=SECOND)
    await duty(world.store)
    clock.behind = jump * SECOND
    world.advance(3)
    await world.beat("w2")
    assert await duty(world.store) == EVERY
    assert (await world.get(job.id)).state is State.RUNNING
    assert [one.__dict__["cause"] for one in caplog.records if "cause" in one.__dict__] == ["jump"]
    await _alive(world, 4)
    world.advance(1)
    await duty(world.store)
    assert (await world.get(job.id)).state is State.READY


async def test_a_store_that_stands_still_between_pulse_and_reclaim_loses_nobody_s_lease(world: World) -> None:
    """S38: a worker that could not renew meanwhile keeps its job, and the next pass sees the silence."""
    duty, _ = reclaim_of(world)
    await world.register("w1")
    await _alive(world, 8, "w1")
    job = await world.enqueue()
    await world.claim_one(worker="w1")
    await duty(FrozenStore(world))  # type: ignore[arg-type]
    assert (await world.get(job.id)).state is State.RUNNING
    assert await duty(world.store) == EVERY
    assert (await world.get(job.id)).state is State.RUNNING


async def test_a_pass_is_bounded_and_comes_back_at_once_for_the_rest(world: World) -> None:
    """500 expired claims at a time."""
    duty, _ = reclaim_of(world)
    await world.register("w2")
    await _alive(world, 8)
    await world.enqueue_many(MAX_RECLAIMED + 1)
    await world.claim(MAX_RECLAIMED + 1, worker="w1", lease=SECOND)
    await _alive(world, 4)
    assert [await duty(world.store) for _ in range(3)] == [0, EVERY, IDLE]


async def test_while_nobody_holds_anything_reclaiming_looks_rarely(world: World) -> None:
    """A claim made right after the look is met before it can lapse, and then every other second."""
    duty, _ = reclaim_of(world)
    await world.register("w2")
    await _alive(world, 8)
    job = await world.enqueue()
    assert await duty(world.store) == IDLE
    await world.claim_one(worker="w1", lease=LEASE)
    await _alive(world, 8)
    assert await duty(world.store) == QUIET
    await _alive(world, 4)
    assert await duty(world.store) == EVERY
    assert (await world.get(job.id)).state is State.READY


async def test_two_leaders_at_once_do_no_harm(world: World) -> None:
    """Correctness never depends on there being one: each job is taken back once."""
    first, second = reclaim_of(world)[0], reclaim_of(world)[0]
    await world.register("w2")
    await _alive(world, 8)
    jobs = await world.enqueue_many(20)
    await world.claim(20, worker="w1", lease=SECOND)
    await _alive(world, 4)
    await asyncio.gather(*(duty(world.store) for duty in (first, second, first, second)))
    for job in jobs:
        record = await world.get(job.id)
        assert (record.state, record.crashes, len(record.attempts)) == (State.READY, 1, 1)


# ── the others ───────────────────────────────────────────────────────────────


async def test_promote_makes_due_jobs_ready_and_looks_closer_while_any_are_delayed(world: World) -> None:
    """Seldom where there is nothing to do."""
    assert await promote.promote(world.store) == promote.EVERY
    job = await world.enqueue(delay=10 * SECOND)
    assert await promote.promote(world.store) == promote.SOON
    world.advance(10)
    await promote.promote(world.store)
    assert (await world.get(job.id)).state is State.READY
    await world.enqueue_many(promote.AT_ONCE + 10, delay=SECOND)
    world.advance(1)
    passes = [await promote.promote(world.store) for _ in range(3)]
    assert passes == [0, promote.SOON, promote.EVERY]


async def test_expire_cancels_what_may_no_longer_start(world: World) -> None:
    """Without a dead letter, and in bounded passes."""
    job = await world.enqueue(expires_in=SECOND)
    assert await expire.expire(world.store) == expire.EVERY
    world.advance(2)
    await expire.expire(world.store)
    assert (await world.get(job.id)).state is State.CANCELLED
    await world.enqueue_many(1_000, expires_in=SECOND)
    await world.enqueue_many(1, expires_in=SECOND)
    world.advance(2)
    assert await expire.expire(world.store) == 0


async def test_prune_removes_what_was_kept_long_enough(world: World) -> None:
    """By the retention that the application declares."""
    duty = prune.Prune(Retention(succeeded=DAY))
    await world.enqueue()
    job = await world.run()
    assert await duty(world.store) == prune.EVERY
    assert await world.is_known(job.id)
    world.advance(DAY / SECOND + 1)
    await duty(world.store)
    assert not await world.is_known(job.id)


async def test_prune_logs_what_it_removed_by_state(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """S103: nothing if nothing was removed."""
    caplog.set_level("INFO", "fairlane.duties")
    duty = prune.Prune(Retention(cancelled=HOUR))
    await duty(world.store)
    assert caplog.messages == []
    await world.bring_to(State.SUCCEEDED)
    for _ in range(2):
        await world.bring_to(State.CANCELLED)
    world.advance(7 * DAY / SECOND)
    await duty(world.store)
    assert caplog.messages == ["removed after its retention: 2 cancelled, 1 succeeded"]
    assert caplog.records[0].event == "pruned"  # type: ignore[attr-defined]


async def test_prune_reads_the_whole_history_once_a_day(world: World) -> None:
    """S103: a job that a clock put back among what was read already is found then, and not before."""
    duty = prune.Prune(Retention(succeeded=DAY))
    world.advance(3 * DAY / SECOND)
    await duty(world.store)
    world.advance(-2 * DAY / SECOND)
    await world.enqueue()
    job = await world.run()
    world.advance(2 * DAY / SECOND + 1)
    await duty(world.store)
    assert await world.is_known(job.id)
    for _ in range(2):
        world.advance(DAY / SECOND)
        await duty(world.store)
    assert not await world.is_known(job.id)


async def test_follow_notes_how_the_job_in_place_of_a_dead_one_has_ended(world: World) -> None:
    """And tells of a success."""
    assert await follow.follow(world.store) == follow.QUIET
    dead = await world.bring_to(State.DEAD)
    job = await world.rerun(dead.job)
    await world.run()
    assert await follow.follow(world.store) == follow.EVERY
    letter = await world.letter(dead.job.id)
    assert letter is not None
    assert letter.review.new_run is not None
    assert (letter.review.new_run.job, letter.review.new_run.state) == (job.id, State.SUCCEEDED)
    assert "job_dlq_reprocess_success" in [one.kind for one in await world.appended("events")]


async def test_clean_forgets_workers_that_were_silent_for_an_hour(world: World) -> None:
    """Not sooner: somebody may want to see which worker died."""
    await world.register("w1")
    world.advance(HOUR / SECOND - 1)
    assert await clean.clean(world.store) == clean.EVERY
    request = WorkersRequest(scope=Scope.all())
    assert len(await world.store.registry.workers(request)) == 1
    world.advance(2)
    await clean.clean(world.store)
    assert await world.store.registry.workers(request) == ()


# ── the lead ─────────────────────────────────────────────────────────────────


async def test_one_process_leads_and_another_follows_when_it_stops(world: World) -> None:
    """By its lease running out, or at once when it leaves."""
    first, second = (LeaderElection(name, 12 * SECOND, 4 * SECOND) for name in ("w1", "w2"))
    await first(world.store)
    await second(world.store)
    assert (first.is_leader, second.is_leader) == (True, False)
    world.advance(11)
    await first(world.store)
    world.advance(2)
    await second(world.store)
    assert (first.is_leader, second.is_leader) == (True, False)
    await world.store.registry.leave(LeaveRequest(scope=Scope.all(), worker="w1"))
    await second(world.store)
    await first(world.store)
    assert (first.is_leader, second.is_leader) == (False, True)


async def test_the_lead_of_one_who_was_killed_ends_with_the_leases_of_its_jobs(world: World) -> None:
    """However short these are: who takes its jobs back is there when they may be taken back."""
    settings = WorkerSettings(lease=2 * SECOND, renew_every=SECOND // 2)
    killed, other = (_duties(world, name, settings)._election for name in ("a", "b"))
    assert await killed(world.store) == SECOND // 2
    await other(world.store)
    assert (killed.is_leader, other.is_leader) == (True, False)
    world.advance(2.1)
    await other(world.store)
    assert other.is_leader


async def test_all_duties_are_done_by_whoever_leads_and_by_nobody_else(world: World) -> None:
    """The leader promotes, expires and reclaims; the follower asks for the lead and does nothing."""
    settings = WorkerSettings(renew_every=RENEW)
    await world.register("w9")
    await _alive(world, 8, "w9")
    lost = await world.enqueue()
    await world.claim_one(worker="w1", lease=SECOND)
    due, late = await world.enqueue(delay=SECOND), await world.enqueue(expires_in=SECOND)
    world.advance(3)
    calls: list[str] = []
    made = [_duties(world, name, settings) for name in ("a", "b")]
    for one in made:
        one._duties = (*one._duties, _note(calls, one))
    tasks = [asyncio.ensure_future(one.run()) for one in made]
    await until(lambda: len(calls) >= 1)
    wanted = [State.READY, State.CANCELLED, State.READY]

    async def states() -> list[State]:
        return [(await world.get(job.id)).state for job in (due, late, lost)]

    await until_async(states, wanted)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    (leader,) = set(calls)
    assert (await world.get(lost.id)).crashes == 1
    await next(one for one in made if one._name == leader).leave()
    follower = LeaderElection("a" if leader == "b" else "b", 12 * SECOND, 4 * SECOND)
    await follower(world.store)
    assert follower.is_leader


def _duties(world: World, name: str, settings: WorkerSettings) -> Duties:
    outage = StoreOutage(getLogger("fairlane.duties"), name, lambda: None)
    return Duties(name, lambda: world.store, MachineClock(), settings_of(), settings, outage)


async def test_a_fault_in_one_duty_stops_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with where it happened, and tried again; jobs and other duties go on."""
    due = await world.enqueue(delay=SECOND)
    world.advance(2)

    async def faulty(store: object) -> Micros:
        message = "not what it seemed"
        raise RuntimeError(message)

    duties = _duties(world, "a", WorkerSettings())
    duties._duties = (faulty, *duties._duties)
    running = asyncio.ensure_future(duties.run())

    async def state() -> State:
        return (await world.get(due.id)).state

    await until_async(state, State.READY)
    await until(lambda: "not what it seemed" in caplog.text)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _note(calls: list[str], duties: Duties) -> Any:
    async def note(store: object) -> Micros:
        calls.append(duties._name)
        return SECOND

    return note
