"""The records that Python packs for scripts: a new job and a settlement.

Numbers first, then texts that end with a NUL, then a body. Packed by hand, as heads are: `struct` in Lua
takes such a record apart in one call. The list of fields here is the only one: Lua's format and the positions
of the fields are made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

ON_DUPLICATE: Final = {"return": 0, "raise": 1, "replace_dead": 2}
"""What a new job does if its idempotency key is taken, and the number that scripts know."""

BYTES: Final = "bytes"
"""The code of bytes after their length, which must be the last field."""

_LUA: Final = {"?": "B", "B": "B", "h": "i2", "I": "I4", "q": "i8", "16s": "c16", "s": "s", BYTES: "I4c0"}
"""Codes of Python's `struct`, and those of Lua's; a flag is 0 or 1 there."""


def lua_format(codes: Iterable[str]) -> str:
    """Return the format for Lua's `struct`.

    >>> lua_format("?qs")
    '>Bi8s'
    """
    return ">" + "".join(_LUA[code] for code in codes)


class RecordLayout:
    """The fields of a record in order, with their codes."""

    def __init__(self, record: str, prefix: str, fields: dict[str, str]) -> None:
        """Take numbers first, then texts. Scripts know a field by the prefix and its name."""
        codes = list(fields.values())
        self.texts = codes.count("s")
        self.pack_numbers = Struct(">" + "".join(code for code in codes if code not in {"s", BYTES})).pack
        self.constants: dict[str, int | str] = {
            **{f"{prefix}_{name.upper()}": number for number, name in enumerate(fields, 1)},
            f"{record}_FORMAT": lua_format(codes),
            f"{record}_NEXT": len(fields) + 1,
        }


NEW_JOB_LAYOUT: Final = RecordLayout(
    "NEW_JOB",
    "NEW",
    {
        "id": "16s",
        "priority": "h",
        "run_at": "q",  # -1: now and the delay
        "delay": "q",
        "expires_at": "q",  # 0: never
        "expires_in": "q",  # -1: none
        "timeout": "q",  # -1: none
        "on_duplicate": "B",  # see ON_DUPLICATE
        "is_dedup_until_started": "?",
        "tenant": "s",
        "queue": "s",
        "task": "s",
        "idempotency_key": "s",  # "": the id itself
        "fingerprint": "s",
        "dedup_key": "s",  # "": none
        "correlation_id": "s",  # "": the id itself
        "body": BYTES,
    },
)
"""A new job."""

SETTLEMENT_LAYOUT: Final = RecordLayout(
    "SETTLE",
    "SETTLE",
    {
        "fence": "q",
        "has_failure": "?",
        "has_log": "?",
        "has_result": "?",
        "has_metadata": "?",
        "has_if_cancelled": "?",  # a variant follows, for a job whose cancellation was requested
        "has_if_expired": "?",  # a variant follows, for a job that would come back after it expires
        "state": "B",
        "delay": "q",
        "failures": "I",
        "crashes": "I",
        "crashes_alone": "I",
        "snoozes": "I",
        "is_suspect": "?",
        "spent": "q",  # so far, in millionths
        "is_unstarted": "?",  # its number and its charge are given back, and nothing is recorded (S68)
        "outcome": "s",
        "because": "s",  # "": none
    },
)
"""How an attempt ended."""
