"""Every link between the project's pages leads somewhere, and every page can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.pages import ROOT, dangling, links, pages


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    """Pages, source files and folders alike."""
    assert [problem for page in pages() for problem in dangling(page, page.read_text(encoding="utf-8"))] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    """A page that nobody links to is not read."""
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        paths = (target.partition("#")[0] for target in links(page.read_text(encoding="utf-8")))
        ahead += [(page.parent / path).resolve() for path in paths if path]
    assert set(pages()) - seen == set()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](nowhere.md)", "leads to no file"),
        ("[a](../nowhere/)", "leads to no file"),
        ("[a](#nowhere)", "leads to no heading"),
        ("[a](here.md#nowhere)", "leads to no heading"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, text: str, complaint: str) -> None:
    """The check can fail."""
    page = tmp_path / "here.md"
    page.write_text(text, encoding="utf-8")
    assert complaint in "\n".join(dangling(page, text))


def test_a_good_link_is_left_alone(tmp_path: Path) -> None:
    """A heading, a file, a folder, a link in code and a link to the outside."""
    text = "# One `x`, two\n[a](#one-x-two) [b](here.md) [c](.) `[d](no.md)` [e](https://example.org/no)"
    page = tmp_path / "here.md"
    page.write_text(text, encoding="utf-8")
    assert list(dangling(page, text)) == []
