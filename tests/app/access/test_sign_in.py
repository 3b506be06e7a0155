"""Who makes a request, by password, link, session or token (S79-S81)."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from fairlane import Fairlane
from fairlane.app.access import passwords
from fairlane.app.access.attempts import FOR_NAME, FOR_NAME_AND_PEER, FOR_PEER, WITHIN
from fairlane.app.access.sign_in import SESSION_LIFETIME, SignedIn, SignIn
from fairlane.model.access import Principal, Role
from fairlane.model.access_errors import TooManyAttempts
from fairlane.model.access_records import SEEN_EVERY, Secret
from fairlane.model.errors import StoreUnavailable
from fairlane.model.instants import SECOND, to_instant
from tests.app.world import World

PASSWORD = "correct horse battery"
HERE = "192.0.2.1"


@pytest.fixture
def sign_in(app: Fairlane) -> SignIn:
    """Sign-in of an application with one user: ann, an operator."""
    app.users.add("ann", password=PASSWORD, role="operator", grants=["limits.set"])
    return SignIn(app)


async def enter(sign_in: SignIn, name: str = "ann", password: str = PASSWORD, peer: str = HERE) -> SignedIn:
    """Sign in, which must succeed."""
    found = await sign_in.with_password(name, password, peer=peer)
    assert found is not None
    return found


def age(world: World, micros: int) -> None:
    """Let the store's time pass."""
    world.clock.advance(micros / SECOND)


async def test_a_password_begins_a_session_that_is_known_again(world: World, sign_in: SignIn) -> None:
    """S80: with the role and grants of the user, until a working day is over."""
    found = await enter(sign_in)
    assert found.principal == Principal(
        name="ann", role=Role.OPERATOR, grants=frozenset({"limits.set"}), session=found.principal.session
    )
    assert to_instant(found.expires_at) == world.clock.now() + SESSION_LIFETIME
    assert await sign_in.with_session(found.secret) == found.principal
    age(world, SESSION_LIFETIME - 1)
    assert await sign_in.with_session(found.secret) == found.principal
    age(world, 1)
    assert await sign_in.with_session(found.secret) is None


