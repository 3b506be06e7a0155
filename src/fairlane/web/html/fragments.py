"""Find the parts of a page that are kept current: elements with an id and `data-live`. Knows no request."""

from __future__ import annotations

import re
from typing import Final

_START: Final = re.compile(r"<([a-z][a-z0-9]*)\b[^>]*\sdata-live(?=[\s=>])[^>]*>")
_ID: Final = re.compile(r'\sid="([^"]+)"')


def fragments(html: str) -> dict[str, str]:
    """Return the HTML of each live element by its id.

    Text and attributes are escaped when a page is rendered, so every `<` begins a tag.

    >>> fragments('<p><b id="n" data-live>7 <b>jobs</b></b></p><i id="x">no</i>')
    {'n': '<b id="n" data-live>7 <b>jobs</b></b>'}
    """
    found: dict[str, str] = {}
    position = 0
    while (start := _START.search(html, position)) is not None:
        id = _ID.search(start[0])
        position = _end_of(html, start[1], start.end())
        if id is not None:
            found[id[1]] = html[start.start() : position]
    return found


def _end_of(html: str, tag: str, position: int) -> int:
    """Return where the element ends whose start tag ends at a position."""
    depth = 1
    for match in re.compile(rf"<(/?){tag}\b[^>]*?(/?)>").finditer(html, position):
        if match[2]:
            continue  # it closes itself
        depth += -1 if match[1] else 1
        if depth == 0:
            return match.end()
    message = f"the element <{tag}> is not closed"
    raise ValueError(message)
