"""Encode arguments and results as the JSON bytes that stores hold, and decode them (S5, S33, S34).

Knows no store and no schema. Never pickles and never looks a class up by a stored name. The format is
described in docs/reference/payload.md, also for other languages.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

import msgspec

from fairlane.model.errors import Problem
from fairlane.model.payload.enums import NO_ENUMS, enums_of
from fairlane.model.payload.paths import shown
from fairlane.model.payload.reading import MAX_DEPTH, PayloadReader, Undecodable
from fairlane.model.payload.tagged import as_object
from fairlane.model.payload.writing import TOO_LARGE_HINT, PayloadWriter, Unencodable, is_plain

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
"""The version of the envelope; it changes only if older readers could misread a new format."""

RESULT_SIZE: Final = 65_536

_ARGUMENTS: Final = b'{"v":%d,"arguments":' % ENVELOPE
_RESULT: Final = b'{"v":%d,"result":' % ENVELOPE
"""The start of an envelope; the content and a closing brace follow."""

_ENCODE = msgspec.json.Encoder().encode
_ENCODE_SORTED = msgspec.json.Encoder(order="deterministic").encode
_DECODE = msgspec.json.Decoder().decode
_NO_LIMIT: Final = 1 << 62


class _Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """An envelope of arguments, validated while it is decoded: a third of the time of validating it later."""

    v: int
    arguments: dict[str, Any]


_DECODE_ARGUMENTS = msgspec.json.Decoder(_Arguments).decode


class PayloadRules(msgspec.Struct, frozen=True):
    """How large and how deep a payload may be. The limit itself is allowed."""

    warn_over: int = 10_240
    max_size: int = 1_048_576
    max_depth: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise ValueError(f"max_depth is {self.max_depth}; it may be 1 to {MAX_DEPTH}")


_DEFAULT: Final = PayloadRules()


class Encoded(msgspec.Struct, frozen=True):
    """Encoded arguments. `large`: their size, with what is stored beside them, is over `warn_over`."""

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
    """Encode arguments so that they decode to the same types and values, or raise `Unencodable`.

    `beside` adds to the size: the bytes of what is stored with the arguments. With `enums`, members of other
    Enum classes are refused, since a worker could not read them.

    >>> encode_arguments({"to": "ada", "copies": 2}).data
    b'{"v":1,"arguments":{"to":"ada","copies":2}}'
    """
    content = _as_they_are(arguments)
    if content is None:
        writer = PayloadWriter("arguments", rules.max_depth, rules.max_size, enums)
        content = _ENCODE(writer.write(dict(arguments), 0))
    return _enclosed(content, rules, beside)


def encode_numbers(arguments: Mapping[str, Any], rules: PayloadRules, beside: int) -> Encoded:
    """Encode, in half the time of `encode_arguments`, arguments that satisfy `are_plain_numbers`.

    >>> encode_numbers({"copies": 2}, PayloadRules(), 0) == encode_arguments({"copies": 2})
    True
    """
    return _enclosed(_ENCODE(arguments), rules, beside)


def decode_arguments(
    data: bytes, *, enums: Mapping[str, type[Enum]] = NO_ENUMS, is_showing: bool = False
) -> dict[str, Any]:
    """Return the arguments that were encoded. Any other bytes raise `Undecodable`.

    `is_showing`: to display them only. An Enum member whose class is not among `enums` becomes text then.

    >>> decode_arguments(b'{"v":1,"arguments":{"due":{"$date":"2026-01-02"}}}')
    {'due': datetime.date(2026, 1, 2)}
    """
    found = _quickly(data)
    if found is not None and is_plain(found):
        return found
    content = _opened(data, "arguments") if found is None else found
    arguments = as_object(PayloadReader(enums, is_showing=is_showing).read(content, "arguments", 0))
    if arguments is None:
        raise Undecodable("arguments is not an object")
    return arguments


def _quickly(data: bytes) -> dict[str, Any] | None:
    """Return the content of a valid envelope; None if it is invalid, which `_opened` explains."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        envelope = _DECODE_ARGUMENTS(data)
        if envelope.v == ENVELOPE:
            return envelope.arguments
    return None


