"""Escape control characters: stored text must not move the cursor or change what a terminal shows (S6).

Knows nothing of secrets; `fairlane.model.payload.sensitive` does.
"""

from __future__ import annotations

import re
from typing import Final

_HARMFUL: Final = re.compile(
    # C0 and C1 controls, marks that change the direction of text, lone surrogates.
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_LONGEST_CODE: Final = 0xFF


def one_line(text: str) -> str:
    r"""Replace every control character by its code, line breaks included.

    >>> one_line("a\x1b[2Jb\nc\u202ed")
    'a\\x1b[2Jb\\nc\\u202ed'
    """
    return _HARMFUL.sub(_code, text)


def lines(text: str) -> list[str]:
    r"""Split text into lines and escape each; tabs become spaces.

    >>> lines("one\n\ttwo\x07")
    ['one', '    two\\x07']
    """
    return [one_line(line.replace("\t", "    ")) for line in text.split("\n")]


def in_json(text: str) -> str:
    r"""Escape the control characters that JSON allows in a string; the JSON value stays the same.

    >>> in_json('{"a":"\x9b2J"}')
    '{"a":"\\u009b2J"}'
    """
    return _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cut(text: str, limit: int) -> str:
    """Shorten a text for a cell of a table.

    >>> cut("abcdef", 4), cut("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] == "\n":
        return r"\n"
    return f"\\x{number:02x}" if number <= _LONGEST_CODE else f"\\u{number:04x}"
