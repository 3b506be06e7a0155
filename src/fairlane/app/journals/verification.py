"""Verify the chain of the audit against what its duty has noted (S60). Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlane.app.journals.reading import oldest_first
from fairlane.app.journals.views import AuditProblem, AuditReport
from fairlane.model.errors import ConfigError, SchemaTooNew, StoreBusy
from fairlane.model.journal.memory import AuditMemory, decode_memory
from fairlane.model.journal.sealing import Finding, Verifier
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import (
    MAX_ENTRIES,
    EntriesRequest,
    JournalEnd,
    PendingRequest,
)

_TRIES: Final = 5


async def verify_chain(store: Store, key: bytes | None) -> AuditReport:
    """Read the chain from its checkpoint to its end; again, if its beginning was removed meanwhile."""
    for _ in range(_TRIES):
        end, memory, unsealed = await _look(store)
        problem = memory.problem_with(key)
        if problem is not None:
            raise ConfigError(f"{problem}.", key="audit.key", allowed="the key of the workers that seal it")
        problems, sealed = await _read(store, end, memory, key)
        if (await _look(store))[1].checkpoint == memory.checkpoint:
            return AuditReport(
                problems=tuple(AuditProblem(number=one.number, problem=one.problem) for one in problems),
                first=memory.checkpoint.number + 1 if end.last else 0,
                last=end.last,
                sealed=sealed,
                unsealed=unsealed,
                is_keyed=memory.is_keyed,
                keyed_from=memory.keyed_from,
            )
    raise StoreBusy("the audit is being trimmed all the time; verify it later")


async def _look(store: Store) -> tuple[JournalEnd, AuditMemory, int]:
    """Return the end of the chain, what its duty has noted, and how many entries are not sealed yet."""
    request = PendingRequest(scope=Scope.all(), journal="audit", limit=MAX_ENTRIES)
    reply = await store.journal.pending(request)
    memory = decode_memory(reply.end.memory, AuditMemory)
    if memory is None:
        raise SchemaTooNew("a newer version of Fairlane seals this audit; verify it with that version")
    return reply.end, memory, len(reply.entries)


async def _read(
    store: Store, end: JournalEnd, memory: AuditMemory, key: bytes | None
) -> tuple[list[Finding], int]:
    """Return what is wrong with the entries up to the end, and how many there are."""
    checkpoint = memory.checkpoint
    verifier = Verifier(checkpoint, key, memory.keyed_from) if memory.is_keyed else Verifier(checkpoint, None)
    found = list(verifier.begin())
    sealed = 0
    # From the very first, not from the checkpoint: what is stored below it was put there by somebody.
    request = EntriesRequest(scope=Scope.all(), journal="audit")
    async for entries in oldest_first(store, request):
        within = [one for one in entries if one.number <= end.last]
        found += _below(one.number for one in within if one.number <= checkpoint.number)
        chain = [one for one in within if one.number > checkpoint.number]
        found += verifier.read(chain)
        sealed += len(chain)
    found += verifier.end(end.last, memory.seal)
    return found, sealed


def _below(numbers: Iterable[int]) -> list[Finding]:
    return [Finding(number, "the entry is before the checkpoint, and should be gone") for number in numbers]
