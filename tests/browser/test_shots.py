"""The pictures in docs are those of the declared pages, and small."""

from __future__ import annotations

from tests.browser.shots import FOLDER, MOST_BYTES, files


def test_every_declared_page_has_its_pictures_and_no_other_is_there() -> None:
    """A new page is shown, too: `make shots` takes its pictures."""
    assert {file.name for file in FOLDER.iterdir()} == files()


def test_the_pictures_are_small_together() -> None:
    """Everybody who clones the repository gets them."""
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= MOST_BYTES
