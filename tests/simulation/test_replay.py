"""Real stores answer what the oracle answered in a run. A thousand: `python -m tests.simulation.replay`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.simulation.replay import record, replay
from tests.simulation.seeds import quiet, seams
from tests.stores import STORES

REAL = [name for name in STORES if name != "oracle"]
RUNS = 6


@pytest.fixture(autouse=True)
def simulated() -> Iterator[None]:
    """Run production code in simulated processes."""
    with seams(), quiet():
        yield


@pytest.mark.parametrize("name", REAL)
def test_a_store_answers_every_call_of_a_run_as_the_oracle_did(name: str) -> None:
    """Every request at its own instant gets the same answer, to the microsecond."""
    runs = [calls for seed in range(3 * RUNS) if (calls := record(seed))][:RUNS]
    assert len(runs) == RUNS
    for calls in runs:
        found = asyncio.run(replay(calls, STORES[name]))
        assert found.difference == ""
        assert found.calls == len(calls) > 20


def test_a_replay_notices_another_answer() -> None:
    """One answer that is not the store's is found, with the call that it was given to."""
    calls = next(calls for seed in range(20) if (calls := record(seed)))
    index = next(number for number, call in enumerate(calls) if call.verb == "enqueue")
    calls[index] = calls[index]._replace(answer=None)
    found = asyncio.run(replay(calls, STORES["sqlite"]))
    assert found.calls == index
    assert "jobs.enqueue" in found.difference
