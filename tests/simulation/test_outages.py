"""What the simulation has found once must not come back: outages of the store, and what they may cost."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest

from fairlane.model.instants import SECOND
from fairlane.worker import report
from fairlane.worker.attempts.live_attempts import LiveAttempt, StopCause
from tests.simulation import seeds, world
from tests.simulation.faults import CALM
from tests.simulation.world import World


@pytest.fixture(autouse=True)
def simulated() -> Iterator[None]:
    """Run production code in simulated processes."""
    with seeds.seams(), seeds.quiet():
        yield


def test_outages_that_are_shorter_than_a_lease_stop_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts of a worker count their failures together; renewing must not wait for as long as the others.

    Seed 7 found it, seed 9 shows it now: after a second of outage renewing paused for five, and leases of
    four seconds expired.
    """
    stopped: list[StopCause] = []

    def note(_: LiveAttempt, cause: StopCause) -> None:
        stopped.append(cause)

    monkeypatch.setattr(report, "stopped", note)
    monkeypatch.setattr(world, "draw_weather", lambda _: CALM)
    outages = sum(_run_through_short_outages(seed, monkeypatch) for seed in (5, 6, 7, 8, 9))
    assert outages > 10
    assert StopCause.LOST not in stopped


def _run_through_short_outages(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    random.seed(seed)
    made = World(seed, seeds.OPERATIONS, keeps_calls=False, traced=0)
    made._settings = msgspec.structs.replace(
        made._settings, lease=4 * SECOND, renew_every=round(4 / 3 * SECOND)
    )
    made._mishaps = ["outage"]
    monkeypatch.setattr(made.faults, "moment", lambda _: round((0.3 + 0.7 * made.rng.random()) * SECOND))
    seeds._running.append(made)
    try:
        made.run()
        made.end()
    finally:
        seeds._running.pop()
    assert made.wrong == []
    return made.figures["outages"]
