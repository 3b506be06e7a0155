"""Description A, its queues: where jobs go, how many may wait, how often they start or are retried."""

from __future__ import annotations

import logging

import pytest

from fairlane import Backoff, InvalidJob, Limits, Queue, State, WaitingLimitReached
from fairlane.model.instants import MINUTE, SECOND, Instant
from tests.acceptance.presets import A_HOMES, Preset, isolation, work
from tests.acceptance.world import World

BOOM = RuntimeError("boom")


@pytest.fixture
async def preset(world: World) -> Preset:
    """Return the preset of description A, in force."""
    return await world.open(isolation(world.url))


def warnings(caplog: pytest.LogCaptureFixture) -> list[tuple[object, object, object]]:
    """Return tenant, queue and count of each warning that was logged so far, and forget them."""
    texts = [
        (vars(record)["tenant"], vars(record)["queue"], vars(record)["waiting"])
        for record in caplog.records
        if record.levelno == logging.WARNING and vars(record).get("event") == "job_limit_warning"
    ]
    caplog.clear()
    return texts


async def test_000_tm_1_a_fax_without_a_queue_name_lands_in_critical(preset: Preset) -> None:
    """The task's home decides."""
    assert (await preset["send_fax"].using(tenant="acme").aenqueue()).queue == "critical"


async def test_000_tm_2_the_501st_waiting_job_is_stored_with_a_warning(
    world: World, preset: Preset, caplog: pytest.LogCaptureFixture
) -> None:
    """The 500th says nothing; the next names the organisation, the queue and the count."""
    await world.fill(preset["email.send"], 500)
    assert warnings(caplog) == []
    job = await preset["email.send"].using(tenant="acme").aenqueue()
    assert warnings(caplog) == [("acme", "default", 501)]
    assert (await job.arefresh()).state is State.READY


@pytest.mark.parametrize(("task", "home"), A_HOMES.items())
async def test_000_qc_1_each_listed_task_goes_to_its_queue(preset: Preset, task: str, home: str) -> None:
    """Four critical, three default, three bulk; none can be sent elsewhere."""
    assert (await preset[task].using(tenant="acme").aenqueue()).queue == home
    other = "bulk" if home == "default" else "default"
    with pytest.raises(InvalidJob, match="home queue"):
        await preset[task].using(tenant="acme", queue=other).aenqueue()


async def test_000_qc_2_an_unlisted_task_goes_to_default(preset: Preset) -> None:
    """A task that names no queue has its home in `default`."""
    assert (await preset["unlisted.method"].using(tenant="acme").aenqueue()).queue == "default"


@pytest.mark.parametrize(("task", "seconds"), [("send_fax", 60), ("email.send", 300), ("process_batch", 600)])
async def test_000_qc_4_the_queue_gives_the_timeout_that_a_call_does_not(
    world: World, preset: Preset, task: str, seconds: int
) -> None:
    """What the worker is told is the queue's, unless the call says otherwise."""
    await preset[task].using(tenant="acme").aenqueue()
    await preset[task].using(tenant="acme", timeout=7).aenqueue()
    first = await world.take(A_HOMES[task])
    assert first.job.timeout == seconds * SECOND
    world.advance(60)  # bulk may start only so often
    assert (await world.take(A_HOMES[task])).job.timeout == 7 * SECOND


