"""Number the entries of the audit and seal them into their chain (S60). Reads no entry."""

from __future__ import annotations

from logging import getLogger
from typing import Final

import msgspec

from fairlane.app.journal_settings import AuditSettings
from fairlane.duties.journals.journal_end import JournalReader
from fairlane.duties.journals.trim import trim_audit
from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import HOUR, MINUTE, SECOND, Instant, Micros
from fairlane.model.journal.memory import AuditMemory, encode_memory
from fairlane.model.journal.sealing import seal_all
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES, NumberRequest

EVERY: Final[Micros] = 5 * SECOND
QUIET: Final[Micros] = 15 * SECOND
"""The pause while nothing was done."""

TRIM_EVERY: Final[Micros] = HOUR

_log: Final = getLogger("fairlane.duties")


class SealAudit:
    """Seals what waits, unless the chain is under a key that this process does not have."""

    def __init__(self, settings: AuditSettings) -> None:
        self._settings = settings
        self._reader = JournalReader("audit", AuditMemory)
        self._trimmed_at: Instant = 0
        self._has_said = False

    async def __call__(self, store: Store) -> Micros:
        """Take one pass; return the pause before the next, zero if there was more."""
        look = await self._reader.look(store, MAX_ENTRIES)
        if look is None:
            return MINUTE
        key = self._settings.key
        problem = look.memory.problem_with(key)
        if problem is not None:
            self._say(problem)
            return MINUTE
        if look.now - self._trimmed_at >= TRIM_EVERY:
            if await trim_audit(store, look, self._settings):
                return 0  # the journal is another one now
            self._trimmed_at = look.now
        if not look.entries:
            return QUIET
        memory = look.memory.with_key(key, look.end.last)
        sealed = seal_all(look.entries, look.end.last, memory.seal, key)
        request = NumberRequest(
            scope=Scope.all(),
            journal="audit",
            revision=look.end.revision,
            taken=tuple(one.place for one in look.entries),
            entries=sealed,
            memory=encode_memory(msgspec.structs.replace(memory, seal=sealed[-1].seal)),
        )
        is_mine = await store.journal.number(request)
        if not is_mine:
            return EVERY
        return Pause(0 if len(sealed) == MAX_ENTRIES else EVERY, counted(len(sealed), "sealed"))

    def _say(self, problem: str) -> None:
        if not self._has_said:
            self._has_said = True
            text = "the audit is not sealed here: %s; set the audit.key of the other workers"
            _log.error(text, problem, extra={"event": "audit_not_sealed"})
