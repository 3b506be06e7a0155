"""Turn a password, a link, a cookie or a token into who makes a request, or into nobody (S80, S81).

Every question goes to the store, so that what was revoked is revoked at once. Knows no request.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from logging import getLogger
from typing import Any, Final, TypeVar

import msgspec

from fairlane.app.access.attempts import AttemptLimits
from fairlane.app.access.checks import lifetime_of, role_of
from fairlane.app.access.passwords import is_password
from fairlane.app.access.proven import ProvenPasswords
from fairlane.app.access.records import AccessRecords, FoundRecord
from fairlane.app.access.secret_text import new_secret, secret_of
from fairlane.app.acting import checked_actor, current_actor
from fairlane.app.fairlane import Fairlane
from fairlane.model.access import Principal, Role
from fairlane.model.access_records import (
    AccessKey,
    LinkRecord,
    SessionRecord,
    TokenRecord,
    UserRecord,
    is_seen_again,
    principal_of_session,
    principal_of_token,
    principal_of_user,
)
from fairlane.model.errors import StoreError
from fairlane.model.instants import HOUR, SECOND, Duration, Micros, to_datetime
from fairlane.model.journal.operations import Operation
from fairlane.model.names import tenant_hint
from fairlane.model.scope import Scope
from fairlane.store.contract.access import AccessChange, SeenRequest

SESSION_LIFETIME: Final[Micros] = 12 * HOUR
"""Until when a session is valid: for a working day."""

_LONGEST_PEER: Final = 100

R = TypeVar("R", LinkRecord, SessionRecord, TokenRecord)

_log: Final = getLogger("fairlane.access")


class SignedIn(msgspec.Struct, frozen=True):
    """Somebody who has just signed in, and the secret of the session, for a cookie."""

    principal: Principal
    secret: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"SignedIn({self.principal!r}, expires_at={self.expires_at!r})"


class SignIn:
    """Signs people in and knows them again. All calls are async; they serve all tenants."""

    def __init__(self, app: Fairlane, *, session_lifetime: Duration = SESSION_LIFETIME / SECOND) -> None:
        self._client = app.client
        self._records = AccessRecords(app.client)
        self._attempts = AttemptLimits(app.client)
        self._proven = ProvenPasswords(app.client)
        self._lifetime = lifetime_of("session_lifetime", session_lifetime)

    async def has_users(self) -> bool:
        """Whether anybody can sign in with a password."""
        return bool(await self._records.all("user"))

    async def with_password(self, name: str, password: str, *, peer: str) -> SignedIn | None:
        """Begin a session of a user; None if name and password do not fit, whatever the cause.

        `peer` is the address that the attempt comes from. `TooManyAttempts` if too many have failed.
        """
        user = await self._user_with(name, password, peer)
        if user is None:
            return None
        return await self._begin(principal_of_user(user), peer, password_mark=user.password_mark)

    async def check_password(self, name: str, password: str, *, peer: str) -> Principal | None:
        """Return the user of a name and password, without a session: for requests that bring both each time.

        A password that was right is not hashed again for some minutes, while it is still the user's.
        """
        user = await self._user(name)
        if user is not None and not user.disabled and self._proven.has(user, password):
            return principal_of_user(user)
        user = await self._user_with(name, password, peer)
        if user is None:
            return None
        self._proven.add(user, password)
        return principal_of_user(user)

    async def with_link(self, secret: str, *, peer: str) -> SignedIn | None:
        """Begin a session by a link that was not used yet; None for any other secret."""
        found = await self._opened(LinkRecord, secret)
        if found is None:
            return None
        link = found.record
        return await self._begin(Principal(name=link.name, role=link.role), peer, role=link.role, used=found)

    async def with_session(self, secret: str) -> Principal | None:
        """Return who signed in, with the rights of now; None if the session has ended."""
        found = await self._opened(SessionRecord, secret)
        if found is None:
            return None
        session = found.record
        by_link = session.role is not None
        user = None if by_link else await self._records.find(UserRecord, AccessKey("user", session.name))
        principal = principal_of_session(session, None if user is None else user.record)
        if principal is not None:
            await self._note_seen(found, user)
        return principal

    async def with_token(self, secret: str) -> Principal | None:
        """Return the program that has a token; None if it has expired, is revoked, or never was."""
        found = await self._opened(TokenRecord, secret)
        if found is None:
            return None
        await self._note_seen(found)
        return principal_of_token(found.record)

    async def with_name(self, name: str, *, otherwise: Role | None = None) -> Principal | None:
        """Return the user of a name that whoever asks has proved elsewhere; None if it may not sign in.

        A name that is no user's has the role `otherwise`, or is nobody.
        """
        if tenant_hint(name) is not None:
            return None
        found = await self._records.find(UserRecord, AccessKey("user", name))
        if found is None:
            return None if otherwise is None else Principal(name=name, role=otherwise, how="proxy")
        if found.record.disabled:
            return None
        await self._note_seen(found)
        return msgspec.structs.replace(principal_of_user(found.record), how="proxy")

    async def make_link(self, *, role: Role, name: str, valid_for: Duration) -> str:
        """Return the secret of a link that signs somebody in once, with this role and name."""
        text, secret = new_secret()
        lifetime = lifetime_of("valid_for", valid_for)
        link = LinkRecord(
            id=secret.id, secret_hash=secret.hash, name=checked_actor("name", name), role=role_of(role)
        )
        done = Operation(action="links.create", actor=current_actor(), origin="web")
        await self._records.add(link, done, lifetime)
        return text

    async def end_session(self, id: str) -> bool:
        """End a session, as its user asks to; False if it has ended already."""
        key = AccessKey("session", id)
        found = await self._records.find(SessionRecord, key) if id.isalnum() else None
        if found is None:
            return False
        done = Operation(action="sessions.end", actor=found.record.name, origin="web")
        return await self._records.write(found.removal, operation=done)

    # ── passwords ─────────────────────────────────────────────────────────────

    async def _user(self, name: str) -> UserRecord | None:
        """Return a user. A name that none can have is looked for as well: that takes the same time."""
        key = AccessKey("user", name if tenant_hint(name) is None else "-")
        found = await self._records.find(UserRecord, key)
        return None if found is None else found.record

    async def _user_with(self, name: str, password: str, peer: str) -> UserRecord | None:
        """Return the user with this name and password. An attempt that fails counts."""
        labels = await self._attempts.begin(name, peer)
        user = await self._user(name)
        may = user is not None and not user.disabled
        is_right = await is_password(password, user.password_hash if user is not None and may else None)
        if user is None or not is_right:
            _log.info("an attempt to sign in failed", extra={"event": "sign_in_failed", "peer": peer})
            return None
        await self._attempts.forgive(labels)
        return user

    # ── sessions ──────────────────────────────────────────────────────────────

    async def _begin(
        self,
        whose: Principal,
        peer: str,
        *,
        password_mark: str = "",
        role: Role | None = None,
        used: FoundRecord[LinkRecord] | None = None,
    ) -> SignedIn | None:
        """Make a session; None if the link that it is made by was used meanwhile."""
        text, secret = new_secret()
        session = SessionRecord(
            id=secret.id,
            secret_hash=secret.hash,
            name=whose.name,
            password_mark=password_mark,
            role=role,
            peer=peer[:_LONGEST_PEER],
        )
        begun = AccessChange(key=session.key, record=session, valid_for=self._lifetime)
        done = Operation(action="sessions.begin", actor=whose.name, origin="web")
        changes = (begun,) if used is None else (begun, used.removal)
        if not await self._records.write(*changes, operation=done):
            return None
        (row,) = (await self._records.read(session.key)).rows
        principal = msgspec.structs.replace(whose, how="session", session=session.id)
        return SignedIn(principal, text, to_datetime(row.expires_at or 0))

    async def _note_seen(self, *found: FoundRecord[Any] | None) -> None:
        """Note that these were used, once a minute; a store that takes no writes keeps nobody out."""
        keys = tuple(
            one.row.record.key for one in found if one is not None and is_seen_again(one.row, one.now)
        )
        if keys:
            with suppress(StoreError):
                await self._client.store.access.note_seen(SeenRequest(scope=Scope.all(), keys=keys))

    # ── secrets ───────────────────────────────────────────────────────────────

    async def _opened(self, kind: type[R], text: str) -> FoundRecord[R] | None:
        """Return what a secret opens, compared whole."""
        secret = secret_of(text)
        if secret is None:
            return None
        found = await self._records.find(kind, AccessKey(kind.kind, secret.id))
        return found if found is not None and found.record.is_opened_by(secret) else None
