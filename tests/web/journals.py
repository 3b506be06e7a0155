"""Do what the duties of the journals do: number the events, seal the audit."""

from __future__ import annotations

from fairlane import Fairlane
from fairlane.duties.journals.seal_audit import SealAudit
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.store.contract import Store


async def number_entries(app: Fairlane, store: Store) -> None:
    """Give every entry of both journals its number."""
    for duty in (SealAudit(app.settings.audit), TellEvents(app.settings)):
        while not await duty(store):
            pass
