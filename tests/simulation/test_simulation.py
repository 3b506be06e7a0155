"""Seeds of the simulation, a small number of them; `python -m tests.simulation` runs thousands."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation import __main__ as command
from tests.simulation.crowd import run_seeds
from tests.simulation.sabotages import TABLE
from tests.simulation.seeds import quiet, run_seed, seams

ROOT = Path(__file__).parent.parent.parent
SEEDS = 40


@pytest.fixture(autouse=True)
def simulated() -> Iterator[None]:
    """Run production code in simulated processes."""
    with seams(), quiet():
        yield


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_seeds_keep_every_promise(first: int) -> None:
    """Whatever goes wrong between workers, clients and the store, no promise is broken."""
    wrong = {seed: run_seed(seed).wrong for seed in range(first, first + 10)}
    assert {seed: said for seed, said in wrong.items() if said} == {}


def test_the_first_seeds_meet_every_kind_of_fault() -> None:
    """Workers are killed and stand still, the store is away and its clock jumps, claims are lost.

    Breakers open and let single jobs pass, budgets are spent, and their days end.
    """
    figures = [run_seed(seed).figures for seed in range(30)]
    kinds = ("kills", "freezes", "outages", "jumps", "stale", "reclaimed", "starts")
    guards = ("opened", "permits", "held back", "reserved", "spent out", "periods")
    assert {kind for kind in (*kinds, *guards) if not sum(one.get(kind, 0) for one in figures)} == set()


def test_a_seed_goes_the_same_way_every_time() -> None:
    """Not even another order of sets changes what happens, nor when."""
    code = "from tests.simulation.__main__ import main; main()"
    told = []
    for salt in ("1", "2"):
        done = subprocess.run(  # noqa: S603 (our own command)
            [sys.executable, "-c", code, "--seed", "1", "--trace"],
            cwd=ROOT,
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": f"{ROOT / 'src'}"},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stdout.splitlines()[:-1])  # the last line has the time that it took
    assert told[0] == told[1]
    assert len(told[0]) > 20


def test_a_seed_goes_the_same_way_in_another_process() -> None:
    """On all cores as alone, in the order of the seeds."""
    alone = [(seed, run_seed(seed).steps) for seed in (3, 4)]
    assert [(one.seed, one.steps) for one in run_seeds((3, 4), processes=1)] == alone


def test_a_seed_that_fails_says_what_was_wrong_and_what_happened_last(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is printed with its seed and the last of its trace, and the command fails."""
    monkeypatch.setattr(sys, "argv", ["simulation", "--seeds", "3", "--processes", "1"])
    broken = TABLE["retry-keeps-its-old-place"].patch
    assert broken is not None
    with broken():
        assert command.main() == 1
    said = capsys.readouterr().out
    assert re.search(r"^seed [0-2]: failed$", said, re.MULTILINE)
    assert "WRONG: job" in said
    assert "world: is healed" in said
    assert re.search(r"^3 seeds from 0, [1-3] failed", said, re.MULTILINE)
