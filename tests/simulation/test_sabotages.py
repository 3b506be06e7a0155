"""The simulation notices broken promises. All of them: `python -m tests.simulation.sabotages`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulation.page import PAGE, page, read
from tests.simulation.sabotages import TABLE, hunt
from tests.simulation.seeds import quiet, seams

QUICK = (
    "drained-clock-forgotten",
    "credit-for-idling",
    "weight-ignored",
    "running-kept-at-reclaim",
    "gate-not-released",
    "tenant-filter-out-of-get",
    "tenant-filter-out-of-find",
    "tenant-filter-out-of-cancel",
    "history-move-in-two-steps",
    "lost-wake-without-poll",
    "retry-keeps-its-old-place",
    "override-lost-at-restart",
    "pause-ignored",
    "expiry-ignored",
    "settlement-dropped",
    "open-breaker-passed",
    "permit-not-noted",
    "anybody-closes-a-breaker",
    "ramp-skipped",
    "budget-read-then-spent",
    "spend-added-up",
    "reservation-kept",
    "day-that-never-ends",
)
"""Those that a few seeds find."""


@pytest.fixture(autouse=True)
def simulated() -> Iterator[None]:
    """Run production code in simulated processes."""
    with seams(), quiet():
        yield


@pytest.mark.parametrize("name", QUICK)
def test_a_few_seeds_notice_a_sabotage(name: str) -> None:
    """A seed fails with the sabotage and not without it; the rarest is found by one seed in twenty."""
    assert hunt(name, most=150).seed is not None


def test_a_sabotage_that_cannot_be_made_says_why() -> None:
    """Every promise of the list has a patch, or the reason why it has none."""
    assert {name for name, one in TABLE.items() if one.patch is None and not one.why_not} == set()


def test_the_page_tells_of_every_sabotage_what_was_found() -> None:
    """Nobody has typed a seed, and each that applies has one."""
    findings = read()
    assert PAGE.read_text(encoding="utf-8") == page(findings)
    assert {row.name: row.seed is not None for row in findings.rows} == {
        name: one.patch is not None for name, one in TABLE.items()
    }
