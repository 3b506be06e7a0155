"""Check the journals: entries without a number, lost events, subscribers that are behind. Reads only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from fairlane.app.journal_settings import AuditSettings
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import ALL
from fairlane.model.durations import ago
from fairlane.model.instants import MINUTE, Micros
from fairlane.model.journal.entries import JournalName
from fairlane.model.journal.kinds import EventKind
from fairlane.model.journal.memory import AuditMemory, EventMemory, decode_memory
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, PendingReply, PendingRequest

WAITED_FOR: Final[Micros] = MINUTE
"""A leader numbers entries within seconds."""

_SHOWN: Final = 5
_NO_LEADER: Final = "Start `fairlane scheduler`, or a worker with duties enabled."
_KEY: Final = "Set audit.key for every process that does the duties to the key that sealed the audit so far."
_WORDS: Final[dict[JournalName, str]] = {"events": "events", "audit": "entries of the audit"}


async def check_journals(store: Store, audit: AuditSettings) -> list[CheckResult]:
    """Report what waits, what was lost, and who is behind."""
    events, sealed = await _look(store, "events"), await _look(store, "audit")
    found = [*_waiting("events", events, _NO_LEADER), *_waiting("audit", sealed, _advice(audit, sealed))]
    found += [one async for one in _lost(store, events)]
    found += [one async for one in _behind(store, events)]
    return found or [CheckResult("events", "ok", "all events are told, and the audit is sealed")]


async def _look(store: Store, journal: JournalName) -> PendingReply:
    return await store.journal.pending(PendingRequest(scope=ALL, journal=journal, limit=1))


def _waiting(journal: JournalName, reply: PendingReply, advice: str) -> Iterator[CheckResult]:
    if reply.entries and reply.now - reply.entries[0].at > WAITED_FOR:
        since = ago(reply.entries[0].at, reply.now)
        what = f"{_WORDS[journal]} wait for their numbers; the oldest was appended {since}."
        yield CheckResult(journal, "warn", what, advice)


def _advice(settings: AuditSettings, audit: PendingReply) -> str:
    memory = decode_memory(audit.end.memory, AuditMemory)
    has_problem = memory is not None and memory.problem_with(settings.key) is not None
    return _KEY if has_problem else _NO_LEADER


async def _lost(store: Store, reply: PendingReply) -> AsyncIterator[CheckResult]:
    memory = decode_memory(reply.end.memory, EventMemory)
    kinds = frozenset({EventKind.EVENTS_LOST.value})
    request = EntriesRequest(scope=ALL, journal="events", kinds=kinds, backwards=True, limit=MAX_ENTRIES)
    told = (await store.journal.entries(request)).entries
    lost = sum(one.entry.count for one in told) + (0 if memory is None else memory.lost)
    if lost:
        what = f"{lost} events were lost: a subscriber was too far behind for them to be kept."
        advice = "See why it is behind, or raise events.most."
        yield CheckResult("events", "warn", what, advice, "lost")


async def _behind(store: Store, reply: PendingReply) -> AsyncIterator[CheckResult]:
    memory = decode_memory(reply.end.memory, EventMemory)
    cursors = {} if memory is None else {task: one.cursor for task, one in memory.subscribers.items()}
    lags = sorted((cursor, task) for task, cursor in cursors.items() if cursor < reply.end.last)
    for cursor, task in lags[:_SHOWN]:
        request = EntriesRequest(scope=ALL, journal="events", after=cursor, limit=1)
        page = await store.journal.entries(request)
        if page.entries and reply.now - page.entries[0].at > WAITED_FOR:
            since = ago(page.entries[0].at, reply.now)
            what = f"subscriber {task} is {reply.end.last - cursor} events behind; the first is from {since}."
            advice = "See whether its queue is closed or full, and whether a worker does the duties."
            yield CheckResult("events", "warn", what, advice, f"subscriber {task}")
