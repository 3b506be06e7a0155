"""Every store against the oracle, by a state machine that must have been everywhere."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.guards import GuardMachine
from tests.properties.machine import Visits
from tests.redis.rendering import rendered
from tests.servers.schemas import close_shared_connections, share_connections
from tests.stores import STORES, Opener

GIVEN = os.environ.get("FAIRLANE_MACHINE_RUNS")
STEPS = 70
FULL = 120
ROUND = 40
"""Runs come in rounds: which states they visit is luck, and a round more must be no other test."""

PER_STATE, PER_TRANSITION = 1_000, 10
"""The visits that a full number of runs must have made."""

INLINE = 2
"""On Redis a tenant with more tasks than so many is stored as one with very many: the machine knows three."""

PREFETCH = 1
"""There, too: how many jobs after its first a strand's record gets at a time; a second one is too many."""

SERVERS = frozenset({"postgres", "redis"})
"""Stores that are asked over a socket: their runs take several times as long, and they get a third of them.

``FAIRLANE_MACHINE_RUNS=120 pytest -s tests/properties`` gives all of them the full number, drawn anew.
"""


def drive(
    opener: Opener, runs: int, *, phases: tuple[Phase, ...] = tuple(Phase), visits: Visits, turn: int = 0
) -> None:
    """Run the machine on a store, in one event loop, and count its visits. Each `turn` draws other values."""
    with asyncio.Runner() as runner:
        values = {"opener": staticmethod(opener), "visits": visits, "runner": runner}
        machine = type(f"Machine{turn}", (GuardMachine,), values)  # Hypothesis draws by this name
        runner.run(share_connections())
        try:
            run_state_machine_as_test(machine, settings=_settings(runs, phases))
        finally:
            runner.run(close_shared_connections())


def _settings(runs: int, phases: tuple[Phase, ...]) -> settings:
    return settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=GIVEN is None,
        print_blob=True,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.timeout(900)  # a case that fails is made small first, for five minutes at most
@pytest.mark.parametrize("name", sorted(STORES))
def test_a_store_answers_as_the_oracle_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """S1-S66 as far as verbs go: equal answers, and every state and transition visited."""
    least = int(GIVEN) if GIVEN is not None else FULL // 3 if name in SERVERS else FULL
    share = min(1.0, least / FULL)
    visits, runs, rare = Visits(), 0, ["all"]
    while runs < least or (rare and runs < 3 * least):
        with rendered(MAX_INLINE_STRANDS=INLINE, PREFETCH=PREFETCH):
            drive(STORES[name], ROUND, visits=visits, turn=runs // ROUND)
        runs += ROUND
        rare = visits.missing(per_state=int(PER_STATE * share), per_transition=int(PER_TRANSITION * share))
    with capsys.disabled():
        print(f"\n{name}: {runs} runs of up to {STEPS} steps\n{visits.table()}")
    assert not rare
