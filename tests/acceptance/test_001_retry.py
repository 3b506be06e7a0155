"""Description B, retries and dead letters: delays, counts, classes, history, retention."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from fairlane import Backoff, ErrorClass, Fail, Fairlane, Job, Retry, Skip, State
from fairlane.model.instants import DAY, HOUR, SECOND, Micros
from fairlane.store.contract.dead import DeadGetRequest, DeadRequest
from tests.acceptance.presets import B_RETRY, Preset, processor, work
from tests.acceptance.working import burst
from tests.acceptance.world import ALL, World

BOOM = RuntimeError("boom")


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description B, in force."""
    return await world.open(processor(world.url))


class OffClock:
    """A machine's clock that goes wrong by so much."""

    def __init__(self, by: Micros, at: Micros) -> None:
        """Begin there."""
        self.now = at + by

    def wall(self) -> Micros:
        """Say the wrong time."""
        return self.now

    def elapsed(self) -> Micros:
        """Count on."""
        return self.now

    async def wait(self, duration: Micros) -> None:
        """Pass at once."""
        self.now += duration


async def died(world: World, preset: Preset, task: str = "usual") -> Job[Any]:
    """Enqueue a job and let it die at once."""
    job = await preset[task].using(tenant="acme").aenqueue()
    assert await world.fail(Fail("no"), preset[task].queue) is State.DEAD
    return job


@pytest.mark.parametrize(("base", "expected"), [(1, [1, 2, 4, 8, 16]), (2, [2, 4, 8, 16, 32])])
def test_001_cp3_1_delays_double_by_attempt(base: float, expected: list[float]) -> None:
    """From the base on; the other reading of the exponent is a base of two."""
    backoff = Backoff.exponential(base, cap=3_600, jitter=0)
    assert [backoff.delay(n, 0.5).total_seconds() for n in range(1, 6)] == expected


def test_001_cp3_1_delays_stay_within_their_bounds() -> None:
    """Whatever the attempt and the draw."""
    for failures in (*range(1, 40), 1_000):
        for draw in (0.0, 0.5, 0.999999):
            assert timedelta(seconds=0.1) <= B_RETRY.delay(failures, draw) <= timedelta(seconds=3_600)


@pytest.mark.parametrize("draw", [0.0, 0.25, 0.5, 0.999])
async def test_001_cp3_2_a_failed_job_is_due_at_exactly_the_computed_time(
    world: World, preset: Preset, draw: float
) -> None:
    """Counted from the store's own now."""
    job = await preset["usual"].aenqueue()
    world.advance(7)
    await world.fail(BOOM, draw=draw)
    assert (await world.record(job)).run_at == world.now + B_RETRY.micros(1, draw)


@pytest.mark.parametrize("attempts", [3, 4])
async def test_001_cp3_3_a_job_is_dead_after_the_declared_number_of_runs(world: World, attempts: int) -> None:
    """Both readings of "three retries", as three and as four attempts; then never again."""
    preset = await world.open(processor(world.url, attempts=attempts))
    job = await preset["usual"].aenqueue()
    waits = await world.fail_until_dead(BOOM)
    assert len(waits) == attempts - 1
    assert (await job.arefresh()).attempt == attempts
    world.advance(10 * DAY / SECOND)
    await world.promote()
    assert await world.claim(1) == []


async def test_001_cp3_4_an_error_is_stored_with_type_message_and_traceback(
    world: World, preset: Preset
) -> None:
    """Where it was raised can be read."""
    job = await preset["usual"].aenqueue()
    try:
        int("seven")
    except ValueError as error:
        await world.fail(error)
    (attempt,) = (await job.arefresh()).attempts
    assert (attempt.error_type, attempt.message) == (
        "ValueError",
        "invalid literal for int() with base 10: 'seven'",
    )
    assert attempt.traceback is not None
    assert __file__ in attempt.traceback
    assert attempt.error_class is ErrorClass.RETRYABLE


async def test_001_cp3_5_a_dead_letter_has_its_whole_error_history(world: World, preset: Preset) -> None:
    """Every attempt with its own error, oldest first."""
    job = await preset["usual"].aenqueue()
    for number in range(4):
        await world.fail(RuntimeError(f"trouble {number}"))
        world.advance(60)
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id))
    assert letter is not None
    shown = await preset.app.jobs.aget(job.id)
    assert [one.message for one in shown.attempts] == [f"trouble {number}" for number in range(4)]
    assert [one.failure and one.failure.message for one in letter.job.attempts] == [
        one.message for one in shown.attempts
    ]


