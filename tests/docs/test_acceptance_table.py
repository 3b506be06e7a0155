"""The acceptance list, its tests and the committed table agree, and the search for disagreement can fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tools.acceptance import PAGE, ROWS, Found, Row, by_row, page, problems, read_rows, read_tests

TEXT = ROWS.read_text(encoding="utf-8")
ALL = read_rows(TEXT)


def row(id: str = "001-EC-1", **fields: str | None) -> Row:
    """Return a row that is tested unless told otherwise."""
    return Row(id, "B", "Edges", **{"mark": "core", "says": "", "waits": None, "missing": None, **fields})  # type: ignore[arg-type]


def test_the_committed_table_is_the_generated_one() -> None:
    """`make acceptance` was run after the last change of a row or a test's name."""
    assert PAGE.read_text(encoding="utf-8") == page(ALL, read_tests())


def test_every_row_is_tested_or_waits_and_every_test_names_a_row() -> None:
    """Each row one or the other, no row both, no test outside of the list."""
    assert problems(ALL, read_tests()) == []


def test_the_list_is_complete() -> None:
    """So many rows came from each description, and so many of them are core."""
    rows = Counter(one.id[:3] for one in ALL)
    core = Counter(one.id[:3] for one in ALL if one.mark == "core")
    assert rows == {"000": 51, "001": 252, "002": 49, "003": 59, "004": 57}
    assert core == {"000": 41, "001": 187, "002": 38, "003": 46, "004": 41}


def test_every_row_occurs_exactly_once_in_the_table() -> None:
    """A row is not lost between the list and the page."""
    shown = [
        line.split("|")[1].strip() for line in PAGE.read_text(encoding="utf-8").splitlines() if "|" in line
    ]
    assert Counter(name for name in shown if name[:1].isdigit()) == Counter(one.id for one in ALL)


@pytest.mark.parametrize(
    ("rows", "tests", "complaint"),
    [
        ([row()], [], "has no test and waits for nothing"),
        ([row(waits="time")], ["test_001_ec_1_a"], "is tested and waits"),
        ([row(waits="time", missing="half")], [], "misses something and has no test"),
        ([row()], ["test_001_ec_1_a", "test_001_ec_2_a"], "names no row"),
        ([row()], ["test_001_ec_1_a", "test_001_ec_10_a"], "names no row"),
        ([row()], ["test_001_ec_1_a", "test_001_ec_1_a"], "several tests"),
        ([row(), row("001-EC.1")], ["test_001_ec_1_a"], "stands for several rows"),
        ([row(mark="soon")], ["test_001_ec_1_a"], "is no mark"),
    ],
)
def test_each_disagreement_is_found(rows: list[Row], tests: list[str], complaint: str) -> None:
    """The check can fail."""
    assert complaint in "\n".join(problems(rows, [Found(name, "test_x.py") for name in tests]))


def test_a_test_belongs_to_the_longest_row_that_it_names() -> None:
    """Row 4a is not row 4."""
    rows = [row("000-TM-4"), row("000-TM-4-a")]
    found, _ = by_row(rows, [Found("test_000_tm_4_a_sentence", "f"), Found("test_000_tm_4_one", "f")])
    assert [test.name for test in found["000-TM-4-a"]] == ["test_000_tm_4_a_sentence"]


def test_an_unknown_field_of_a_row_is_refused() -> None:
    """A misspelt `waits` must not count as tested."""
    with pytest.raises(ValueError, match="001-EC-1"):
        read_rows('[B.Edges]\n"001-EC-1" = { mark = "core", says = "", wait = "x" }')


def test_tests_are_found_in_the_source(tmp_path: Path) -> None:
    """Plain and async ones at the top of a file; nothing else."""
    (tmp_path / "test_a.py").write_text(
        "def test_x(): ...\nasync def test_y(): ...\ndef help(): ...\n", "utf-8"
    )
    assert read_tests(tmp_path) == [Found("test_x", "test_a.py"), Found("test_y", "test_a.py")]
