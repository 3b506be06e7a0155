"""Every rule has a contract test or says what it waits for, and every contract test names a rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.contract.rules import CONTRACT, LEFT, SEMANTICS, cases_in, count_contract, findings, table, titles

PAGE: Final = "- **S1 Clock.** Every instant.\n- **S2 `Two`.** And so on.\n"
GOOD: Final = '''
async def test_it(world): """S1: it holds."""
class Some:
    def test_two(self): """S1, S2: both hold."""
'''


def test_the_rules_the_suite_and_what_is_left_fit_together() -> None:
    """A new rule needs a test or an entry in LEFT; a new test takes its rule out of LEFT."""
    assert list(findings(SEMANTICS.read_text(encoding="utf-8"), CONTRACT, LEFT)) == []


def test_every_rule_of_the_page_is_read() -> None:
    """A changed layout of the page must not hide a rule: whatever begins like one is one, in order."""
    page = SEMANTICS.read_text(encoding="utf-8")
    rules = titles(page)
    assert list(rules) == [int(number) for number in re.findall(r"^\W*S(\d+)", page, re.MULTILINE)]
    assert list(rules) == sorted(rules)
    assert list(rules)[:71] == list(range(1, 72)), "a rule that goes leaves its number behind"
    assert (rules[8], rules[36], rules[46]) == ("system", "Fence", "Pause, drain, purge")


def test_the_suite_is_read() -> None:
    """Tests of several files are found, and the tests of this file do not count."""
    cases = list(cases_in(CONTRACT))
    assert len({case.file for case in cases}) > 20
    assert "test_rules.py" not in {case.file for case in cases}


def test_the_table_has_a_line_for_every_rule() -> None:
    """With its title, its tests, and what it waits for."""
    first, *lines, last = table()
    rules = titles(SEMANTICS.read_text(encoding="utf-8"))
    assert [line.split()[0] for line in lines] == [f"S{rule}" for rule in rules]
    assert all(title in line for title, line in zip(rules.values(), lines, strict=True))
    assert all(LEFT.get(rule, "") in line for rule, line in zip(rules, lines, strict=True))
    assert (first.split()[0], last.split()[0]) == ("rule", "all")


def suite(folder: Path, text: str) -> Path:
    """Write a suite of one file, among files that are not tests."""
    (folder / "test_some.py").write_text(text, encoding="utf-8")
    (folder / "test_rules.py").write_text("def test_this(): ...\n", encoding="utf-8")
    (folder / "world.py").write_text("def test_that(): ...\n", encoding="utf-8")
    return folder


def test_a_suite_that_fits_is_left_alone(tmp_path: Path) -> None:
    """Tests in classes and several rules in one docstring count."""
    assert list(findings(PAGE, suite(tmp_path, GOOD), {})) == []
    assert count_contract(tmp_path) == {1: 2, 2: 1}


@pytest.mark.parametrize(
    ("text", "left", "complaint"),
    [
        (GOOD.replace("S1, S2", "S1"), {}, "S2 Two has no contract test"),
        (GOOD, {2: "worker"}, "S2 Two has 1 contract tests and waits for nothing any more"),
        (GOOD, {3: "worker"}, "S3 waits for something and is no rule"),
        (GOOD + "def test_three(): ...", {}, "test_some.py: test_three names no rule"),
        (GOOD + 'def test_three(): """It holds (S1)."""', {}, "test_some.py: test_three names no rule"),
        (GOOD + 'def test_three(): """S1 holds: always."""', {}, "test_some.py: test_three names no rule"),
        (GOOD + 'def test_three(): """S3: holds."""', {}, "test_some.py: test_three names S3, no rule"),
    ],
)
def test_what_does_not_fit_is_found(tmp_path: Path, text: str, left: dict[int, str], complaint: str) -> None:
    """The check can fail, for each of its reasons."""
    (found,) = findings(PAGE, suite(tmp_path, text), left)
    assert found.startswith(complaint)
