"""The head of a job: all that changes, and all that scripts must know of it. Says its form, packs, unpacks.

Numbers stand before texts, and what a job has from its birth before what claims and its end add: a job that
was never claimed has the first half alone. What stands for "none" is 0, -1 or the empty text, as said beside
the field; no text holds a NUL.
"""

from __future__ import annotations

from struct import Struct
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import msgspec

from fairlane.store.redis.forms import lua_form

Flag: TypeAlias = Annotated[bool, "?"]
Byte: TypeAlias = Annotated[int, "B"]
Short: TypeAlias = Annotated[int, "h"]
Count: TypeAlias = Annotated[int, "I"]
Long: TypeAlias = Annotated[int, "q"]
Text: TypeAlias = Annotated[str, "s"]


class Head(msgspec.Struct):
    """What is kept of a job in the hash "heads"."""

    is_short: Flag  # never claimed and not ended: there is nothing after the correlation id
    state: Byte
    priority: Short
    is_dedup_short: Flag  # free from the first claim on
    enqueued_at: Long
    run_at: Long
    expires_at: Long  # 0
    timeout: Long  # -1
    tenant: Text
    queue: Text
    task: Text
    because: Text  # ""
    dedup_key: Text  # ""
    idempotency_key: Text  # "": the id itself
    correlation_id: Text  # "": the id itself
    settled_at: Long = 0  # 0
    attempt: Count = 0
    fence: Long = 0
    started_at: Long = 0  # 0
    lease_until: Long = 0  # 0
    failures: Count = 0
    crashes: Count = 0
    crashes_alone: Count = 0
    snoozes: Count = 0
    charged: Long = -1  # -1
    is_suspect: Flag = False
    is_cancel_asked: Flag = False
    is_alone: Flag = False
    has_result: Flag = False
    worker: Text = ""  # ""
    gate: Text = ""  # ""
    progress: Text = ""  # "", else JSON


_CODES: Final = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Head, include_extras=True).items()
}
_LIFE: Final = list(_CODES).index("settled_at")
_ALL: Final = "".join(_CODES.values())
_HALVES: Final = (_ALL[:_LIFE], _ALL[_LIFE:])
_BIRTH_NUMBERS, _LIFE_NUMBERS = (Struct(">" + half.rstrip("s")) for half in _HALVES)
_BIRTH_TEXTS, _LIFE_TEXTS = (half.count("s") for half in _HALVES)
_UNLIVED: Final = Head.__struct_defaults__
"""The second half of a short head."""


def _half(numbers: Struct, values: tuple[Any, ...], texts: int) -> bytes:
    return numbers.pack(*values[:-texts]) + "".join(f"{text}\0" for text in values[-texts:]).encode()


FIELDS: Final = {name.upper(): number for number, name in enumerate(_CODES, 1)}
"""The numbers under which scripts know the fields."""

FORMS: Final[dict[str, int | str]] = {
    "FIELDS": len(_CODES),
    "BIRTH_FIELDS": _LIFE,
    "BIRTH_FORM": lua_form(_HALVES[0]),
    "BIRTH_NUMBERS": lua_form(_HALVES[0].rstrip("s")),
    "LIFE_FORM": lua_form(_HALVES[1]),
    "HEAD_FORM": lua_form(_ALL),
    "NO_LIFE": "".join(f"\\{byte}" for byte in _half(_LIFE_NUMBERS, _UNLIVED, _LIFE_TEXTS)),
}
"""What scripts need to read and write a head."""


def is_short(raw: bytes) -> bool:
    """Say whether it is the head of a job that was never claimed and has not ended."""
    return raw[0] == 1


def read_birth(raw: bytes) -> tuple[tuple[Any, ...], list[str]]:
    """Unpack a short head: its numbers and its texts, each in the order of the fields."""
    return _BIRTH_NUMBERS.unpack_from(raw), raw[_BIRTH_NUMBERS.size : -1].decode().split("\0")


def read_head(raw: bytes) -> Head:
    """Unpack a head."""
    numbers: Any = _BIRTH_NUMBERS.unpack_from(raw)
    *texts, rest = raw[_BIRTH_NUMBERS.size :].split(b"\0", _BIRTH_TEXTS)
    if not rest:
        return Head(*numbers, *map(bytes.decode, texts))
    lived: Any = _LIFE_NUMBERS.unpack_from(rest)
    *words, _ = rest[_LIFE_NUMBERS.size :].split(b"\0")
    return Head(*numbers, *map(bytes.decode, texts), *lived, *map(bytes.decode, words))


def write_head(head: Head) -> bytes:
    """Pack a head: a job that was never claimed and has not ended has a short one.

    >>> ready = Head(True, 2, 0, False, 7, 7, 0, -1, "acme", "default", "send", "", "", "", "")
    >>> read_head(write_head(ready)) == ready, len(write_head(ready))
    (True, 59)
    """
    head.is_short = head.attempt == 0 and head.settled_at == 0
    values = msgspec.structs.astuple(head)
    birth = _half(_BIRTH_NUMBERS, values[:_LIFE], _BIRTH_TEXTS)
    return birth if head.is_short else birth + _half(_LIFE_NUMBERS, values[_LIFE:], _LIFE_TEXTS)
