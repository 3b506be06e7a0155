"""Encode arguments and results as the JSON bytes that every store keeps, and decode them (S5, S33, S34).

Knows no store and no schema. Never pickles, and never finds a class by a stored name. The format is
described in docs/reference/payload.md, for readers in other languages too.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

import msgspec

from fairlane.model.enums import NO_ENUMS, enums_of
from fairlane.model.errors import Problem
from fairlane.model.reading import MOST_DEPTH, Reader, Undecodable
from fairlane.model.tagged import as_object
from fairlane.model.trail import shown
from fairlane.model.writing import TOO_LARGE_HINT, Unencodable, Writer, is_plain

__all__ = [
    "ENVELOPE",
    "Encoded",
    "PayloadRules",
    "Undecodable",
    "Unencodable",
    "checksum",
    "decode_arguments",
    "decode_result",
    "encode_arguments",
    "encode_numbers",
    "encode_result",
    "enums_of",
    "fingerprint",
    "verify",
]

ENVELOPE: Final = 1
"""The version of the envelope; it changes only if older readers could misread the new form."""

RESULT_SIZE: Final = 65_536

_ARGUMENTS: Final = b'{"v":%d,"arguments":' % ENVELOPE
_RESULT: Final = b'{"v":%d,"result":' % ENVELOPE
"""How an envelope opens; what it holds and a brace follow."""

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_SORTED = msgspec.json.Encoder(order="deterministic").encode
_DECODE = msgspec.json.Decoder().decode
_NO_LIMIT: Final = 1 << 62


class _Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """An envelope of arguments, checked while it is decoded: a third of the time of looking afterwards."""

    v: int
    arguments: dict[str, Any]


_DECODE_ARGUMENTS = msgspec.json.Decoder(_Arguments).decode


class PayloadRules(msgspec.Struct, frozen=True):
    """How large and how deep a payload may be. A limit itself passes; one more is over it."""

    warn_over: int = 10_240
    max_size: int = 1_048_576
    max_depth: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= MOST_DEPTH:
            raise ValueError(f"max_depth is {self.max_depth}; it may be 1 to {MOST_DEPTH}")


_DEFAULT: Final = PayloadRules()


class Encoded(msgspec.Struct, frozen=True):
    """What a store keeps of the arguments. `large`: over `warn_over`, with what counts beside them."""

    data: bytes
    checksum: int
    large: bool


def encode_arguments(
    arguments: Mapping[str, Any],
    *,
    rules: PayloadRules = _DEFAULT,
    enums: Mapping[str, type[Enum]] | None = None,
    beside: int = 0,
) -> Encoded:
    """Encode arguments so that they come back exactly, type and value, or raise `Unencodable`.

    `beside` counts towards the size: the bytes of what is stored with the arguments. With `enums`, a member
    of any other Enum class is refused, since a worker could not read it.

    >>> encode_arguments({"to": "ada", "copies": 2}).data
    b'{"v":1,"arguments":{"to":"ada","copies":2}}'
    """
    content = _as_they_are(arguments)
    if content is None:
        writer = Writer("arguments", rules.max_depth, rules.max_size, enums)
        content = _ENCODE(writer.write(dict(arguments), 0))
    return _enclosed(content, rules, beside)


def encode_numbers(arguments: Mapping[str, Any], rules: PayloadRules, beside: int) -> Encoded:
    """Encode as `encode_arguments` does, in half the time, what `are_plain_numbers` has let through.

    >>> encode_numbers({"copies": 2}, PayloadRules(), 0) == encode_arguments({"copies": 2})
    True
    """
    return _enclosed(_ENCODE(arguments), rules, beside)


def decode_arguments(
    data: bytes, *, enums: Mapping[str, type[Enum]] = NO_ENUMS, is_showing: bool = False
) -> dict[str, Any]:
    """Give back what was encoded, or raise `Undecodable`, whatever the bytes are.

    `is_showing` is for whoever only looks: an Enum member whose class is not among `enums` becomes its text.

    >>> decode_arguments(b'{"v":1,"arguments":{"due":{"$date":"2026-01-02"}}}')
    {'due': datetime.date(2026, 1, 2)}
    """
    found = _quickly(data)
    if found is not None and is_plain(found):
        return found
    content = _opened(data, "arguments") if found is None else found
    arguments = as_object(Reader(enums, is_showing=is_showing).read(content, "arguments", 0))
    if arguments is None:
        raise Undecodable("arguments is not an object")
    return arguments


def _quickly(data: bytes) -> dict[str, Any] | None:
    """Look into an envelope that is as it should be; None if it is not, which `_opened` puts into words."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        envelope = _DECODE_ARGUMENTS(data)
        if envelope.v == ENVELOPE:
            return envelope.arguments
    return None


