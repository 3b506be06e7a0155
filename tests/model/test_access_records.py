"""What is kept of users, tokens and sessions, and who they make somebody (S79, S80)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.access import Role
from fairlane.model.access_records import (
    SEEN_EVERY,
    AccessKey,
    AccessRow,
    LinkRecord,
    Secret,
    SessionRecord,
    TokenRecord,
    UserRecord,
    audited,
    is_seen_again,
    next_row,
    principal_of_session,
    principal_of_token,
    principal_of_user,
)

SECRET = Secret.of("fl_secret")
ANN = UserRecord(
    name="ann",
    role=Role.OPERATOR,
    password_hash="$argon2id$x",
    tenant="acme",
    grants=("jobs.edit",),
    created_by="root",
)
TOKEN = TokenRecord(
    id="1", name="ci", secret_hash=SECRET.hash, role=Role.VIEWER, tenant="acme", created_by="ann"
)
SESSION = SessionRecord(
    id="2", name="ann", secret_hash=SECRET.hash, password_mark=ANN.password_mark, peer="::1"
)


def test_a_record_is_found_by_its_name_or_by_its_id() -> None:
    """Users are few and known by name; whatever has a secret is known by an id that says nothing of it."""
    assert ANN.key == AccessKey("user", "ann")
    assert (TOKEN.key, SESSION.key) == (AccessKey("token", "1"), AccessKey("session", "2"))


def test_a_secret_opens_its_own_record_alone() -> None:
    """S80: only its hash is compared, and nothing shows it."""
    assert TOKEN.is_opened_by(SECRET)
    assert not TOKEN.is_opened_by(Secret.of("fl_other"))
    assert repr(SECRET) == f"Secret({SECRET.id})"
    assert SECRET.id == SECRET.hash.hex()[:20]


@pytest.mark.parametrize("record", [ANN, TOKEN, SESSION])
def test_no_record_shows_a_hash(record: UserRecord | TokenRecord | SessionRecord) -> None:
    """S80: not in a log, not in a traceback."""
    assert "hash" not in repr(record)
    assert "argon2" not in repr(record)
    assert "ann" in repr(record) or "ci" in repr(record)


def test_a_session_has_the_rights_that_its_user_has_now() -> None:
    """S79: with the role, the tenant and the grants of now."""
    found = principal_of_session(SESSION, msgspec.structs.replace(ANN, role=Role.ADMIN, tenant=None))
    assert found is not None
    assert (found.name, found.role, found.tenant, found.how, found.session) == (
        "ann",
        Role.ADMIN,
        None,
        "session",
        "2",
    )
    assert found.grants == {"jobs.edit"}


@pytest.mark.parametrize(
    "user",
    [
        None,
        msgspec.structs.replace(ANN, disabled=True),
        msgspec.structs.replace(ANN, password_hash="$argon2id$y"),
    ],
)
def test_a_session_ends_with_its_user_and_with_the_password(user: UserRecord | None) -> None:
    """S79: also while the user is disabled."""
    assert principal_of_session(SESSION, user) is None


def test_a_session_of_a_link_has_a_role_of_its_own() -> None:
    """It is of no user."""
    found = principal_of_session(msgspec.structs.replace(SESSION, role=Role.ADMIN), None)
    assert found is not None
    assert (found.role, found.session) == (Role.ADMIN, "2")


def test_users_and_programs_are_told_apart() -> None:
    """No user has a name with a space."""
    assert (principal_of_user(ANN).name, principal_of_user(ANN).how) == ("ann", "basic")
    assert (principal_of_token(TOKEN).name, principal_of_token(TOKEN).how) == ("token ci", "token")
    assert principal_of_token(TOKEN).tenant == "acme"


def test_a_new_row_keeps_what_the_one_before_knew() -> None:
    """When it was made and last seen; the revision rises, and is no lower than the clock."""
    first = next_row(None, ANN, 100, None)
    assert first == AccessRow(ANN, 100, 100)
    seen = msgspec.structs.replace(first, seen_at=150)
    assert next_row(seen, ANN, 90, 10) == AccessRow(ANN, 101, 100, 150, expires_at=100)


def test_what_has_expired_is_made_anew() -> None:
    """With a higher revision than what was there."""
    link = LinkRecord(id="3", name="ann", secret_hash=SECRET.hash, role=Role.ADMIN)
    gone = AccessRow(link, 500, 1, seen_at=2, expires_at=10)
    assert next_row(gone, link, 10, None) == AccessRow(link, 501, 10)


def test_a_use_is_noted_once_a_minute() -> None:
    """So that whoever looks all the time writes little."""
    row = AccessRow(ANN, 1, 0)
    assert is_seen_again(row, 0)
    assert not is_seen_again(msgspec.structs.replace(row, seen_at=5), 4 + SEEN_EVERY)
    assert is_seen_again(msgspec.structs.replace(row, seen_at=5), 5 + SEEN_EVERY)


def test_the_audit_says_what_was_given_and_no_hash() -> None:
    """S60: a user is the subject of the entry, so its name is not told twice."""
    assert audited(None) == {}
    assert audited(ANN) == {"role": "operator", "tenant": "acme", "grants": ("jobs.edit",), "disabled": False}
    assert audited(TOKEN) == {"name": "ci", "role": "viewer", "tenant": "acme"}
