"""The life of a job names only files that exist, on each store, and a file that is gone is found."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tools.life_files import BEGIN, PAGE, with_files
from tools.pages import ROOT
from tools.proofs.stores import STORES

TEXT: Final = PAGE.read_text(encoding="utf-8")
LISTED: Final = re.compile(r"`((?:app|model|store|runtime|worker)/[\w/]+\.py)`")


def missing(text: str) -> list[str]:
    """Return the files of a list that are not in the package."""
    return [file for file in LISTED.findall(text) if not (ROOT / "src" / "fairlane" / file).is_file()]


def test_every_listed_file_exists() -> None:
    """`make life` was run after the last move."""
    assert missing(TEXT) == []


@pytest.mark.parametrize("store", STORES)
def test_every_store_has_its_list(store: str) -> None:
    """With the files of that store, and as many files as its heading says."""
    listed = LISTED.findall(TEXT.partition(BEGIN)[2])
    assert [file for file in listed if file.startswith(f"store/{store}/claims/")]
    counts = re.findall(r": (\d+) files", TEXT)
    assert sum(map(int, counts)) == len(listed)
    assert len(counts) == len(STORES)


def test_a_file_that_is_gone_is_found() -> None:
    """The check can fail."""
    page = with_files(TEXT, {"sqlite": ["app/client.py", "store/sqlite/nowhere.py"]})
    assert missing(page) == ["store/sqlite/nowhere.py"]
    with pytest.raises(ValueError, match="no place"):
        with_files("no marks", {})
