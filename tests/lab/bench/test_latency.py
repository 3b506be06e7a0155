"""Half of the full load: how it is found, and when its figures are not valid."""

from __future__ import annotations

import pytest

from fairlane.lab.bench.latency import LoadSample, load_of, sustained
from fairlane.lab.workload.stats import JobTimes, RunStats
from fairlane.model.instants import SECOND


def stats(*jobs: tuple[int, int, int]) -> RunStats:
    """Return the statistics of jobs: sent, started, ended."""
    found = RunStats()
    found.jobs = {
        str(at): JobTimes("t", brought, brought, start, end) for at, (brought, start, end) in enumerate(jobs)
    }
    return found


def test_a_full_load_is_what_ended_while_others_were_being_brought() -> None:
    """What is drained afterwards was drained with the machine to itself."""
    ms = SECOND // 1_000
    slow = [(at * ms, at * 4 * ms, at * 4 * ms + 1) for at in range(101)]
    assert sustained(stats(*slow)) == 250  # a thousand a second came
    quick = [(at * ms, at * ms + 1, at * ms + 2) for at in range(101)]
    assert sustained(stats(*quick)) == 1_000


def test_a_load_is_what_came_and_what_waited_at_the_end() -> None:
    """One job every 10 ms, each started at once or all at the end."""
    ms = SECOND // 1_000
    steady = load_of(stats(*((at * 10 * ms, at * 10 * ms + 1, 0) for at in range(101))), asked=100)
    assert (steady.rate, steady.waiting) == (100, 0)
    stuck = load_of(stats(*((at * 10 * ms, 9 * SECOND, 0) for at in range(101))), asked=100)
    assert stuck.waiting == 90  # 80 to 100 came before


@pytest.mark.parametrize(
    ("came", "is_valid"),
    [
        (LoadSample(500, 500, 0), True),
        (LoadSample(500, 449, 0), False),  # whoever brings them could not keep up
        (LoadSample(500, 551, 0), False),
        (LoadSample(500, 500, 16), True),
        (LoadSample(500, 500, 16.1), False),  # a backlog grew
    ],
)
def test_a_load_that_was_not_brought_or_not_borne_is_not_valid(came: LoadSample, is_valid: bool) -> None:
    """A wait under another load than half is not the wait at half load."""
    assert came.is_valid(slots=16) is is_valid
