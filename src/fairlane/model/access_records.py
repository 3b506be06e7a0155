"""What is kept of users, tokens, sessions and sign-in links, and what follows from it (S79, S80).

Only hashes of passwords and secrets are kept, and no record shows them. Knows no store, no request and no
password.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from fairlane.model.access import Principal, Role
from fairlane.model.instants import Instant, Micros

AccessKind: TypeAlias = Literal["user", "token", "session", "link"]

SEEN_EVERY: Final[Micros] = 60_000_000
"""How often the last use of something is noted at most."""

_HIDDEN: Final = frozenset({"password_hash", "secret_hash"})


class AccessKey(msgspec.Struct, frozen=True, order=True):
    """What a record is found by: the name of a user, the id of anything else."""

    kind: AccessKind
    name: str


class _Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What all records have in common: a key, and that they show no hash."""

    kind: ClassVar[AccessKind]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({values})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in msgspec.structs.asdict(self).items() if name not in _HIDDEN]


class UserRecord(_Record, frozen=True, kw_only=True, tag="user"):
    """Somebody who signs in with a password. With a `tenant`, nothing of other tenants exists for it.

    >>> str(UserRecord(name="ann", role=Role.ADMIN, password_hash="$argon2id$…", created_by="root"))[:47]
    "UserRecord(name='ann', role=<Role.ADMIN: 'admin"
    """

    kind: ClassVar[AccessKind] = "user"
    name: str
    role: Role
    password_hash: str
    tenant: str | None = None
    grants: tuple[str, ...] = ()
    disabled: bool = False
    created_by: str

    @property
    def key(self) -> AccessKey:
        """What it is found by."""
        return AccessKey("user", self.name)

    @property
    def password_mark(self) -> str:
        """Which password it is, without being it: it changes with every password that is set."""
        return sha256(self.password_hash.encode()).hexdigest()[:32]


class _WithSecret(_Record, frozen=True, kw_only=True):
    """What is opened by a secret, of which only the SHA-256 is kept."""

    id: str
    name: str
    secret_hash: bytes

    @property
    def key(self) -> AccessKey:
        """What it is found by."""
        return AccessKey(self.kind, self.id)

    def is_opened_by(self, secret: Secret) -> bool:
        """Whether this is its secret. Takes the same time for every wrong one."""
        return compare_digest(self.secret_hash, secret.hash)


class TokenRecord(_WithSecret, frozen=True, kw_only=True, tag="token"):
    """A bearer token of a program."""

    kind: ClassVar[AccessKind] = "token"
    role: Role
    tenant: str | None = None
    created_by: str


class SessionRecord(_WithSecret, frozen=True, kw_only=True, tag="session"):
    """A sign-in of a user, with the password of this mark; or by a link, with a role of its own."""

    kind: ClassVar[AccessKind] = "session"
    password_mark: str = ""
    role: Role | None = None
    peer: str = ""


class LinkRecord(_WithSecret, frozen=True, kw_only=True, tag="link"):
    """A link that signs somebody in once, without a user."""

    kind: ClassVar[AccessKind] = "link"
    role: Role


AccessRecord: TypeAlias = UserRecord | TokenRecord | SessionRecord | LinkRecord


class Secret(msgspec.Struct, frozen=True):
    """A secret as it is kept: its hash, and the id of what it opens, which is the beginning of the hash.

    The id tells nothing of the secret, which has 256 random bits.

    >>> Secret.of("fl_x").id
    '6e07c35214cca8f5fb82'
    """

    hash: bytes

    @classmethod
    def of(cls, text: str) -> Secret:
        """Return what is kept of a secret; any text has it."""
        return cls(sha256(text.encode("utf-8", "surrogatepass")).digest())

    @property
    def id(self) -> str:
        """The id of what it opens, 80 bits of the hash."""
        return self.hash[:10].hex()

    def __repr__(self) -> str:
        return f"Secret({self.id})"


class AccessRow(msgspec.Struct, frozen=True):
    """A record as a store keeps it. Its `revision` rises with every change, also over a removal."""

    record: AccessRecord
    revision: int
    created_at: Instant
    seen_at: Instant | None = None
    expires_at: Instant | None = None