def encode_result(value: Any, *, max_size: int = RESULT_SIZE) -> bytes | None:
    """Encode a result like arguments; None is not stored.

    >>> encode_result({1, 2}), encode_result(None)
    (b'{"v":1,"result":{"$set":[1,2]}}', None)
    """
    if value is None:
        return None
    plain = PayloadWriter("result", _DEFAULT.max_depth, max_size).write(value, 1)
    data = _RESULT + _ENCODE(plain) + b"}"
    if len(data) > max_size:
        raise _oversized("result", len(data), max_size)
    return data


def decode_result(
    data: bytes | None, *, enums: Mapping[str, type[Enum]] = NO_ENUMS, is_showing: bool = False
) -> Any:
    """Return the result that was encoded. Any other bytes raise `Undecodable`; see `decode_arguments`."""
    if data is None:
        return None
    return PayloadReader(enums, is_showing=is_showing).read(_opened(data, "result"), "result", 1)


def checksum(data: bytes) -> int:
    """Return the CRC-32: it detects corruption, not tampering.

    >>> checksum(b"123456789") == 0xCBF43926
    True
    """
    return zlib.crc32(data)


def verify(data: bytes, checksum: int) -> None:
    """Raise `Undecodable` unless the bytes have this checksum."""
    found = zlib.crc32(data)
    if found != checksum:
        raise Undecodable(f"the bytes have checksum {found:08x}, they were stored with {checksum:08x}")


def fingerprint(task: str, arguments: Mapping[str, Any]) -> bytes:
    """Return 16 bytes that identify a call, to compare repeats of an idempotency key (S13).

    The order of dict keys and set members does not matter; types do. The arguments must be encodable.

    >>> fingerprint("mail", {"a": 1, "b": 2}) == fingerprint("mail", {"b": 2, "a": 1})
    True
    """
    return _fingerprint(task, PayloadWriter("arguments", MAX_DEPTH, _NO_LIMIT).write(dict(arguments), 0))


def stored_fingerprint(task: str, data: bytes) -> bytes:
    """Return the fingerprint of arguments that were encoded; `Undecodable` for any other bytes.

    >>> stored_fingerprint("mail", b'{"v":1,"arguments":{"a":1}}') == fingerprint("mail", {"a": 1})
    True
    """
    found = _quickly(data)
    return _fingerprint(task, _opened(data, "arguments") if found is None else found)


def _fingerprint(task: str, plain: object) -> bytes:
    # Task names contain no NUL (S3), so different calls have different bytes.
    return blake2b(task.encode() + b"\0" + _ENCODE_SORTED(plain), digest_size=16).digest()


def _enclosed(content: bytes, rules: PayloadRules, beside: int) -> Encoded:
    data = _ARGUMENTS + content + b"}"
    size = len(data) + beside
    if size > rules.max_size:
        raise _oversized("arguments", size, rules.max_size)
    return Encoded(data, zlib.crc32(data), size > rules.warn_over)


def _as_they_are(arguments: Mapping[str, Any]) -> bytes | None:
    """Encode arguments that need no conversion; None if they need one."""
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
    """Return the content of an envelope of this version with this one field."""
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
        found = str(version)[:20] if type(version) is int else "not a number"
        raise Undecodable(f"the envelope's version is {found}, this version of Fairlane reads {ENVELOPE}")
    if field not in envelope:
        raise Undecodable(f"the envelope has no field {field!r}")
    content = envelope.pop(field)
    if envelope:
        unknown = ", ".join(shown(name) for name in sorted(envelope)[:5])
        raise Undecodable(f"the envelope has unknown fields: {unknown}")
    return content
