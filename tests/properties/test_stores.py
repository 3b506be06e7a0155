"""Every store against the oracle, by a state machine that must have been everywhere."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.machine import StoreMachine, Visits
from tests.stores import STORES, Opener

RUNS = int(os.environ.get("FAIRLANE_MACHINE_RUNS", "120"))
STEPS = 70


def drive(opener: Opener, runs: int, *, phases: tuple[Phase, ...] = tuple(Phase)) -> Visits:
    """Run the machine on a store and give the visits it made."""
    machine = type("Machine", (StoreMachine,), {"opener": staticmethod(opener), "visits": Visits()})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize="FAIRLANE_MACHINE_RUNS" not in os.environ,
            print_blob=True,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return machine.visits  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("name", sorted(STORES))
def test_a_store_answers_as_the_oracle_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """S1-S66 as far as verbs go: equal answers, and every state and transition visited."""
    visits = drive(STORES[name], RUNS)
    with capsys.disabled():
        print(f"\n{name}: {RUNS} runs of up to {STEPS} steps\n{visits.table()}")
    assert not visits.missing(per_state=1_000, per_transition=10)
