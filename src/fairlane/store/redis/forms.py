"""What scripts are told of a new job and of an ended attempt: numbers, texts that end with a NUL, a body.

Packed by hand, as heads are: `struct` in Lua takes such a record apart in one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

BYTES: Final = "bytes"
"""The code of bytes after their number, which must be the last field."""

_LUA: Final = {"?": "B", "B": "B", "h": "i2", "I": "I4", "q": "i8", "16s": "c16", "s": "s", BYTES: "I4c0"}
"""Codes of Python's `struct` in the words of Lua's; a flag is 0 or 1 there."""


def lua_form(codes: Iterable[str]) -> str:
    """Give the format for Lua's `struct`.

    >>> lua_form("?qs")
    '>Bi8s'
    """
    return ">" + "".join(_LUA[code] for code in codes)


class Form:
    """The order of the fields of a record, with their codes."""

    def __init__(self, suffix: str, fields: dict[str, str]) -> None:
        """Take numbers first, then texts; scripts know each field by its name and the suffix."""
        codes = list(fields.values())
        self.texts = codes.count("s")
        self.pack_numbers = Struct(">" + "".join(code for code in codes if code not in {"s", BYTES})).pack
        self.words: dict[str, int | str] = {
            **{f"{name.upper()}_{suffix}": number for number, name in enumerate(fields, 1)},
            f"FORM_{suffix}": lua_form(codes),
            f"NEXT_{suffix}": len(fields) + 1,
        }


ITEM: Final = Form(
    "IN",
    {
        "id": "16s",
        "priority": "h",
        "run_at": "q",  # -1: by the delay
        "delay": "q",
        "expires_at": "q",  # 0
        "expires_in": "q",  # -1
        "timeout": "q",  # -1
        "on_duplicate": "B",  # 0: return, 1: raise, 2: replace a dead one
        "is_short": "?",
        "tenant": "s",
        "queue": "s",
        "task": "s",
        "key": "s",  # ""
        "fingerprint": "s",
        "dedup": "s",  # ""
        "correlation": "s",  # "": the id itself
        "body": BYTES,
    },
)
"""A new job."""

ENDING: Final = Form(
    "SO",
    {
        "fence": "q",
        "has_failure": "?",
        "has_log": "?",
        "has_result": "?",
        "has_asked": "?",  # another form of it follows, for a job that was asked to stop
        "has_late": "?",  # another one follows, for a job that would come back too late
        "state": "B",
        "delay": "q",
        "failures": "I",
        "crashes": "I",
        "crashes_alone": "I",
        "snoozes": "I",
        "is_suspect": "?",
        "outcome": "s",
        "because": "s",  # ""
    },
)
"""How an attempt ended."""