def test_001_cp3_7_a_thousand_delays_lie_within_the_jitter_and_differ() -> None:
    """Ten per cent around four seconds, spread over the whole of it."""
    draws = random.Random(7)
    delays = [B_RETRY.delay(3, draws.random()).total_seconds() for _ in range(1_000)]
    assert all(3.6 <= delay <= 4.4 for delay in delays)
    assert len(set(delays)) > 900
    assert max(delays) - min(delays) > 0.7


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999])
async def test_001_mg_4_three_failures_wait_about_1_2_and_4_seconds(
    world: World, preset: Preset, draw: float
) -> None:
    """Within the jitter, as they are met in the store."""
    await preset["usual"].aenqueue()
    for about in (1, 2, 4):
        assert await world.fail(BOOM, draw=draw) is State.DELAYED
        due_at = (await world.ask(1, ("default", 1))).next_due_at
        assert due_at is not None
        assert 0.9 * about <= (due_at - world.now) / SECOND <= 1.1 * about
        world.advance((due_at - world.now) / SECOND)


async def test_001_mg_15_a_nested_error_keeps_its_context_into_the_dead_letters(
    world: World, preset: Preset
) -> None:
    """The cause and its text stand in the traceback."""

    class FaxError(Exception):
        """An application's own error, with an attribute."""

        def __init__(self, line: int) -> None:
            super().__init__(f"line {line} is busy")
            self.line = line

    job = await preset["usual"].using(max_attempts=1).aenqueue()
    error = FaxError(7)
    error.__cause__ = ConnectionError("no carrier")
    await world.fail(error)
    dead = await job.arefresh()
    assert dead.state is State.DEAD
    (attempt,) = dead.attempts
    assert attempt.message == "line 7 is busy"
    assert attempt.error_type is not None
    assert attempt.error_type.endswith("FaxError")
    assert attempt.traceback is not None
    assert "ConnectionError: no carrier" in attempt.traceback
    assert "direct cause" in attempt.traceback


async def test_001_rt_1_failures_at_0_1_3_and_7_seconds_then_dead(world: World, preset: Preset) -> None:
    """The walk-through: base one second, three retries, dead on the fourth failure."""
    job = await preset["usual"].aenqueue()
    started = world.now
    assert await world.fail_until_dead(BOOM) == [1, 2, 4]
    ended = await job.arefresh()
    assert [round((one.started_at - job.enqueued_at).total_seconds()) for one in ended.attempts] == [
        0,
        1,
        3,
        7,
    ]
    assert world.now - started == 7 * SECOND


@pytest.mark.parametrize(
    ("failures", "draw", "seconds"),
    [(1, 0.0, 0.9), (1, 1.0, 1.1), (12, 0.0, 1_843.2), (13, 0.0, 3_240), (13, 1.0, 3_600), (40, 1.0, 3_600)],
)
def test_001_rt_2_the_figures_of_the_preset(failures: int, draw: float, seconds: float) -> None:
    """Base one second, cap an hour, ten per cent either way; at the cap delays still spread (S26)."""
    assert B_RETRY.delay(failures, draw).total_seconds() == pytest.approx(seconds)


def test_001_rt_2_no_delay_is_below_the_floor() -> None:
    """A tenth of a second."""
    low = Backoff.exponential(0.01, floor=B_RETRY.floor, jitter=B_RETRY.jitter)
    assert low.delay(1, 0.0) == timedelta(seconds=0.1)


async def test_001_rt_3_without_retries_the_first_failure_is_the_last(world: World, preset: Preset) -> None:
    """No retries are one attempt."""
    await preset["usual"].using(max_attempts=1).aenqueue()
    assert await world.fail_until_dead(BOOM) == []


@pytest.mark.parametrize(
    "error_class", [one for one in ErrorClass if one.value in {"non_retryable", "stuck"}]
)
async def test_001_rt_4_errors_on_the_permanent_list_go_straight_to_the_dead_letters(
    world: World, error_class: ErrorClass
) -> None:
    """The task's classifier names them."""
    app = world.app()

    def permanent(error: BaseException) -> ErrorClass | None:
        return error_class if isinstance(error, ValueError) else None

    task = app.task(name="work", classify=permanent)(work)
    await task.aenqueue()
    assert await world.fail(ValueError("never")) is State.DEAD
    await task.aenqueue()
    assert await world.fail(KeyError("perhaps")) is State.DELAYED


async def test_001_rt_4_a_job_marked_no_retry_goes_straight_to_the_dead_letters(world: World) -> None:
    """By the task, or by what the handler raises."""
    app = world.app()
    await app.task(name="once", retry=Backoff.never())(work).using(max_attempts=5).aenqueue()
    assert await world.fail(BOOM) is State.DEAD
    await app.task(name="many")(work).aenqueue()
    assert await world.fail(Fail("no")) is State.DEAD


