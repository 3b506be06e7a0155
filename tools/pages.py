"""Read Markdown pages: their links, headings and code blocks. Knows no test framework and follows no link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent

_FENCE: Final = re.compile(r"^(`{3,})(.*?)\n(.*?)^\1`*\s*$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: what stands after the fence, the first line of its text, the text."""

    info: str
    line: int
    text: str


def pages() -> list[Path]:
    """List the project's pages: those beside the README, and docs."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(text: str) -> list[Block]:
    r"""Return the fenced blocks of a page.

    >>> blocks("one\n```python\nx = 1\n```\n")
    [Block(info='python', line=3, text='x = 1\n')]
    """
    return [
        Block(found[2].strip(), text.count("\n", 0, found.start(3)) + 1, found[3])
        for found in _FENCE.finditer(text)
    ]


def links(text: str) -> list[str]:
    """Return the targets of a page's links that stay inside the project; code is not read.

    >>> links("[a](b.md) `[c](d.md)` [e](https://example.org) [f](#g)")
    ['b.md', '#g']
    """
    prose = _CODE.sub("", _FENCE.sub("", text))
    return [target for target in _LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """Return the anchors that a page's headings make.

    >>> anchors("# Adding a `verb`, soon")
    {'adding-a-verb-soon'}
    """
    titles = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dangling(page: Path, text: str) -> Iterator[str]:
    """Name the links of a page that lead nowhere: no such file, or no such heading in it."""
    for target in links(text):
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists():
            yield f"{page.name}: {target} leads to no file"
        elif anchor and anchor not in anchors(text if goal == page else goal.read_text(encoding="utf-8")):
            yield f"{page.name}: {target} leads to no heading"
