"""The book adds up, what is next follows from it, and the page is what it says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.campaigns.book import Piece, append, last_enough, next_seed, piece, read, tallies, upper_bound
from tests.campaigns.crew import Share, next_share
from tests.campaigns.errand import Errand
from tests.campaigns.page import PAGE, page
from tests.campaigns.places import STORES
from tests.campaigns.roster import CAMPAIGNS


def found(campaign: str = "worker-kill", store: str = "postgres", **values: object) -> Piece:
    """Return a piece."""
    errand = Errand(store, seed=7, wanted=1, seconds=1)
    errand.done(1.5)
    return msgspec.structs.replace(piece(campaign, errand, 2.0), **values)


def test_the_page_is_what_the_book_says() -> None:
    """Nobody has typed a figure; `make prove ARGS=--render` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page(read())


def test_pieces_add_up_in_one_file(tmp_path: Path) -> None:
    """By campaign and store, their recovery times and figures too."""
    book = tmp_path / "book.jsonl"
    for one in (found(n=3, recovery=(1.0, 2.0), figures={"jobs": 5}), found(n=4, figures={"jobs": 6})):
        append(one, book)
    append(found(store="redis", n=1, failures=("lost",)), book)
    sums = tallies(read(book))
    assert (sums["worker-kill", "postgres"].n, sums["worker-kill", "postgres"].figures) == (7, {"jobs": 11})
    assert sums["worker-kill", "postgres"].recovery == (1.0, 2.0, 1.5)
    assert sums["worker-kill", "redis"].failed == 1


def test_what_is_mended_is_told_and_not_counted() -> None:
    """Neither its failures nor its trials."""
    mended = found(n=50, failures=("a job was lost",), mended="test_something")
    assert tallies([mended, found(n=2)])["worker-kill", "postgres"].n == 2
    assert "a job was lost (mended: test_something)" in page([mended, found(n=2)])
    assert "**not mended**" in page([found(failures=("a job was lost",))])


def test_a_recovery_is_told_of_the_last_trials_that_are_enough() -> None:
    """What an older tree took is counted, and no longer told."""
    goal = CAMPAIGNS["worker-kill"].goal
    pieces = [
        found(n=goal, recovery=(45.0,)),
        found(n=goal - 1, recovery=(3.0,)),
        found(n=goal, recovery=(9.0,), failures=("a job was lost",), mended="test_something"),
        found(store="redis", n=goal),
        found(n=1, recovery=(4.0,)),
    ]
    row = ("worker-kill", "postgres")
    assert [one.recovery for one in last_enough(pieces, *row, goal)] == [(3.0,), (4.0,)]
    assert len(last_enough(pieces, *row, 3 * goal)) == 3
    assert f"| {2 * goal} | {goal} | 0 |" in page(pieces)
    assert "3.00 / 4.00 / 4.00 s" in page(pieces)


@pytest.mark.parametrize(
    ("n", "failed", "bound"), [(200, 0, 0.0149), (59, 0, 0.0495), (1, 0, 0.95), (3, 3, 1.0)]
)
def test_the_bound_is_that_of_a_binomial(n: int, failed: int, bound: float) -> None:
    """0 of n: 1 - 0.05^(1/n)."""
    assert upper_bound(n, failed) == pytest.approx(bound, abs=0.0001)


KILLS = [("worker-kill", store) for store in ("sqlite", "redis", "postgres")]


def test_what_is_furthest_from_its_goal_is_next() -> None:
    """Counting what is under way as done, so that a run goes on where the last one ended."""
    done = {KILLS[2]: 200, KILLS[1]: 20}
    assert next_share(KILLS, done, []) == Share(KILLS[0], 100)
    assert next_share(KILLS, done, [Share(KILLS[0], 100)]) == Share(KILLS[1], 100)
    assert next_share(KILLS[1:], {**done, KILLS[1]: 190}, []) == Share(KILLS[1], 10)


def test_nothing_is_next_when_every_goal_is_reached() -> None:
    """Unless more is asked for than the roster does."""
    done = dict.fromkeys(KILLS, 200)
    assert next_share(KILLS, done, []) is None
    assert next_share(KILLS, done, [], goal=1_000) == Share(KILLS[0], 100)


def test_pieces_that_burn_time_have_the_cores_and_no_more() -> None:
    """While those are taken, what mostly waits is next; and that leaves a place to what does not."""
    soak, replay, pause = ("soak", "sqlite"), ("replay", "redis"), ("worker-pause", "sqlite")
    assert next_share([soak, replay, pause], {}, [Share(soak, 10**6)] * 2, at_once=4) == Share(pause, 50)
    assert next_share([soak, replay, pause], {}, [Share(pause, 1)] * 3, at_once=4) == Share(soak, 10**6)
    assert next_share([soak, replay, pause], {}, [Share(pause, 1)] * 4, at_once=4) is None
    assert next_share([soak], {}, [], at_once=1) is not None


def test_what_is_judged_by_the_clock_runs_alone() -> None:
    """Nothing starts while it runs, and it starts only while nothing runs."""
    herd, pause = ("herd", "postgres"), ("worker-pause", "sqlite")
    assert next_share([herd, pause], {}, [Share(pause, 50)]) == Share(pause, 50)
    assert next_share([herd, pause], {pause: 100}, []) == Share(herd, 10)
    assert next_share([herd, pause], {}, [Share(herd, 10)]) is None


def test_two_pieces_at_once_never_run_the_same_seeds() -> None:
    """What goes on from the book's last line has one piece under way."""
    row = ("replay", "redis")
    assert next_share([row], {}, [Share(row, 10)]) is None
    pieces = [found(*row, figures={"next_seed": 12}), found(*row, figures={"next_seed": 7})]
    assert (next_seed(pieces, *row), next_seed(pieces, "replay", "sqlite")) == (12, 0)


def test_every_campaign_names_stores_that_there_are() -> None:
    """And asks for more than one piece of it, or just one."""
    for campaign in CAMPAIGNS.values():
        assert set(campaign.stores) <= set(STORES)
        assert 0 < campaign.portion <= campaign.goal


def test_of_a_share_the_lowest_of_all_pieces_is_told() -> None:
    """Two shares do not add up; what was counted does."""
    shares = [found(n=1, figures={"healthy jobs a second in %": share, "jobs": 5}) for share in (97, 92)]
    told = tallies(shares)["worker-kill", "postgres"].figures
    assert told == {"healthy jobs a second in %": 92, "jobs": 10}