async def test_000_qc_5_critical_has_no_limit(
    world: World, preset: Preset, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten thousand waiting jobs of one organisation, and not a word."""
    await world.fill(preset["send_fax"], 10_000)
    assert (await preset.app.jobs.acount(tenant="acme", queue="critical"))[State.READY] == 10_000
    assert warnings(caplog) == []


async def test_000_qc_6_the_101st_job_of_bulk_warns(
    world: World, preset: Preset, caplog: pytest.LogCaptureFixture
) -> None:
    """The 100th does not."""
    await world.fill(preset["process_batch"], 100)
    assert warnings(caplog) == []
    await preset["process_batch"].using(tenant="acme").aenqueue()
    assert warnings(caplog) == [("acme", "bulk", 101)]


async def test_000_qc_7_a_limit_counts_one_organisation_in_one_queue(
    world: World, preset: Preset, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither another organisation nor the same one in another queue is warned."""
    await world.fill(preset["process_batch"], 101)
    assert warnings(caplog) == [("acme", "bulk", 101)]
    await preset["process_batch"].using(tenant="globex").aenqueue()
    await preset["email.send"].using(tenant="acme").aenqueue()
    assert warnings(caplog) == []


@pytest.mark.parametrize("is_delayed", [False, True])
async def test_000_qc_8_reject_refuses_the_501st_and_stores_nothing(world: World, is_delayed: bool) -> None:
    """Delayed and ready jobs count, running ones do not (S16): this is the reading we take."""
    app = world.app(queues=[Queue("default", limits=Limits(waiting=500, on_full="reject"))])
    task = app.task(name="mail")(work).using(tenant="acme", delay=60 if is_delayed else None)
    await world.declare()
    await world.fill(task, 500)
    with pytest.raises(WaitingLimitReached) as refused:
        await task.aenqueue()
    assert (refused.value.tenant, refused.value.queue, refused.value.limit) == ("acme", "default", 500)
    counts = await app.jobs.acount(tenant="acme")
    assert sum(counts.values()) == 500
    if not is_delayed:
        await world.take()
        await task.aenqueue()


async def test_000_qc_8_warn_stores_the_501st(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The other policy over the same limit."""
    app = world.app(queues=[Queue("default", limits=Limits(waiting=500, on_full="warn"))])
    task = app.task(name="mail")(work)
    await world.declare()
    await world.fill(task, 501)
    assert (await app.jobs.acount(tenant="acme"))[State.READY] == 501
    assert warnings(caplog) == [("acme", "default", 501)]


async def test_000_qc_9_bulk_starts_at_most_50_jobs_in_any_minute(world: World, preset: Preset) -> None:
    """Sixty are ready; whichever minute is looked at, no more than fifty starts lie in it."""
    for tenant in ("acme", "globex", "initech"):
        await world.fill(preset["process_batch"], 20, tenant)
    starts: list[Instant] = []
    while len(starts) < 60:
        reply = await world.ask(60, ("bulk", 60))
        starts += [world.now] * len(reply.claims)
        if len(starts) < 60:
            assert reply.next_due_at is not None
            world.advance((reply.next_due_at - world.now) / SECOND)
    assert all(later - first >= MINUTE for first, later in zip(starts, starts[50:], strict=False))
    # They are also not held up longer than that: the 51st starts when the first minute is over.
    assert starts[50] - starts[0] == MINUTE


async def waits_of(world: World, preset: Preset, task: str) -> tuple[list[float], int]:
    """Fail every attempt of a job; return the waits between attempts and how many attempts there were."""
    job = await preset[task].using(tenant="acme").aenqueue()
    waits = await world.fail_until_dead(BOOM, A_HOMES[task])
    return waits, (await job.arefresh()).attempt


async def test_000_qc_10_critical_is_retried_after_10_30_and_60_seconds(world: World, preset: Preset) -> None:
    """Three retries: four attempts."""
    assert await waits_of(world, preset, "send_fax") == ([10, 30, 60], 4)


async def test_000_qc_11_default_is_retried_after_60_300_and_900_seconds(
    world: World, preset: Preset
) -> None:
    """Three retries: four attempts."""
    assert await waits_of(world, preset, "email.send") == ([60, 300, 900], 4)


async def test_000_qc_12_bulk_is_retried_after_300_and_900_seconds_then_dead(
    world: World, preset: Preset
) -> None:
    """Two retries: three attempts."""
    assert await waits_of(world, preset, "process_batch") == ([300, 900], 3)


@pytest.mark.parametrize(
    ("queue", "of_task", "waits"),
    [
        ("own", None, [7]),
        ("own", Backoff.delays(3), [3]),
        ("plain", None, [2, 4, 8, 16]),
    ],
)
async def test_000_qc_13_the_most_specific_retry_policy_wins(
    world: World, queue: str, of_task: Backoff | None, waits: list[float]
) -> None:
    """Task over queue, queue over what holds everywhere."""
    app = world.app(queues=[Queue("own", retry=Backoff.delays(7)), Queue("plain")])
    await app.task(name="mail", queue=queue, retry=of_task)(work).aenqueue()
    assert await world.fail_until_dead(BOOM, queue) == waits


async def test_000_qc_14_a_job_without_organisation_belongs_to_system(preset: Preset) -> None:
    """It is the application's own work."""
    assert (await preset["send_fax"].aenqueue()).tenant == "system"


async def test_000_qc_15_a_backlog_of_100_000_does_not_delay_anothers_first_job(
    world: World, preset: Preset
) -> None:
    """The newcomer is served second at the latest, and then every other time: its share."""
    world.is_recounted = False  # so many take seconds
    await world.fill(preset["send_fax"], 100_000, "noisy")
    await world.claim(10, "critical")
    await world.fill(preset["send_fax"], 5, "quiet")
    served = [claim.job.tenant for claim in await world.claim(10, "critical")]
    assert "quiet" in served[:2]
    assert served.count("quiet") == 5
