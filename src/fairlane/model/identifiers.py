"""Make job ids: version-7 UUIDs that sort by time and never decrease inside a process.

Made by hand: the time must be an argument (tests drive the clock), the order must hold within a millisecond
and when the clock steps back, and a slot of a schedule must always have the same id (S57).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from struct import Struct
from typing import Final
from uuid import UUID

import msgspec

from fairlane.model.instants import Instant

_VARIANT: Final = 0b10 << 62
_VERSION: Final = 7 << 12
_COUNTER_BITS: Final = 42
_RANDOM_BITS: Final = 32
_RANDOM_BYTES: Final = _RANDOM_BITS // 8
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BASE32_LENGTH: Final = 26

# A batch of ids is written as msgpack and read by its decoder, which makes a `UUID` in a fifth of the time of
# `UUID.__init__`.
_MANY_AHEAD: Final = b"\xdd"
_PACK_ID: Final = Struct(">HQQ").pack
_ID_AHEAD: Final = 0xC410
_READ_IDS: Final = msgspec.msgpack.Decoder(list[UUID]).decode


class IdMaker:
    """Makes ids that grow: 48 bits of milliseconds, a 42-bit counter seeded at random, 32 random bits.

    >>> maker = IdMaker(lambda bits: 0)
    >>> first, second = maker.next(1_000_000), maker.next(999_000)
    >>> first < second, made_at(second)
    (True, 1000000)
    """

    def __init__(self, draw_bits: Callable[[int], int]) -> None:
        """`draw_bits(n)` returns n random bits, as `random.SystemRandom().getrandbits` does."""
        self._draw_bits = draw_bits
        self._millis = -1
        self._counter = 0

    def next(self, now: Instant) -> UUID:
        """Return an id greater than all before, even if the clock stood still or went back."""
        (id,) = self.many(now, 1)
        return id

    def many(self, now: Instant, count: int) -> list[UUID]:
        """Return that many ids with a single draw of random bits: each draw is a system call.

        >>> IdMaker(lambda bits: 0).many(1_000_000, 2)[1]
        UUID('00000000-03e8-7000-8000-000100000000')
        """
        drawn = self._draw_bits(_RANDOM_BITS * count).to_bytes(_RANDOM_BYTES * count, "big")
        first = self._count(now // 1000, count)
        halves = (_halves(self._millis, *one) for one in enumerate(memoryview(drawn).cast("I"), first))
        ids = b"".join([_PACK_ID(_ID_AHEAD, high, low) for high, low in halves])
        return _READ_IDS(_MANY_AHEAD + count.to_bytes(4, "big") + ids)

    def _count(self, millis: int, count: int) -> int:
        """Reserve numbers of one millisecond, the current or a newer one; return the first."""
        if millis > self._millis:
            self._millis = millis
            # The top bit stays free, so that a busy millisecond can count up.
            first = self._draw_bits(_COUNTER_BITS - 1)
        else:
            first = self._counter + 1
        if first + count > 1 << _COUNTER_BITS:
            self._millis += 1
            first = 0
        self._counter = first + count - 1
        return first


def slot_id(tenant: str, schedule: str, slot: Instant) -> UUID:
    """Derive the id of a schedule's slot: the same arguments always give the same id.

    >>> slot_id("acme", "nightly", 60_000_000) == slot_id("acme", "nightly", 60_000_000)
    True
    >>> made_at(slot_id("acme", "nightly", 60_000_000))
    60000000
    """
    # Lengths first: ("ab", "c") and ("a", "bc") must not meet.
    text = f"{len(tenant)}:{tenant}{len(schedule)}:{schedule}{slot}".encode()
    digest = hashlib.blake2b(text, digest_size=10).digest()
    count, tail = divmod(int.from_bytes(digest, "big") >> 6, 1 << _RANDOM_BITS)
    high, low = _halves(slot // 1000, count, tail)
    return UUID(int=high << 64 | low)


def made_at(id: UUID) -> Instant:
    """Read the millisecond in which an id was made.

    >>> made_at(UUID("00000000-03e8-7000-8000-000000000000"))
    1000000
    """
    return (id.int >> 80) * 1000


def to_base32(id: UUID) -> str:
    """Return an id as 26 characters that sort like it and cannot be misread.

    >>> to_base32(UUID(int=33))
    '00000000000000000000000011'
    """
    value = id.int
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


def parse_id(text: str | UUID) -> UUID:
    """Read an id in either form; ValueError names the forms.

    >>> parse_id(to_base32(UUID(int=33))) == parse_id("00000000-0000-0000-0000-000000000021") == UUID(int=33)
    True
    """
    if isinstance(text, UUID):
        return text
    try:
        found = UUID(int=_from_base32(text)) if len(text) == _BASE32_LENGTH else UUID(text)
        # Accept only canonical forms: `UUID` also reads braces, signs, spaces and other scripts' digits.
        if text.lower() in {str(found), found.hex, to_base32(found).lower()}:
            return found
    except ValueError:
        pass
    message = f"{text[:60]!r} is no job id; give a UUID or its 26-character form"
    raise ValueError(message)


def _from_base32(text: str) -> int:
    value = 0
    for letter in text.upper():
        value = value << 5 | _ALPHABET.index(letter)
    return value


def _halves(millis: int, count: int, tail: int) -> tuple[int, int]:
    """Place 48 bits of time, 42 of a count and 32 others around version and variant; return two halves."""
    return millis << 16 | _VERSION | count >> 30, _VARIANT | (count & (1 << 30) - 1) << _RANDOM_BITS | tail
