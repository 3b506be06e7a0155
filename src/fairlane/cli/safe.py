"""Make text from outside harmless on a terminal: what users stored must not move the cursor or lie (S6).

Knows nothing of secrets; `fairlane.model.sensitive` does.
"""

from __future__ import annotations

import re
from typing import Final

_HARMFUL: Final = re.compile(
    # Controls of both kinds, marks that turn the direction of text, what no encoding can write.
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_LONGEST_CODE: Final = 0xFF


def one_line(text: str) -> str:
    r"""Show every character that is no plain text as its code, line breaks too.

    >>> one_line("a\x1b[2Jb\nc\u202ed")
    'a\\x1b[2Jb\\nc\\u202ed'
    """
    return _HARMFUL.sub(_code, text)


def lines(text: str) -> list[str]:
    r"""Split text into lines that are harmless each; tabs become spaces.

    >>> lines("one\n\ttwo\x07")
    ['one', '    two\\x07']
    """
    return [one_line(line.replace("\t", "    ")) for line in text.split("\n")]


def in_json(text: str) -> str:
    r"""Escape what JSON leaves as it is and a terminal would obey; it stays the same JSON.

    >>> in_json('{"a":"\x9b2J"}')
    '{"a":"\\u009b2J"}'
    """
    return _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cut(text: str, most: int) -> str:
    """Bound a text for a cell of a table.

    >>> cut("abcdef", 4), cut("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] == "\n":
        return r"\n"
    return f"\\x{number:02x}" if number <= _LONGEST_CODE else f"\\u{number:04x}"
