"""The book adds up, what is next follows from it, and the page is what it says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.campaigns.__main__ import _order
from tests.campaigns.book import Piece, append, piece, read, tallies, upper_bound
from tests.campaigns.errand import Errand
from tests.campaigns.page import PAGE, page
from tests.campaigns.places import STORES
from tests.campaigns.roster import CAMPAIGNS


def found(campaign: str = "worker-kill", store: str = "postgres", **values: object) -> Piece:
    """Give a piece."""
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


@pytest.mark.parametrize(
    ("n", "failed", "bound"), [(200, 0, 0.0149), (59, 0, 0.0495), (1, 0, 0.95), (3, 3, 1.0)]
)
def test_the_bound_is_that_of_a_binomial(n: int, failed: int, bound: float) -> None:
    """0 of n: 1 - 0.05^(1/n)."""
    assert upper_bound(n, failed) == pytest.approx(bound, abs=0.0001)


def test_what_is_furthest_from_its_goal_is_next() -> None:
    """So that a run goes on where the last one ended."""
    sums = tallies([found("worker-kill", "postgres", n=200), found("worker-kill", "redis", n=20)])
    order = [store for _, store in _order(["worker-kill"], None, sums)]
    assert order == ["sqlite", "redis", "postgres"]


def test_every_campaign_names_stores_that_there_are() -> None:
    """And asks for more than one piece of it, or just one."""
    for campaign in CAMPAIGNS.values():
        assert set(campaign.stores) <= set(STORES)
        assert 0 < campaign.portion <= campaign.goal
