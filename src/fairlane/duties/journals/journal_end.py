"""Read where a journal ends, what waits for a number, and what its duty remembers. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from logging import getLogger
from typing import Final, Generic, TypeVar

import msgspec

from fairlane.model.instants import Instant
from fairlane.model.journal.entries import JournalName, PendingEntry
from fairlane.model.journal.memory import AuditMemory, EventMemory, decode_memory
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import JournalEnd, PendingRequest

M = TypeVar("M", EventMemory, AuditMemory)

_log: Final = getLogger("fairlane.duties")


class JournalLook(msgspec.Struct, Generic[M], frozen=True):
    """A journal at one moment: entries without a number, its end, its memory, and the store's now."""

    entries: Sequence[PendingEntry]
    end: JournalEnd
    memory: M
    now: Instant


class JournalReader(Generic[M]):
    """Reads the end of one journal. Says once if only a newer version can read its memory."""

    def __init__(self, journal: JournalName, kind: type[M]) -> None:
        self._journal: JournalName = journal
        self._kind: type[M] = kind
        self._has_said = False

    async def look(self, store: Store, limit: int) -> JournalLook[M] | None:
        """Return the journal as it is; None if its duty must leave it to a newer version."""
        request = PendingRequest(scope=Scope.all(), journal=self._journal, limit=limit)
        reply = await store.journal.pending(request)
        memory = decode_memory(reply.end.memory, self._kind)
        if memory is not None:
            return JournalLook(reply.entries, reply.end, memory, reply.now)
        if not self._has_said:
            self._has_said = True
            text = "a newer version of Fairlane numbers the %s; entries wait until one of its workers leads"
            _log.warning(text, self._journal, extra={"event": "journal_too_new", "journal": self._journal})
        return None
