"""Seal the entries of the audit into a chain, and find what was changed, removed or moved in one (S60).

The seal of an entry covers its number, its content and the seal before it, with HMAC-SHA256 under a key that
the store does not know. So whoever can write to the store but has no key can change nothing unseen. Without a
key the seal is a plain SHA-256: a checksum, which finds accidents and no forger.

What is removed at the end of its time leaves a checkpoint: the number and the seal of the last entry removed,
itself sealed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import Entry, NewEntry, PendingEntry

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_CHECKPOINT: Final = b"checkpoint"


class Checkpoint(msgspec.Struct, frozen=True):
    """Where a chain begins: the last entry that is no longer stored, and the seal of these two."""

    number: int = 0
    seal: bytes = b""
    sealed: bytes = b""


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong with a chain, at the number where it was found."""

    number: int
    problem: str


def seal_of(number: int, at: Instant, entry: NewEntry, before: bytes, key: bytes | None) -> bytes:
    """Return the seal of one entry, given that of the entry before it."""
    return _digest(_encode((number, at, entry, before.hex())), key)


def seal_all(
    pending: Iterable[PendingEntry], number: int, before: bytes, key: bytes | None
) -> tuple[Entry, ...]:
    """Return these entries numbered after `number` and sealed after the seal `before`.

    >>> first, second = seal_all([PendingEntry(1, 5, NewEntry(kind="a"))] * 2, 0, b"", None)
    >>> first.number, second.number, first.seal == second.seal
    (1, 2, False)
    """
    sealed: list[Entry] = []
    for one in pending:
        number += 1
        before = seal_of(number, one.at, one.entry, before, key)
        sealed.append(Entry(number, one.at, one.entry, before))
    return tuple(sealed)


def checkpoint_at(number: int, seal: bytes, key: bytes | None) -> Checkpoint:
    """Return the checkpoint that stands for all entries up to this one."""
    return Checkpoint(number, seal, _digest(_encode((_CHECKPOINT.decode(), number, seal.hex())), key))


def mark_of(key: bytes) -> bytes:
    """Return a mark by which a key is recognised, and from which it cannot be found.

    >>> mark_of(b"one") == mark_of(b"one"), mark_of(b"one") == mark_of(b"two")
    (True, False)
    """
    return _digest(b"mark", key)[:8]


class Verifier:
    """Reads a chain from its checkpoint on, page by page, and reports what is wrong with it.

    Entries before number `keyed_from` were sealed when there was no key.
    """

    def __init__(self, checkpoint: Checkpoint, key: bytes | None, keyed_from: int = 1) -> None:
        self._key = key
        self._keyed_from = keyed_from
        self._checkpoint = checkpoint
        self.number = checkpoint.number
        self.seal = checkpoint.seal

    def begin(self) -> Iterator[Finding]:
        """Report a checkpoint that somebody has changed."""
        mine = self._checkpoint
        if mine == Checkpoint():
            return
        if checkpoint_at(mine.number, mine.seal, self._key) != mine:
            yield Finding(mine.number, "the checkpoint was changed, or was made with another key")

    def read(self, entries: Iterable[Entry]) -> Iterator[Finding]:
        """Report what is wrong with the next entries, in the order of their numbers.

        After a finding the chain goes on from the entry as it is stored, so that one change is one finding.
        """
        for one in entries:
            if one.number != self.number + 1:
                gone = f"{self.number + 1} to {one.number - 1}"
                yield Finding(self.number + 1, f"entries {gone} are missing")
            elif not hmac.compare_digest(one.seal, self._expected(one)):
                yield Finding(one.number, "the entry was changed or moved, or was sealed with another key")
            self.number, self.seal = one.number, one.seal

    def _expected(self, one: Entry) -> bytes:
        key = self._key if one.number >= self._keyed_from else None
        return seal_of(one.number, one.at, one.entry, self.seal, key)

    def end(self, number: int, seal: bytes) -> Iterator[Finding]:
        """Report that entries are missing behind the last one, given the end that the store has noted."""
        if self.number < number:
            yield Finding(self.number + 1, f"entries {self.number + 1} to {number} are missing")
        elif (self.number, self.seal) != (number, seal):
            yield Finding(number, "the end of the chain is not the one that was noted")


def _digest(content: bytes, key: bytes | None) -> bytes:
    if key is None:
        return hashlib.sha256(content).digest()
    return hmac.new(key, content, hashlib.sha256).digest()