async def test_wrong_passwords_unknown_names_and_disabled_users_get_the_same_answer_for_the_same_work(
    app: Fairlane, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S81: one hash each, and one question about the user; also for a name that none can have."""
    await app.users.aadd("off", password=PASSWORD, role="admin")
    await app.users.aset("off", disabled=True)
    await enter(sign_in)
    hashed: list[str | None] = []
    real = passwords._verify

    def counted(password_hash: str | None, password: bytes) -> bool:
        hashed.append(password_hash)
        return real(password_hash, password)

    monkeypatch.setattr(passwords, "_verify", counted)
    for name, password in (
        ("ann", "wrong"),
        ("bob", PASSWORD),
        ("off", PASSWORD),
        ("\0 -", PASSWORD),
        ("", ""),
    ):
        assert await sign_in.with_password(name, password, peer=HERE) is None
    assert len(hashed) == 5
    assert hashed[1:] == [None] * 4


@pytest.mark.usefixtures("real_cost")
async def test_nobodys_password_costs_what_a_users_does() -> None:
    """S81: both hashes have the same parameters."""
    mine = await passwords.hash_password(PASSWORD)
    assert mine.split("$")[1:4] == passwords._nobodys_hash().split("$")[1:4]
    assert mine.split("$")[1:4] == ["argon2id", "v=19", "m=19456,t=3,p=1"]
    assert not await passwords.is_password("-" * 1_002, None)
    assert not await passwords.is_password(PASSWORD, "no hash at all")
    assert await passwords.is_password(PASSWORD, mine)


async def test_a_changed_user_has_its_rights_of_now(app: Fairlane, sign_in: SignIn) -> None:
    """S80: at the next request, without signing in again."""
    found = await enter(sign_in)
    await app.users.aset("ann", role="viewer", tenant="acme", grants=[])
    principal = await sign_in.with_session(found.secret)
    assert principal is not None
    assert (principal.role, principal.tenant, principal.grants) == (Role.VIEWER, "acme", frozenset())


async def test_sessions_end_with_the_password_the_user_and_while_disabled(
    app: Fairlane, sign_in: SignIn
) -> None:
    """S80: also when a user of the same name is added again, with the same password."""
    first = await enter(sign_in)
    await app.users.aset("ann", disabled=True)
    assert await sign_in.with_session(first.secret) is None
    assert await sign_in.with_password("ann", PASSWORD, peer=HERE) is None
    await app.users.aset("ann", disabled=False, password="another one entirely")
    assert await sign_in.with_session(first.secret) is None
    second = await enter(sign_in, password="another one entirely")
    await app.users.aremove("ann")
    assert await sign_in.with_session(second.secret) is None
    await app.users.aadd("ann", password="another one entirely", role="admin")
    assert await sign_in.with_session(second.secret) is None
    assert await app.sessions.alist() == ()


async def test_a_session_can_be_ended_by_its_user_and_by_others(app: Fairlane, sign_in: SignIn) -> None:
    """S80: at once; ending it twice says so."""
    first, second = await enter(sign_in), await enter(sign_in, peer="192.0.2.2")
    assert [one.peer for one in await app.sessions.alist()] in (
        ["192.0.2.2", HERE],
        [HERE, "192.0.2.2"],
    )
    assert first.principal.session is not None
    assert await sign_in.end_session(first.principal.session)
    assert not await sign_in.end_session(first.principal.session)
    assert not await sign_in.end_session("\0")
    assert await sign_in.with_session(first.secret) is None
    assert await sign_in.with_session(second.secret) == second.principal
    (left,) = await app.sessions.alist()
    assert (left.user, left.role, left.peer) == ("ann", Role.OPERATOR, "192.0.2.2")
    await app.sessions.aend(left.id, note="lost laptop")
    assert await sign_in.with_session(second.secret) is None


async def test_a_link_signs_in_once(app: Fairlane, sign_in: SignIn) -> None:
    """S80: however many use it at the same time; its session has a role of its own and needs no user."""
    secret = await sign_in.make_link(role=Role.ADMIN, name="local", valid_for=60)
    found = await asyncio.gather(*(sign_in.with_link(secret, peer=HERE) for _ in range(8)))
    entered = [one for one in found if one is not None]
    assert len(entered) == 1
    assert await sign_in.with_link(secret, peer=HERE) is None
    principal = await sign_in.with_session(entered[0].secret)
    assert principal == entered[0].principal
    assert (entered[0].principal.name, entered[0].principal.role) == ("local", Role.ADMIN)
    assert [one.user for one in await app.sessions.alist()] == ["local"]


async def test_a_link_expires(world: World, sign_in: SignIn) -> None:
    """S80: by the store's clock."""
    secret = await sign_in.make_link(role=Role.ADMIN, name="local", valid_for=timedelta(seconds=60))
    age(world, 60 * SECOND)
    assert await sign_in.with_link(secret, peer=HERE) is None


async def test_a_token_is_known_until_it_expires_or_is_revoked(
    world: World, app: Fairlane, sign_in: SignIn
) -> None:
    """S80: a program is named by its token, and is bound to its tenant."""
    made = await app.tokens.acreate("ci", role="viewer", tenant="acme", valid_for=60)
    forever = await app.tokens.acreate("deploy", role="operator")
    assert await sign_in.with_token(made.secret) == Principal(
        name="token ci", role=Role.VIEWER, tenant="acme", how="token"
    )
    age(world, 60 * SECOND)
    assert await sign_in.with_token(made.secret) is None
    assert await sign_in.with_token(forever.secret) is not None
    await app.tokens.arevoke(forever.token.id)
    assert await sign_in.with_token(forever.secret) is None


async def test_a_secret_opens_only_what_it_was_made_for(app: Fairlane, sign_in: SignIn) -> None:
    """S80: no kind stands for another, and nothing that is no secret opens anything."""
    session = (await enter(sign_in)).secret
    token = (await app.tokens.acreate("ci", role="viewer")).secret
    link = await sign_in.make_link(role=Role.ADMIN, name="local", valid_for=60)
    known = await app.sessions.alist()
    for text in (
        session,
        link,
        "",
        "fl_",
        f"{token}x",
        token[:-1],
        token[3:],
        "fl_" + "x" * 9_999,
        known[0].id,
    ):
        assert await sign_in.with_token(text) is None
    for text in (token, link):
        assert await sign_in.with_session(text) is None
    for text in (token, session):
        assert await sign_in.with_link(text, peer=HERE) is None


async def test_a_secret_is_compared_whole(
    app: Fairlane, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S80: another secret whose hash begins alike finds the record, and does not open it."""
    made = await app.tokens.acreate("ci", role="viewer")
    alike = Secret(Secret.of(made.secret).hash[:10] + bytes(22))
    assert alike.id == made.token.id
    monkeypatch.setattr(Secret, "of", classmethod(lambda cls, text: alike))
    assert await sign_in.with_token("fl_other") is None


async def test_attempts_that_fail_are_limited_and_a_right_password_does_not_help_then(
    world: World, sign_in: SignIn
) -> None:
    """S81: for the name from that address; others go on, and it ends by itself."""
    for _ in range(FOR_NAME_AND_PEER):
        assert await sign_in.with_password("ann", "wrong", peer=HERE) is None
    with pytest.raises(TooManyAttempts, match="try again in 300 s") as refused:
        await sign_in.with_password("ann", PASSWORD, peer=HERE)
    assert refused.value.retry_after == WITHIN // SECOND
    await enter(sign_in, peer="192.0.2.2")
    age(world, WITHIN - 1)
    with pytest.raises(TooManyAttempts, match="in 1 s"):
        await sign_in.with_password("ann", PASSWORD, peer=HERE)
    age(world, 1)
    await enter(sign_in)


async def test_an_address_that_guesses_names_is_limited_too(sign_in: SignIn) -> None:
    """S81: unknown names count like others."""
    for number in range(FOR_PEER):
        assert await sign_in.with_password(f"name{number}", "wrong", peer=HERE) is None
    with pytest.raises(TooManyAttempts):
        await sign_in.with_password("ann", PASSWORD, peer=HERE)
    await enter(sign_in, peer="192.0.2.2")


async def test_a_name_that_is_guessed_from_many_addresses_is_limited_too(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S81: each address alone is below its limit; who is signed in stays so."""
    found = await enter(sign_in)
    monkeypatch.setattr(passwords, "_verify", lambda *_: False)
    for number in range(FOR_NAME):
        assert await sign_in.with_password("ann", "wrong", peer=f"192.0.2.{number}") is None
    with pytest.raises(TooManyAttempts):
        await sign_in.with_password("ann", PASSWORD, peer="198.51.100.1")
    assert await sign_in.with_session(found.secret) == found.principal


async def test_attempts_that_succeed_count_nothing(sign_in: SignIn) -> None:
    """S81: somebody may sign in as often as they like."""
    for _ in range(FOR_NAME_AND_PEER + 1):
        await enter(sign_in)


async def test_basic_auth_hashes_a_password_once_and_notices_a_new_one(
    app: Fairlane, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S80: requests that bring a password each time make no session, and hold to the user of now."""
    hashed: list[bytes] = []
    real = passwords._verify

    def counted(password_hash: str | None, password: bytes) -> bool:
        hashed.append(password)
        return real(password_hash, password)

    monkeypatch.setattr(passwords, "_verify", counted)
    for _ in range(3):
        principal = await sign_in.check_password("ann", PASSWORD, peer=HERE)
        assert principal is not None
        assert (principal.name, principal.how, principal.session) == ("ann", "basic", None)
    assert len(hashed) == 1
    assert await sign_in.check_password("ann", "wrong", peer=HERE) is None
    await app.users.aset("ann", disabled=True)
    assert await sign_in.check_password("ann", PASSWORD, peer=HERE) is None
    await app.users.aset("ann", disabled=False, password="another one entirely")
    assert await sign_in.check_password("ann", PASSWORD, peer=HERE) is None
    assert await app.sessions.alist() == ()


async def test_the_last_use_is_written_once_a_minute_and_not_at_every_request(
    world: World, app: Fairlane, sign_in: SignIn
) -> None:
    """S80: of a session, its user and a token; a store that takes no writes keeps nobody out."""
    found = await enter(sign_in)
    token = await app.tokens.acreate("ci", role="viewer")
    for _ in range(3):
        assert await sign_in.with_session(found.secret)
        assert await sign_in.with_token(token.secret)
    noted = [asked for asked in world.asked if asked[0] == "note_seen"]
    assert len(noted) == 2
    assert {key.kind for _, request in noted for key in request.keys} == {"session", "user", "token"}
    assert to_instant((await app.users.aget("ann")).seen_at or found.expires_at) == world.clock.now()
    age(world, SEEN_EVERY)
    world.fail_before = [None, StoreUnavailable("away")]
    assert await sign_in.with_token(token.secret)


async def test_secrets_are_in_no_log_no_text_and_no_audit(
    world: World, app: Fairlane, sign_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    """S80: the password neither; nor the name that somebody typed, which may be one."""
    caplog.set_level(logging.DEBUG)
    found = await enter(sign_in)
    made = await app.tokens.acreate("ci", role="viewer", note="for the build")
    link = await sign_in.make_link(role=Role.ADMIN, name="local", valid_for=60)
    told = [repr(found), repr(made), repr(world.asked), repr(await app.tokens.alist())]
    await sign_in.with_password(PASSWORD.replace(" ", ""), "ann", peer=HERE)
    told.append(caplog.text)
    assert "an attempt to sign in failed" in caplog.text
    told += [repr(entry) for entry in (await app.audit.afind()).items]
    for secret in (found.secret, made.secret, link, PASSWORD, PASSWORD.replace(" ", "")):
        assert [text for text in told if secret in text] == []


async def test_what_was_done_is_audited_with_who_did_it(app: Fairlane, sign_in: SignIn) -> None:
    """S60, S79: users, tokens, sessions and links, each by its own step."""
    found = await enter(sign_in)
    with app.acting_as("root"):
        made = await app.tokens.acreate("ci", role="viewer", valid_for=60, note="for the build")
        await app.tokens.arevoke(made.token.id, note="leaked")
        await app.users.aset("ann", disabled=True)
        await app.users.aremove("ann")
        await sign_in.make_link(role=Role.ADMIN, name="local", valid_for=60)
    assert found.principal.session is not None
    await sign_in.end_session(found.principal.session)
    entries = (await app.audit.afind()).items
    assert [(entry.kind, entry.actor) for entry in entries][::-1] == [
        ("users.add", entries[-1].actor),
        ("sessions.begin", "ann"),
        ("tokens.create", "root"),
        ("tokens.revoke", "root"),
        ("users.set", "root"),
        ("users.remove", "root"),
        ("links.create", "root"),
        ("sessions.end", "ann"),
    ]
