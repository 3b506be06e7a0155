"""The head of a job: all that changes, and all that scripts must know of it.

The fields of `JobHead` are the only list: format and positions for Lua are made from it. Numbers stand before
texts, and what a job has when it is enqueued stands before what claims and its end add. A job that was never
claimed has the first half only; one that came back unstarted (S68) has both, since its fence must grow.
"None" is 0, -1 or the empty text, as noted beside the field; no text holds a NUL. A new field goes to the end
of the numbers or texts of the second half, and raises the layout version (upkeep/facet.py).
"""

from __future__ import annotations

from struct import Struct
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import msgspec

from fairlane.store.redis.records.layout import lua_format

Flag: TypeAlias = Annotated[bool, "?"]
Byte: TypeAlias = Annotated[int, "B"]
Short: TypeAlias = Annotated[int, "h"]
Count: TypeAlias = Annotated[int, "I"]
Long: TypeAlias = Annotated[int, "q"]
Text: TypeAlias = Annotated[str, "s"]


class JobHead(msgspec.Struct):
    """The part of a job in the hash `heads`."""

    is_new: Flag  # never claimed and not ended: nothing follows the correlation id
    state: Byte
    priority: Short
    is_dedup_until_started: Flag  # the de-duplication key is free from the first claim on
    enqueued_at: Long
    run_at: Long
    expires_at: Long  # 0: never
    timeout: Long  # -1: none
    tenant: Text
    queue: Text
    task: Text
    because: Text  # "": none
    dedup_key: Text  # "": none
    idempotency_key: Text  # "": the id itself
    correlation_id: Text  # "": the id itself
    settled_at: Long = 0  # 0: not settled
    attempt: Count = 0
    fence: Long = 0
    started_at: Long = 0  # 0: not running
    lease_until: Long = 0  # 0: not running
    failures: Count = 0
    crashes: Count = 0
    crashes_alone: Count = 0
    snoozes: Count = 0
    charged: Long = -1  # -1: its queue does not charge by time
    is_suspect: Flag = False
    is_cancel_asked: Flag = False
    unused: Flag = False  # once whether a claim ran alone: the layout keeps its byte
    has_result: Flag = False
    worker: Text = ""  # "": not running
    gate: Text = ""  # "": none
    progress: Text = ""  # "": none, else JSON


_CODES: Final = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(JobHead, include_extras=True).items()
}
_NEW_FIELDS: Final = list(_CODES).index("settled_at")
_ALL: Final = "".join(_CODES.values())
_HALVES: Final = (_ALL[:_NEW_FIELDS], _ALL[_NEW_FIELDS:])
_NEW_NUMBERS, _CLAIM_NUMBERS = (Struct(">" + half.rstrip("s")) for half in _HALVES)
_NEW_TEXTS, _CLAIM_TEXTS = (half.count("s") for half in _HALVES)


def _half(numbers: Struct, values: tuple[Any, ...], texts: int) -> bytes:
    return numbers.pack(*values[:-texts]) + "".join(f"{text}\0" for text in values[-texts:]).encode()


_NO_CLAIM: Final = _half(_CLAIM_NUMBERS, JobHead.__struct_defaults__, _CLAIM_TEXTS)
"""The second half of the head of a new job, which is not stored."""

HEAD_CONSTANTS: Final[dict[str, int | str]] = {
    **{name.upper(): number for number, name in enumerate(_CODES, 1)},
    "HEAD_FIELDS": len(_CODES),
    "HEAD_FORMAT": lua_format(_ALL),
    "NEW_HEAD_FIELDS": _NEW_FIELDS,
    "NEW_HEAD_FORMAT": lua_format(_HALVES[0]),
    "NEW_HEAD_NUMBERS": lua_format(_HALVES[0].rstrip("s")),
    "CLAIM_FIELDS_FORMAT": lua_format(_HALVES[1]),
    "NO_CLAIM_FIELDS": "".join(f"\\{byte}" for byte in _NO_CLAIM),
}
"""What scripts need to read and write a head: the position of each field under its name, and the formats."""


def is_new(raw: bytes) -> bool:
    """Whether it is the head of a job that was never claimed and has not ended."""
    return raw[0] == 1


def read_new_head(raw: bytes) -> tuple[tuple[Any, ...], list[str]]:
    """Unpack the head of a new job: its numbers and its texts, each in the order of the fields."""
    return _NEW_NUMBERS.unpack_from(raw), raw[_NEW_NUMBERS.size : -1].decode().split("\0")


def read_head(raw: bytes) -> JobHead:
    """Unpack a head."""
    numbers: Any = _NEW_NUMBERS.unpack_from(raw)
    *texts, rest = raw[_NEW_NUMBERS.size :].split(b"\0", _NEW_TEXTS)
    if not rest:
        return JobHead(*numbers, *map(bytes.decode, texts))
    claim_numbers: Any = _CLAIM_NUMBERS.unpack_from(rest)
    *claim_texts, _ = rest[_CLAIM_NUMBERS.size :].split(b"\0")
    return JobHead(*numbers, *map(bytes.decode, texts), *claim_numbers, *map(bytes.decode, claim_texts))


def write_head(head: JobHead) -> bytes:
    """Pack a head; of a job that was never claimed and has not ended, the first half.

    >>> ready = JobHead(True, 2, 0, False, 7, 7, 0, -1, "acme", "default", "send", "", "", "", "")
    >>> read_head(write_head(ready)) == ready, len(write_head(ready))
    (True, 59)
    """
    head.is_new = head.attempt == 0 and head.fence == 0 and head.settled_at == 0
    values = msgspec.structs.astuple(head)
    first = _half(_NEW_NUMBERS, values[:_NEW_FIELDS], _NEW_TEXTS)
    return first if head.is_new else first + _half(_CLAIM_NUMBERS, values[_NEW_FIELDS:], _CLAIM_TEXTS)
