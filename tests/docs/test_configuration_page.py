"""The page of all keys is the one that the keys give."""

from __future__ import annotations

from fairlane.app.config.keys import all_keys
from tools.configuration_page import PAGE, with_tables


def test_the_committed_page_lists_every_key_with_its_default() -> None:
    """`make diagram` was run after the last change of the keys."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page)
    assert [name for name, key in all_keys() if f"| `{name}` | " not in page] == []


def test_writing_the_tables_keeps_what_stands_around_them() -> None:
    """And writing them twice changes nothing."""
    page = PAGE.read_text(encoding="utf-8")
    emptied = with_tables(page.replace("| `worker.lease` |", "| `worker.leese` |"))
    assert emptied == page
    assert page.startswith("# Configuration\n")
