"""The benchmark of breakers and budgets: what it does to a store is done, and its arithmetic is right."""

from __future__ import annotations

from pathlib import Path

from benchmarks import guarded, guards, open_breaker, opening, spending

MODES: tuple[guarded.Guards, ...] = ("none", "breaker", "both")


async def test_others_are_claimed_beside_jobs_behind_an_open_breaker(tmp_path: Path) -> None:
    """None of those behind it; both stores are asked in the same round."""
    found = guards.of_behind(await open_breaker.behind(str(tmp_path), 200, 10))
    assert (found[guards.OTHERS].value or 0) > 0


async def test_nobody_claimed_after_an_opening_calls_what_is_down(tmp_path: Path) -> None:
    """S124: by several workers on one store; calls were made before."""
    found = await opening.measure(str(tmp_path), 80, workers=3)
    assert found["calls"] >= 80 // 4
    assert guards.of_opening(found)[guards.LATE].value == 0


async def test_exactly_one_passes_when_it_may_be_tried(tmp_path: Path) -> None:
    """And none before, however many ask at once."""
    found = guards.of_probe(await open_breaker.tried(str(tmp_path), 2))
    assert (found[guards.MOST].value, found[guards.LEAST].value, found[guards.WHILE_OPEN].value) == (1, 1, 0)


async def test_a_budget_is_spent_to_its_ceiling_by_many(tmp_path: Path) -> None:
    """No further than running jobs go beyond their estimates; the account says what they have spent."""
    found = await spending.measure(str(tmp_path), 100)
    assert found["ceiling"] - spending.ESTIMATE < found["spent"] <= found["ceiling"] + found["allowed"]
    assert guards.of_budget(found)[guards.BEYOND].value == 0
    assert guards.of_budget({**found, "spent": found["spent"] + 10**6})[guards.BEYOND].value != 0


async def test_a_guarded_job_passes_its_breaker_and_spends(tmp_path: Path) -> None:
    """Otherwise nothing would be measured."""
    for mode in MODES:
        assert await guarded.drain(f"sqlite:///{tmp_path}/{mode}.db", 20, mode) > 0


def test_what_guards_cost_is_the_median_of_the_pairs() -> None:
    """A busy moment of the machine meets all of a pair."""
    pairs: list[dict[guarded.Guards, float]] = [
        {"none": 10, "breaker": 10, "both": 12},
        {"none": 20, "breaker": 20, "both": 24},
        {"none": 10, "breaker": 30, "both": 90},
    ]
    found = guards.of_cost(pairs)
    assert found[guards.COSTS].value == 1.2
    assert guards.GOALS.keys() == {
        guards.OTHERS,
        guards.LATE,
        guards.WHILE_OPEN,
        guards.MOST,
        guards.LEAST,
        guards.BEYOND,
        guards.COSTS,
    }