async def test_001_rt_5_the_history_keeps_the_last_ten_errors(world: World) -> None:
    """Of twelve the first two are gone; the counts are not."""
    app = world.app()
    job = await app.task(name="work")(work).using(max_attempts=50).aenqueue()
    for number in range(12):
        await world.fail(Retry(f"trouble {number}", after=1))
        world.advance(1)
    kept = await job.arefresh()
    assert [one.message for one in kept.attempts] == [f"trouble {number}" for number in range(2, 12)]
    assert (kept.attempt, kept.failures) == (12, 12)


async def test_001_rt_6_due_retries_are_promoted_in_bounded_batches(world: World, preset: Preset) -> None:
    """A hundred of 250, and the answer says that there are more."""
    task = preset["usual"].using(tenant="acme", delay=1)
    await preset.app.aenqueue_many([task.bind()] * 250)
    world.advance(1)
    passes = [await world.promote(limit=100) for _ in range(3)]
    assert [(one.promoted, one.is_partial) for one in passes] == [(100, True), (100, True), (50, False)]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_001_rt_7_the_stores_clock_decides(world: World, preset: Preset, hours: int) -> None:
    """A machine an hour off enqueues, fails and retries at the very same instants."""
    preset.app.client.clock = OffClock(hours * HOUR, world.now)
    job = await preset["usual"].using(delay=5).aenqueue()
    record = await world.record(job)
    assert (record.enqueued_at, record.run_at) == (world.now, world.now + 5 * SECOND)
    world.advance(5)
    await world.fail(BOOM)
    assert (await world.record(job)).run_at == world.now + SECOND


async def test_001_rt_8_dead_letters_go_after_30_days_unless_kept_longer(
    world: World, preset: Preset
) -> None:
    """By the application's own retention; a queue may have another."""
    job = await died(world, preset)
    world.advance(30 * DAY / SECOND - 1)
    await world.prune()
    assert (await job.arefresh()).state is State.DEAD
    world.advance(1)
    assert (await world.prune()).jobs == 1
    assert [one.id for one in await preset.app.jobs.afind()] == []


async def test_001_rt_9_dead_letters_are_listed_newest_first_by_queue_and_limited(
    world: World, preset: Preset
) -> None:
    """Newest death first, also where the older job died later."""
    first = await preset["usual"].using(tenant="acme").aenqueue()
    claim = await world.take()
    second = await died(world, preset)
    world.advance(1)
    await world.fail_claim(claim, Fail("no"))
    world.advance(1)
    urgent = await died(world, preset, "urgent")

    async def listed(**filters: Any) -> list[object]:
        page = await world.store.dead.find(DeadRequest(scope=ALL, **filters))
        return [letter.job.id for letter in page.letters]

    assert await listed() == [urgent.id, first.id, second.id]
    assert await listed(queue="default") == [first.id, second.id]
    assert await listed(limit=1) == [urgent.id]
    letter = await world.store.dead.get(DeadGetRequest(scope=ALL, id=second.id))
    assert letter is not None
    assert letter.job.id == second.id


@pytest.mark.parametrize(("retries", "seconds"), [(3, 7), (5, 31), (10, 1_023)])
async def test_001_rt_12_the_worst_wait_is_the_sum_of_the_doubled_base(
    world: World, retries: int, seconds: int
) -> None:
    """What a job spends waiting until it is dead."""
    app: Fairlane = world.app()
    task = app.task(name="work", retry=Backoff.exponential(1, cap=3_600, jitter=0), max_attempts=retries + 1)
    await task(work).aenqueue()
    assert sum(await world.fail_until_dead(BOOM)) == seconds == sum(2**i for i in range(retries))


async def test_001_ec_12_a_job_whose_object_was_deleted_is_skipped_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends at its first attempt, is no dead letter, and the log says what was missing."""
    app = world.app()

    @app.task(name="remind")
    async def remind(invoice: int) -> None:
        raise Skip(f"invoice {invoice} was deleted")

    job = await remind.using(tenant="acme").aenqueue(7)
    await burst(app)
    ended = await job.arefresh()
    assert (ended.state, ended.attempt, ended.failures) == (State.CANCELLED, 1, 0)
    assert ended.because == "skipped: invoice 7 was deleted"
    assert await world.store.dead.get(DeadGetRequest(scope=ALL, id=job.id)) is None
    (line,) = [one for one in caplog.records if getattr(one, "event", "") == "job_skipped"]
    assert line.levelname == "WARNING"
    assert "invoice 7 was deleted" in line.getMessage()
