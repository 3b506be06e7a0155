"""`app.sessions`: who is signed in, and ending that (S80)."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.app.access.records import AccessRecords
from fairlane.app.access.users import NOT_INSIDE
from fairlane.app.access.views import Session, session_view
from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import text_of
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.access_errors import SessionNotFound
from fairlane.model.access_records import AccessKey, SessionRecord, UserRecord, principal_of_session
from fairlane.model.checking import instance


class Sessions:
    """The sessions of a store. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._records = AccessRecords(client)

    def list(self) -> Sequence[Session]:
        """Return the sessions that have not ended, the newest first."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[Session]:
        """Return the sessions that have not ended, the newest first."""
        scope_of_all(NOT_INSIDE)
        users = await self._records.all("user")
        known = {row.record.name: row.record for row in users if isinstance(row.record, UserRecord)}
        found: list[Session] = []
        for row in await self._records.all("session"):
            if isinstance(row.record, SessionRecord):
                whose = principal_of_session(row.record, known.get(row.record.name))
                if whose is not None:
                    found.append(session_view(row, row.record, whose.role, whose.tenant))
        return tuple(sorted(found, key=lambda session: (session.created_at, session.id), reverse=True))

    def end(self, id: str, *, note: str = "") -> None:
        """End a session; `SessionNotFound` if there is none with this id."""
        self._client.portal.run(self.aend(id, note=note))

    async def aend(self, id: str, *, note: str = "") -> None:
        """End a session; `SessionNotFound` if there is none with this id."""
        scope_of_all(NOT_INSIDE)
        instance("id", id, str, "the id of a session")
        done = operation("sessions.end", note=text_of("note", note))

        async def change() -> bool:
            found = (
                await self._records.find(SessionRecord, AccessKey("session", id)) if id.isalnum() else None
            )
            if found is None:
                raise SessionNotFound(id)
            return await self._records.write(found.removal, operation=done)

        await self._records.retry(change)
