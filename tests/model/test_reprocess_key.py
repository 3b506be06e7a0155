"""The key of a job that runs in place of a dead one (S75)."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.reprocess_key import reprocess_key

ID = UUID(int=7)
NOW = 1_700_000_000 * SECOND + 25


@pytest.mark.parametrize(
    ("template", "old", "new"),
    [
        ("{key}#r{n}", "order-7", "order-7#r1"),
        ("{key}#r{n}", "order-7#r1", "order-7#r2"),
        ("{key}#r{n}", "order-7#r99", "order-7#r100"),
        ("{key}#r{n}", "#r1", "#r1#r1"),
        ("{key}#r{n}", "order-7#r1x", "order-7#r1x#r1"),
        ("{key}#r{n}", "a#r1#r2", "a#r1#r3"),
        ("run {n} of {key}", "run 3 of a", "run 4 of a"),
        ("{key}_retry_{time}", "a_retry_1.000000", "a_retry_1.000000_retry_1700000000.000025"),
        ("{key}-{n}-{time}", "a-2-1.5", "a-3-1700000000.000025"),
        ("{key}.{n}", "axb", "axb.1"),
        ("{key}{key}{n}", "a", "aa1"),
        ("{key}{n}{n}", "a1", "a111"),
        ("{id}-{n}", "a", f"{ID}-1"),
        ("{{{key}}}{n}", "{a}1", "{a}2"),
        ("{key}#{id}#{n}", f"a#{UUID(int=1)}#1", f"a#{ID}#2"),
    ],
)
def test_a_key_is_made_by_the_template_and_counts_on(template: str, old: str, new: str) -> None:
    """If the template counts, and the old key was made by it."""
    assert reprocess_key(template, old, ID, NOW) == new


@pytest.mark.parametrize(("template", "old"), [("{id}", "a"), ("{key}#r{n}", "k" * 253), ("{key}\n{n}", "a")])
def test_the_id_is_the_key_where_the_template_gives_none(template: str, old: str) -> None:
    """It says so, or its key could not be stored."""
    assert reprocess_key(template, old, ID, NOW) is None
