"""What was published of a claim's cost is what was measured."""

from __future__ import annotations

from tests.postgres.backlog_page import PAGE, render


def test_the_page_is_what_was_measured() -> None:
    """`python -m tests.postgres.backlog --render` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == render()