def encode_result(value: Any, *, max_size: int = RESULT_SIZE) -> bytes | None:
    """Encode a result as arguments are; None is not stored.

    >>> encode_result({1, 2}), encode_result(None)
    (b'{"v":1,"result":{"$set":[1,2]}}', None)
    """
    if value is None:
        return None
    plain = Writer("result", _DEFAULT.max_depth, max_size).write(value, 1)
    data = _RESULT + _ENCODE(plain) + b"}"
    if len(data) > max_size:
        raise _oversized("result", len(data), max_size)
    return data


def decode_result(
    data: bytes | None, *, enums: Mapping[str, type[Enum]] = NO_ENUMS, is_showing: bool = False
) -> Any:
    """Give back what was encoded, or raise `Undecodable`, whatever the bytes are; see `decode_arguments`."""
    if data is None:
        return None
    return Reader(enums, is_showing=is_showing).read(_opened(data, "result"), "result", 1)


def checksum(data: bytes) -> int:
    """CRC-32: finds bytes that rotted, not bytes that somebody changed on purpose.

    >>> checksum(b"123456789") == 0xCBF43926
    True
    """
    return zlib.crc32(data)


def verify(data: bytes, checksum: int) -> None:
    """Raise `Undecodable` unless these are the bytes that were stored under this checksum."""
    found = zlib.crc32(data)
    if found != checksum:
        raise Undecodable(f"the bytes have checksum {found:08x}, they were stored with {checksum:08x}")


def fingerprint(task: str, arguments: Mapping[str, Any]) -> bytes:
    """Say in 16 bytes what a call means, to see whether a repeated idempotency key means the same (S13).

    The order of dict keys and set members does not matter, types do. For arguments that can be encoded.

    >>> fingerprint("mail", {"a": 1, "b": 2}) == fingerprint("mail", {"b": 2, "a": 1})
    True
    """
    plain = Writer("arguments", MOST_DEPTH, _NO_LIMIT).write(dict(arguments), 0)
    # No task name has a NUL (S3), so no two different calls give the same bytes.
    return blake2b(task.encode() + b"\0" + _ENCODE_SORTED(plain), digest_size=16).digest()


def _enclosed(content: bytes, rules: PayloadRules, beside: int) -> Encoded:
    data = _ARGUMENTS + content + b"}"
    size = len(data) + beside
    if size > rules.max_size:
        raise _oversized("arguments", size, rules.max_size)
    return Encoded(data, zlib.crc32(data), size > rules.warn_over)


def _as_they_are(arguments: Mapping[str, Any]) -> bytes | None:
    """Encode arguments of which nothing need be turned; None if something must be."""
    if not is_plain(arguments):
        return None
    try:
        return _ENCODE(dict(arguments))
    except UnicodeEncodeError:
        return None  # a lone surrogate somewhere; the writer finds out where


def _oversized(field: str, size: int, limit: int) -> Unencodable:
    message = f"takes {size:,} bytes, the limit is {limit:,}"
    return Unencodable((Problem(0, field, message, TOO_LARGE_HINT, "too_large"),))


def _opened(data: bytes, field: str) -> object:
    """Look into an envelope, of this version and with this one field."""
    try:
        envelope = as_object(_DECODE(data))
    except RecursionError:
        raise Undecodable("the payload is nested without end") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Undecodable("the payload is not JSON in UTF-8") from None
    if envelope is None or "v" not in envelope:
        raise Undecodable("the payload has no envelope with a version")
    version = envelope.pop("v")
    if type(version) is not int or version != ENVELOPE:
        said = str(version)[:20] if type(version) is int else "not a number"
        raise Undecodable(f"the envelope's version is {said}, this version of Fairlane reads {ENVELOPE}")
    if field not in envelope:
        raise Undecodable(f"the envelope has no field {field!r}")
    content = envelope.pop(field)
    if envelope:
        unknown = ", ".join(shown(name) for name in sorted(envelope)[:5])
        raise Undecodable(f"the envelope has unknown fields: {unknown}")
    return content
