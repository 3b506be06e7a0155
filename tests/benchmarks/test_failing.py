"""The benchmark of failures: what it does to a store is done, and its arithmetic is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import failing, letters, round_trips, storm
from benchmarks.measured_store import clean
from tests.servers.postgres import shared_url
from tests.servers.valkey import url_of

LETTERS, AGAIN = 1_000, 80


async def test_dead_letters_are_made_found_and_run_again(tmp_path: Path) -> None:
    """All looks find what was made, and as many run again as were asked for."""
    found = await letters.measure(str(tmp_path), LETTERS, AGAIN)
    looks = {name: one["found"] for name, one in found["looks"].items()}
    assert (looks["count by review"], looks["group all"], looks["list 50 of a tenant"]) == (LETTERS, 10, 20)
    assert found["again"]["jobs"] == AGAIN
    assert failing.GOALS.keys() & failing.of_letters(found).keys() == {*letters.LOOKS, failing.AGAIN}


def test_jobs_that_all_fail_at_one_instant_come_back_spread_out() -> None:
    """No second has more than twice the mean, by any policy with jitter."""
    assert all(one["most_by_mean"] < 2 for one in storm.at_one_instant(10_000).values())


def test_seconds_that_are_not_whole_do_not_count() -> None:
    """The first and the last one."""
    assert storm.per_second([0.9, 1.0, 1.5, 2.0, 3.0, 3.1, 3.2]) == {
        "mean": 1.5,
        "most": 2,
        "most_by_mean": 2 / 1.5,
    }


def test_a_storm_is_compared_with_its_calm_in_the_same_round() -> None:
    """A busy machine slows both. Every figure that has a goal is there."""
    wait = {"calm": {"small_tenants_wait": {"p99_ms": 20.0}}, "at_one_instant": storm.at_one_instant(1_000)}
    retries = {"retries": {"most_by_mean": 1.2}, "told": {"deaths": 100, "events": 2}}
    found = failing.of_storm({**wait, "storm": {"small_tenants_wait": {"p99_ms": 30.0}, **retries}})
    assert found[failing.OTHERS].value == 1.5
    assert failing.GOALS.keys() & found.keys() == {
        failing.OTHERS,
        failing.FULLEST,
        *failing.AT_ONE_INSTANT.values(),
    }


@pytest.mark.parametrize("server", ["postgres", "redis"])
async def test_jobs_that_fail_cost_no_round_trip_more_than_jobs_that_succeed(server: str) -> None:
    """S75, S76: a death leaves a letter, an event and a cause, all in the settlement's own exchange."""
    url = shared_url() if server == "postgres" else url_of("round-trips")
    try:
        found = await round_trips.measure(url, "trips")
    finally:
        await clean(url)
    assert found["succeed"] >= 1
    assert found == dict.fromkeys(round_trips.ENDINGS, found["succeed"])
