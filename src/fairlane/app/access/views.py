"""What operators see of users, tokens and sessions: never a hash, and a secret once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fairlane.model.access import Role
from fairlane.model.access_records import AccessRow, SessionRecord, TokenRecord, UserRecord
from fairlane.model.instants import Instant, to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who may sign in with a password, unless `disabled`.

    With a `tenant`, nothing of other tenants exists for the user. `grants` are single actions that it may do
    beside those of its role. `seen_at` is when it was last seen, to the minute; None: never.
    """

    name: str
    role: Role
    tenant: str | None
    grants: Sequence[str]
    disabled: bool
    created_at: datetime
    created_by: str
    seen_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token of a program. `seen_at` is when it was last used, to the minute; None: never."""

    id: str
    name: str
    role: Role
    tenant: str | None
    created_at: datetime
    created_by: str
    seen_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was just made, and its secret, which nobody can show again."""

    token: Token
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who is signed in, with the rights of now. `user` is the name, `peer` the address."""

    id: str
    user: str
    role: Role
    tenant: str | None
    peer: str
    created_at: datetime
    seen_at: datetime | None
    expires_at: datetime


def user_view(row: AccessRow, user: UserRecord) -> User:
    """Return the view of a user."""
    return User(
        name=user.name,
        role=user.role,
        tenant=user.tenant,
        grants=user.grants,
        disabled=user.disabled,
        created_at=to_datetime(row.created_at),
        created_by=user.created_by,
        seen_at=_time(row.seen_at),
    )


def token_view(row: AccessRow, token: TokenRecord) -> Token:
    """Return the view of a token."""
    return Token(
        id=token.id,
        name=token.name,
        role=token.role,
        tenant=token.tenant,
        created_at=to_datetime(row.created_at),
        created_by=token.created_by,
        seen_at=_time(row.seen_at),
        expires_at=_time(row.expires_at),
    )


def session_view(row: AccessRow, session: SessionRecord, role: Role, tenant: str | None) -> Session:
    """Return the view of a session that has not ended."""
    return Session(
        id=session.id,
        user=session.name,
        role=role,
        tenant=tenant,
        peer=session.peer,
        created_at=to_datetime(row.created_at),
        seen_at=_time(row.seen_at),
        expires_at=to_datetime(row.expires_at or 0),
    )


def _time(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)
