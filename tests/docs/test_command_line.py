"""The committed page of the command line is the one that the commands give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fairlane.cli.exits import Exit
from fairlane.cli.main import COMMANDS
from tools import command_line
from tools.pages import ROOT, pages

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def test_the_committed_page_is_the_generated_one() -> None:
    """`make commands` was run after the last change of a command."""
    assert PAGE.read_text(encoding="utf-8") == command_line.page()


def test_the_page_has_every_command_and_every_exit_code() -> None:
    """Nothing is lost on the way to the page."""
    text = command_line.page()
    described = {line.split()[2] for line in text.splitlines() if line.startswith("## fairlane ")}
    assert described == set(COMMANDS)
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert codes == {int(code) for code in Exit}


def test_every_command_that_a_page_names_exists() -> None:
    """Nobody is sent to a command that is not there; of each, the first word counts."""
    named = {
        (word, page.relative_to(ROOT).as_posix())
        for page in pages()
        for word in re.findall(
            r"(?:`|^\$ )fairlane ([a-z][a-z-]*)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        if page.parent.name != "decisions"
    }
    assert {word for word, _ in named} >= {"explain", "doctor"}
    assert {one for one in named if one[0] not in COMMANDS} == set()
