"""`app.tasks.retries`: how the jobs of each task got on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from fairlane import ErrorClass, Fairlane, InsideTenant, Task
from fairlane.app.admin import retries
from fairlane.model.instants import to_datetime
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import PassRequest
from tests.app.world import World, note

HOUR = timedelta(hours=1)


async def run(world: World, task: Task[..., Any], *messages: str, ends: str = "succeeded") -> None:
    """Run a job that fails so often, and then ends."""
    await task.aenqueue("x")
    for message in messages:
        await world.fail(message, ErrorClass.RETRYABLE)
        world.clock.advance(3_600)
        await world.oracle.claims.promote(PassRequest(scope=Scope.all()))
    if ends == "dead":
        await world.fail("no hope")
    else:
        await world.succeed()


async def test_each_task_says_how_its_jobs_got_on(world: World, app: Fairlane, task: Task[..., Any]) -> None:
    """The one with the most trouble first."""
    calm = app.task(name="calm")(note).using(tenant="globex")
    await run(world, calm)
    await run(world, task)
    await run(world, task, "slow", "slow")
    await run(world, task, "password=hunter2xyz", ends="dead")
    report = await app.tasks.aretries(since=timedelta(days=9))
    first, second = report.tasks
    assert (report.looked_at, report.is_complete) == (4, True)
    assert (first.task, first.jobs, first.succeeded, first.after_retry, first.dead) == ("note", 3, 2, 1, 1)
    assert (first.mean_attempts, round(first.success_rate, 2)) == (2.0, 0.67)
    assert first.errors == {
        "FaxError: slow": 2,
        "FaxError: password=[redacted]": 1,
        "FaxError: no hope": 1,
    }
    assert (second.task, second.mean_attempts, second.errors) == ("calm", 1.0, {})


async def test_the_most_recent_jobs_are_read_first_and_no_more_than_asked_for(
    world: World, app: Fairlane, task: Task[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply says whether that was all."""
    monkeypatch.setattr(retries, "_STEP", 2)
    for _ in range(3):
        await run(world, task)
        world.clock.advance(1)
    some = await app.tasks.aretries(since=HOUR, most=2)
    assert (some.looked_at, some.is_complete, some.tasks[0].jobs) == (2, False, 2)
    every = await app.tasks.aretries(since=HOUR)
    assert (every.looked_at, every.is_complete) == (3, True)
    world.clock.advance(7_200)
    assert (await app.tasks.aretries(since=HOUR)).tasks == ()
    since = to_datetime(world.clock.now()) - 3 * HOUR
    assert (await app.tasks.aretries(since=since, task="note")).tasks[0].jobs == 3
    assert (await app.tasks.aretries(since=since, task="other")).tasks == ()


def test_it_is_for_operators(app: Fairlane) -> None:
    """Tasks belong to all tenants."""
    assert app.tasks.retries(since=HOUR).tasks == ()
    with app.tenant("acme"), pytest.raises(InsideTenant):
        app.tasks.retries(since=HOUR)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"since": datetime(2030, 1, 1)}, "since: has no time zone"),  # noqa: DTZ001 (that)
        ({"since": HOUR, "most": 0}, "most is 0"),
        ({"since": HOUR, "task": "a b"}, "task 'a b'"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(
    world: World, app: Fairlane, options: dict[str, Any], words: str
) -> None:
    """Before any store is asked."""
    with pytest.raises(ValueError, match=words):
        app.tasks.retries(**options)
    assert world.asked == []
