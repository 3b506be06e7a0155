"""What scripts are told of a new job and of an ended attempt: numbers, then texts that each end with a NUL.

Packed by hand, as heads are: `struct` in Lua takes such a record apart in one call.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_LUA: Final = {"?": "B", "B": "B", "h": "i2", "I": "I4", "q": "i8", "s": "s"}
"""Codes of Python's `struct` in the words of Lua's; a flag is 0 or 1 there."""


def lua_form(codes: str) -> str:
    """Give the format for Lua's `struct`.

    >>> lua_form("?qs")
    '>Bi8s'
    """
    return ">" + "".join(_LUA[code] for code in codes)


class Form:
    """The order of the fields of a record, with their codes."""

    def __init__(self, suffix: str, fields: dict[str, str]) -> None:
        """Take numbers first, then texts; scripts know each field by its name and the suffix."""
        codes = "".join(fields.values())
        self.texts = codes.count("s")
        self.pack_numbers = Struct(">" + codes.rstrip("s")).pack
        self.words: dict[str, int | str] = {
            **{f"{name.upper()}_{suffix}": number for number, name in enumerate(fields, 1)},
            f"FORM_{suffix}": lua_form(codes),
            f"NEXT_{suffix}": len(fields) + 1,
        }


ITEM: Final = Form(
    "IN",
    {
        "priority": "h",
        "run_at": "q",  # -1: by the delay
        "delay": "q",
        "expires_at": "q",  # 0
        "expires_in": "q",  # -1
        "timeout": "q",  # -1
        "raises": "?",
        "is_short": "?",
        "tenant": "s",
        "queue": "s",
        "task": "s",
        "key": "s",  # ""
        "fingerprint": "s",
        "dedup": "s",  # ""
        "correlation": "s",  # "": the id itself
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
