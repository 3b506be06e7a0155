"""The benchmark of schedules and delayed jobs does what it says, on a small scale."""

from __future__ import annotations

from pathlib import Path

from benchmarks import delayed, schedules, slots


async def test_all_schedules_are_fired_although_one_scheduler_is_killed(tmp_path: Path) -> None:
    """Each makes one job."""
    found = schedules.of_due(await slots.measure(str(tmp_path), 250), 250)
    assert found["jobs"].value == 250
    assert (found[schedules.IDLE].value or 1) <= 0.2


async def test_delayed_jobs_start_at_their_time(tmp_path: Path) -> None:
    """None is early."""
    found = await delayed.starts(str(tmp_path), 3)
    assert 0 <= found["earliest_ms"] <= found["p95_ms"]
    assert schedules.START in schedules.of_starts(found)


async def test_a_storm_of_delayed_jobs_is_promoted(tmp_path: Path) -> None:
    """Claims go on meanwhile."""
    assert schedules.of_storm(await delayed.storm(str(tmp_path), 200)).keys() >= {"all made ready"}