def live(row: AccessRow | None, now: Instant) -> AccessRow | None:
    """Return what is there and has not expired.

    >>> link = LinkRecord(id="1", name="ann", secret_hash=b"", role=Role.ADMIN)
    >>> row = AccessRow(link, 1, 0, expires_at=7)
    >>> live(row, 6) is None, live(row, 7) is None
    (False, True)
    """
    return row if row is None or row.expires_at is None or row.expires_at > now else None


def next_row(
    row: AccessRow | None, record: AccessRecord, now: Instant, valid_for: Micros | None
) -> AccessRow:
    """Return the row of a record that replaces what is kept, if anything.

    The revision is no lower than the clock, so that what was removed and made again has another one.
    """
    revision = max(now, 1 if row is None else row.revision + 1)
    expires_at = None if valid_for is None else now + valid_for
    before = live(row, now)
    if before is None:
        return AccessRow(record, revision, now, None, expires_at)
    return AccessRow(record, revision, before.created_at, before.seen_at, expires_at)


def is_seen_again(row: AccessRow, now: Instant) -> bool:
    """Whether the last use that is noted is so old that this one is noted, too."""
    return row.seen_at is None or now - row.seen_at >= SEEN_EVERY


class Attempts(msgspec.Struct, frozen=True):
    """How often somebody has tried to sign in, until the count begins anew."""

    count: int
    until: Instant


def attempts_now(kept: Attempts | None, now: Instant, within: Micros) -> Attempts:
    """Return the count that is in force now: zero once the window of the stored one is over.

    >>> attempts_now(Attempts(3, until=7), 6, 100).count, attempts_now(Attempts(3, until=7), 7, 100).count
    (3, 0)
    """
    return kept if kept is not None and kept.until > now else Attempts(0, now + within)


def longest_wait(counts: Mapping[str, Attempts], most: Mapping[str, int], now: Instant) -> Micros:
    """Return how long nothing may be tried, because a label has had its most; 0 if something may.

    >>> [longest_wait({"ann": Attempts(count, until=9)}, {"ann": 5}, now=2) for count in (4, 5)]
    [0, 7]
    """
    return max((one.until - now for label, one in counts.items() if one.count >= most[label]), default=0)


def principal_of_session(session: SessionRecord, user: UserRecord | None) -> Principal | None:
    """Return who made a session, with the rights of now; None if it has ended.

    A session ends with its user, while the user is disabled, and when the password is set again.
    """
    if session.role is not None:
        return Principal(name=session.name, role=session.role, session=session.id)
    if user is None or user.disabled or not compare_digest(user.password_mark, session.password_mark):
        return None
    return msgspec.structs.replace(principal_of_user(user), how="session", session=session.id)


def principal_of_user(user: UserRecord) -> Principal:
    """Return somebody who has just shown the password."""
    return Principal(
        name=user.name, role=user.role, tenant=user.tenant, grants=frozenset(user.grants), how="basic"
    )


def principal_of_token(token: TokenRecord) -> Principal:
    """Return a program. No user has a name with a space."""
    return Principal(name=f"token {token.name}", role=token.role, tenant=token.tenant, how="token")


def audited(record: AccessRecord | None) -> Mapping[str, Any]:
    """Return what the audit says of a record: no hash, and nothing that the subject says.

    >>> audited(TokenRecord(id="1", name="ci", secret_hash=b"x", role=Role.VIEWER, created_by="ann"))
    {'name': 'ci', 'role': 'viewer'}
    """
    if record is None:
        return {}
    values = msgspec.structs.asdict(record)
    shown = {name: value for name, value in values.items() if name not in _UNTOLD and value not in _NOTHING}
    if isinstance(record, UserRecord):
        del shown["name"]
    return {name: value.value if isinstance(value, Role) else value for name, value in shown.items()}


_NOTHING: Final = (None, "", ())
_UNTOLD: Final = frozenset({*_HIDDEN, "id", "password_mark", "created_by"})
