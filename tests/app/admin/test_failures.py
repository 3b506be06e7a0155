"""`app.jobs.failures` and `app.jobs.stuck`: what counts, what is refused."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlane import ErrorClass, Fairlane, Task
from fairlane.store.contract.request import MAX_ROWS_READ
from tests.app.world import World


async def test_an_attempt_that_failed_before_is_not_counted(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """Of one job with two failures only the one since then counts."""
    await task.aenqueue("x")
    await world.fail("first", ErrorClass.RETRYABLE)
    world.clock.advance(7200)
    await world.fail("second", ErrorClass.RETRYABLE)
    (one,) = (await app.jobs.afailures(since=timedelta(hours=1))).tasks
    assert (one.failures, one.jobs, one.dead, one.error) == (1, 1, 0, "FaxError: second")
    (both,) = (await app.jobs.afailures(since=timedelta(hours=3))).tasks
    assert both.failures == 2


async def test_a_rare_task_costs_no_more_than_any_other(tmp_path: Path) -> None:
    """What a store reads of other tasks counts, too, and the reports say that there may be more."""
    app = Fairlane(f"sqlite:///{tmp_path}/jobs.db")

    @app.task(name="common")
    def common(number: int) -> None:
        """One of many."""

    @app.task(name="rare")
    def rare() -> None:
        """One of few, and before all others."""

    await rare.aenqueue()
    for start in range(0, MAX_ROWS_READ, 1_000):
        await app.aenqueue_many(common.bind(start + number) for number in range(1_000))
    async with aclosing(app):
        failures = await app.jobs.afailures(since=timedelta(hours=1), task="rare", most=1_000)
        assert (failures.tasks, failures.is_complete) == ((), False)
        every = await app.jobs.afailures(since=timedelta(hours=1), task="rare", most=1_000_000)
        assert (every.looked_at, every.is_complete) == (1, True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda app: app.jobs.failures(since=datetime(2030, 1, 1)), "since: has no time zone"),  # noqa: DTZ001 (that)
        (lambda app: app.jobs.failures(since=timedelta(-1)), "since: is -86400.0 s"),
        (lambda app: app.jobs.failures(since=timedelta(1), most=0), "most is 0"),
        (lambda app: app.jobs.failures(since=timedelta(1), task="a b"), "task"),
        (lambda app: app.jobs.stuck("1h"), "age: is of type str"),
        (lambda app: app.jobs.stuck(1, limit=0), "limit is 0"),
        (lambda app: app.tasks.counts(most=0), "most is 0"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(world: World, app: Fairlane, call: Any, words: str) -> None:
    """Before any store is asked."""
    with pytest.raises(ValueError, match=words):
        call(app)
    assert world.asked == []
