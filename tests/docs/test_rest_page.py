"""The committed page of the REST API is the one that the endpoints give."""

from __future__ import annotations

from fairlane.web.api import GROUPS
from tools import rest_page


def test_the_committed_page_is_the_generated_one() -> None:
    """`make rest` was run after the last change of an endpoint."""
    assert rest_page.PAGE.read_text(encoding="utf-8") == rest_page.page()


def test_the_page_has_every_endpoint() -> None:
    """And names no other where it compares names."""
    text = rest_page.page()
    names = {one.name for group in GROUPS for one in group}
    assert {line[4:] for line in text.splitlines() if line.startswith("### ") and "." in line} == names
    compared = {word for word in rest_page.NAMES.replace("`", " ").replace(":", " ").split() if "." in word}
    assert {word for word in compared if word.split(".")[0] in {"jobs", "dead", "statistics"}} <= names | {
        "job.id"
    }
