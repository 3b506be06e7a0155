"""Description D, its circuit breakers: five failures, a minute, shared, reset by hand; and B's recovery."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from fairlane import Breaker, Fairlane, State, Task
from fairlane.model.guards.breaker import Outcomes
from fairlane.model.instants import MINUTE, to_instant
from fairlane.model.job import Claim
from fairlane.store.contract.breakers import BreakerOutcomes, ReportRequest
from fairlane.worker.worker import WorkerRuntime
from tests.acceptance.world import ALL, World

PRODUCTION = Breaker("email-service", failures=5, open_for=60, ramp=1)
"""As D has it: one success closes it."""


async def opened(world: World, breaker: Breaker) -> tuple[Fairlane, Task[..., Any]]:
    """Return an application with this breaker in force, and a task behind it."""
    app = world.app(breakers=[breaker])

    @app.task(name="email", breaker=breaker.name)
    async def email() -> None: ...

    await world.declare()
    return app, email


async def told(world: World, *, failed: int = 0, claim: Claim | None = None) -> None:
    """Tell what a worker has seen: so many failures, or how a job that passed has ended."""
    passed = claim is not None and not failed
    outcomes = Outcomes("acme", int(passed), failed, None if claim is None else claim.job.id)
    reports = (BreakerOutcomes(PRODUCTION.name, outcomes),)
    await world.store.breakers.report(ReportRequest(scope=ALL, reports=reports))


async def test_003_rp_3_the_fifth_failure_opens_it_and_calls_are_refused_for_a_minute(world: World) -> None:
    """Not the fourth; and not a moment longer."""
    app, email = await opened(world, PRODUCTION)
    await world.fill(email, 2)
    await told(world, failed=4)
    assert (await app.breakers.aget("email-service")).state == "closed"
    await told(world, failed=1)
    assert (await app.breakers.aget("email-service")).state == "open"
    world.advance(59.999)
    assert await world.claim(2) == []
    world.advance(0.001)
    assert len(await world.claim(2)) == 1


@pytest.mark.parametrize("is_up", [True, False])
async def test_003_rp_4_half_open_a_success_closes_it_and_a_failure_opens_it_again(
    world: World, *, is_up: bool
) -> None:
    """After sixty seconds one job tries."""
    app, email = await opened(world, PRODUCTION)
    await world.fill(email, 3)
    await told(world, failed=5)
    world.advance(60)
    (probe,) = await world.claim(3)
    assert (await app.breakers.aget("email-service")).state == "half_open"
    await told(world, failed=0 if is_up else 1, claim=probe)
    assert (await app.breakers.aget("email-service")).state == ("closed" if is_up else "open")
    assert len(await world.claim(3)) == (2 if is_up else 0)


async def test_003_rp_5_processes_share_it_and_its_counts_and_times_are_kept(world: World) -> None:
    """Failures that two processes saw add up, and any other reads them."""
    app, email = await opened(world, PRODUCTION)
    await world.fill(email, 1)
    beside = world.beside()
    try:
        await told(world, failed=3)
        await told(beside, failed=2)
    finally:
        await beside.aclose()
    opened_at = world.now
    world.advance(60)
    await world.claim(1)
    found = await app.breakers.aget("email-service")
    assert (found.failed, found.succeeded, found.trips) == (5, 0, 1)
    times = (found.last_failure_at, found.opened_at, found.half_opened_at)
    assert [None if time is None else to_instant(time) for time in times] == [
        opened_at,
        opened_at,
        opened_at + MINUTE,
    ]


async def test_003_op_4_an_operator_forces_it_open_and_resets_it(world: World) -> None:
    """With a reason; both at once for every process."""
    app, email = await opened(world, PRODUCTION)
    await world.fill(email, 1)
    forced = await app.breakers.aopen("email-service", reason="they asked us to")
    assert forced.forced is not None
    assert (forced.state, forced.forced.reason) == ("open", "they asked us to")
    world.advance(3_600)
    assert await world.claim(1) == []
    assert (await app.breakers.areset("email-service")).state == "closed"
    assert len(await world.claim(1)) == 1


async def test_001_ec_9_after_the_recovery_concurrency_grows_step_by_step(world: World) -> None:
    """One, two, four, eight at once, and then all; retries are spread by their jitter (`001-RT-*`)."""
    app, email = await opened(world, Breaker("email-service"))
    await world.fill(email, 40)
    await told(world, failed=5)
    world.advance(60)
    steps = []
    while (await app.breakers.aget("email-service")).state != "closed":
        claims = await world.claim(40)
        steps.append(len(claims))
        for claim in claims:
            await told(world, claim=claim)
    assert steps == [1, 2, 4, 8]
    assert len(await world.claim(40)) == 25


@pytest.mark.parametrize("on_open", ["snooze", "fail"])
async def test_003_rp_6_who_meets_it_open_fails_or_snoozes_by_setting(
    world: World, on_open: Literal["snooze", "fail"]
) -> None:
    """A failure uses an attempt; a snooze does not."""
    breaker = Breaker("email-service", on_open=on_open)
    app = world.app(breakers=[breaker])

    @app.task(name="email", max_attempts=1)
    async def email() -> None:
        async with app.breaker("email-service"):
            pass

    await app.breakers.aopen("email-service", reason="they asked us to")
    job = await email.using(tenant="acme").aenqueue()
    await WorkerRuntime(app, burst=True).run()
    met = await job.arefresh()
    expected = (State.DEAD, 1) if on_open == "fail" else (State.DELAYED, 0)
    assert (met.state, met.failures) == expected
