"""Note in the audit that somebody looked at what is redacted for all others (S6, S60)."""

from __future__ import annotations

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import reason_of
from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.model.job import JobRecord
from fairlane.model.journal.operations import entry_of
from fairlane.store.contract.journal import AppendRequest


async def note_reveal(client: Client, job: JobRecord, action: str, reason: str) -> None:
    """Append the entry, with the reason. Show nothing before it has returned."""
    done = operation(action, note=reason_of(reason))
    if done is not None:
        entry = entry_of(done, str(job.id), job.tenant)
        await client.store.journal.append(
            AppendRequest(scope=scope_for(None), journal="audit", entries=(entry,))
        )
