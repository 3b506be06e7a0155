"""What the duty of a journal remembers from pass to pass, and from leader to leader. Knows no store.

The journal stores it as bytes, in the same step as the entries that it belongs to. So a new leader goes on
where the last one stopped: it repeats nothing and forgets nothing.

A duty of an older version keeps the fields that it does not know (S67). What it could only misread has a
higher `FORMAT`: it then leaves the journal to leaders of the newer version, and entries wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.folding import Fold, FoldKey
from fairlane.model.journal.sealing import Checkpoint, checkpoint_at, mark_of

FORMAT: Final = 1
"""The format of what is stored. It grows if an older version could only misread a newer one."""


class Subscriber(msgspec.Struct, frozen=True):
    """A task that gets events: the number of the last one it got, and when a worker last published it."""

    cursor: int
    seen_at: Instant


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What both memories have: fields of a newer version, by name, which are stored again as they were."""

    unknown: Mapping[str, msgspec.Raw] = {}


M = TypeVar("M", bound=_Memory)


class EventMemory(_Memory, frozen=True, kw_only=True):
    """The memory of the events.

    `is_alerting`: more dead letters than allowed were pending when they were last counted. At
    `expiry_looked_at` those that soon expire were last counted. `lost` counts events that were not kept and
    of which nobody was told yet.
    """

    folds: Mapping[FoldKey, Fold] = {}
    subscribers: Mapping[str, Subscriber] = {}
    is_alerting: bool = False
    expiry_looked_at: Instant = 0
    lost: int = 0


class AuditMemory(_Memory, frozen=True, kw_only=True):
    """The memory of the audit: the seal of its last entry, and where its chain begins.

    Entries from number `keyed_from` on are sealed under a key, of which `key_mark` is a mark; 0: none is.
    """

    seal: bytes = b""
    checkpoint: Checkpoint = Checkpoint()
    keyed_from: int = 0
    key_mark: bytes = b""

    @property
    def is_keyed(self) -> bool:
        """Whether the newest entries are sealed under a key."""
        return self.keyed_from > 0

    def problem_with(self, key: bytes | None) -> str | None:
        """Return why the chain cannot go on under this key, or without one; None if it can."""
        if not self.is_keyed:
            return None
        if key is None:
            return "the entries so far were sealed under a key, and this process has none"
        if mark_of(key) != self.key_mark:
            return "the entries so far were sealed under another key"
        return None

    def with_key(self, key: bytes | None, last: int) -> AuditMemory:
        """Return the memory of a chain that goes on under a key after its entry `last`.

        Earlier entries keep the seals that they have. The checkpoint is sealed anew.
        """
        if key is None or self.is_keyed:
            return self
        known = self.checkpoint
        checkpoint = known if known == Checkpoint() else checkpoint_at(known.number, known.seal, key)
        return msgspec.structs.replace(
            self, checkpoint=checkpoint, keyed_from=last + 1, key_mark=mark_of(key)
        )


def encode_memory(memory: _Memory) -> bytes:
    """Return a memory as bytes.

    >>> decode_memory(encode_memory(EventMemory(lost=5)), EventMemory).lost
    5
    """
    fields: dict[str, Any] = {
        name: getattr(memory, name) for name in memory.__struct_fields__ if name != "unknown"
    }
    return msgspec.msgpack.encode({**memory.unknown, **fields, "format": FORMAT})


def decode_memory(stored: bytes, kind: type[M]) -> M | None:
    """Return a memory from its bytes, a fresh one from none; None if only a newer version can read it."""
    if not stored:
        return kind()
    fields = msgspec.msgpack.decode(stored, type=dict[str, msgspec.Raw])
    if msgspec.msgpack.decode(fields.pop("format"), type=int) > FORMAT:
        return None
    memory = msgspec.msgpack.decode(stored, type=kind)
    unknown = {name: raw for name, raw in fields.items() if name not in kind.__struct_fields__}
    return msgspec.structs.replace(memory, unknown=unknown)
