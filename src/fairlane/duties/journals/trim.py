"""Remove what the journals have kept long enough (S60, S76). Each call removes one bounded page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import msgspec

from fairlane.app.journal_settings import AuditSettings, EventSettings
from fairlane.duties.journals.journal_end import JournalLook
from fairlane.model.journal.entries import Entry, JournalName
from fairlane.model.journal.memory import AuditMemory, EventMemory, encode_memory
from fairlane.model.journal.publishing import removable_up_to
from fairlane.model.journal.sealing import checkpoint_at
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, TrimRequest

SLACK: Final = 10
"""More events than allowed are stored by a part of this size before it is worth a pass."""


def is_full(look: JournalLook[EventMemory], events: EventSettings) -> bool:
    """Whether more events are stored than should be."""
    stored = look.end.last - look.end.first + 1
    return look.end.first > 0 and stored > events.most + events.most // SLACK


async def trim_events(store: Store, look: JournalLook[EventMemory], events: EventSettings) -> bool:
    """Remove old events, and all but the newest. False: nothing was removed."""
    before = look.now - events.keep

    def up_to(oldest: Sequence[Entry]) -> int:
        return removable_up_to(oldest, look.memory, last=look.end.last, most=events.most, before=before)

    if not up_to(await _oldest(store, "events", 1)):
        return False
    page = await _oldest(store, "events", MAX_ENTRIES)
    number = up_to(page)
    if not number:  # another leader was faster
        return False
    request = TrimRequest(
        scope=Scope.all(),
        journal="events",
        revision=look.end.revision,
        up_to=number,
        memory=encode_memory(look.memory),
    )
    return await store.journal.trim(request)


async def trim_audit(store: Store, look: JournalLook[AuditMemory], audit: AuditSettings) -> bool:
    """Remove old entries of the audit and leave a checkpoint. False: nothing was removed."""
    before = look.now - audit.keep
    page = await _oldest(store, "audit", 1)
    if not page or page[0].at > before:
        return False
    old = [*takewhile(lambda one: one.at <= before, await _oldest(store, "audit", MAX_ENTRIES))]
    if not old:  # another leader was faster
        return False
    checkpoint = checkpoint_at(old[-1].number, old[-1].seal, audit.key)
    request = TrimRequest(
        scope=Scope.all(),
        journal="audit",
        revision=look.end.revision,
        up_to=checkpoint.number,
        memory=encode_memory(msgspec.structs.replace(look.memory, checkpoint=checkpoint)),
    )
    return await store.journal.trim(request)


async def _oldest(store: Store, journal: JournalName, limit: int) -> tuple[Entry, ...]:
    return (
        await store.journal.entries(EntriesRequest(scope=Scope.all(), journal=journal, limit=limit))
    ).entries
