"""`/sessions`: who is signed in (S80). Signing oneself out is not here: that needs no permission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fairlane.app.access.views import Session
from fairlane.model.access import Role
from fairlane.model.access_errors import SessionNotFound
from fairlane.web.call import WebCall
from fairlane.web.declare import Change, EndpointGroup

SESSIONS: Final = EndpointGroup("sessions", "Sessions: who is signed in with a browser, and ending that.")


class SessionList(msgspec.Struct, frozen=True):
    """The sessions that have not ended, the newest first."""

    items: Sequence[Session]


@SESSIONS.get("/sessions", "sessions.find", least=Role.ADMIN, tenants="all")
async def find(call: WebCall) -> SessionList:
    """Return the sessions that have not ended: who, from where, last seen, until when."""
    return SessionList(await call.app.sessions.alist())


@SESSIONS.post(
    "/sessions/{session}/end",
    "sessions.end",
    least=Role.ADMIN,
    tenants="all",
    done="Session {session} has ended.",
)
async def end(call: WebCall, session: str, body: Change) -> Session:
    """End a session, at once. Returns the session as it was."""
    found = next((one for one in await call.app.sessions.alist() if one.id == session), None)
    if found is None:
        raise SessionNotFound(session)
    await call.app.sessions.aend(session, note=body.note)
    return found
