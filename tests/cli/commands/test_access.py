"""`fairlane users`, `tokens` and `sessions`: who may use the web (S79, S80)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from fairlane import Fairlane
from fairlane.app.access.sign_in import SignIn
from fairlane.cli.exits import Exit
from tests.cli.shell import CommandResult, Shell

T = TypeVar("T")

PASSWORD = "correct horse battery"


def add(store: Shell, name: str = "ann", *options: str, password: str = PASSWORD) -> CommandResult:
    """Add a user, with the password on standard input."""
    words = ("users", "add", name, "--role", "operator", "--password-file", "-", *options)
    return store.run(*words, stdin=f"{password}\n")


def signing_in(store: Shell, ask: Callable[[SignIn], Awaitable[T]]) -> T:
    """Ask who somebody is, as a server does."""

    async def inside() -> T:
        async with Fairlane(store.url) as app:
            return await ask(SignIn(app))

    return asyncio.run(inside())


def test_a_user_is_added_changed_and_removed(store: Shell) -> None:
    """S79: each with one sentence, and it is in the audit with its note."""
    assert store.output_of("users") == (
        "There is no user yet; `fairlane users add NAME --role ROLE` adds one.\n"
    )
    ran = add(store, "ann", "--grant", "limits.set", "--note", "on call")
    assert (ran.code, ran.out) == (Exit.OK, "User ann may sign in as operator for all tenants.\n")
    table = store.output_of("users").splitlines()
    assert table[0].split() == ["USER", "ROLE", "TENANT", "GRANTS", "STATE", "LAST", "SEEN", "ADDED", "BY"]
    assert table[1].split()[:6] == ["ann", "operator", "-", "limits.set", "active", "never"]
    assert store.output_of("users", "set", "ann", "--role", "viewer", "--tenant", "acme", "--no-grants") == (
        "User ann may sign in as viewer for tenant acme.\n"
    )
    assert store.output_of("users", "set", "ann", "--disable") == "User ann is disabled.\n"
    (user,) = store.run("users", "--json").objects
    assert (user["tenant"], user["grants"], user["disabled"]) == ("acme", [], True)
    assert user.keys() == {
        *("name", "role", "tenant", "grants", "disabled", "created_at", "created_by", "seen_at"),
    }
    store.run("users", "set", "ann", "--all-tenants", "--enable")
    assert store.run("users", "--json").objects[0]["tenant"] is None
    assert store.output_of("users", "remove", "ann", "--note", "left") == (
        "User ann is gone, and its sessions have ended.\n"
    )
    audit = store.run("audit", "--json").objects
    assert [(entry["kind"], entry["note"]) for entry in audit if entry["kind"] != "users.set"] == [
        ("users.remove", "left"),
        ("users.add", "on call"),
    ]


def test_what_is_wrong_with_a_user_is_said_and_nothing_is_stored(store: Shell) -> None:
    """S79: one error names the option; the password is in none."""
    refusals = [
        (add(store, password="short"), Exit.USAGE, "password: has 5 characters"),
        (add(store, "ann smith"), Exit.USAGE, "'NAME': name 'ann smith' is not a legal name"),
        (add(store, "ann", "--grant", "everything"), Exit.USAGE, "is not an action"),
        (store.run("users", "add", "ann", "--role", "boss"), Exit.USAGE, "'--role'"),
        (store.run("users", "add", "ann", "--role", "viewer"), Exit.USAGE, "give --password-file"),
        (store.run("users", "set", "ann"), Exit.USAGE, "nothing to change"),
        (store.run("users", "set", "ann", "--tenant", "a", "--all-tenants"), Exit.USAGE, "give either"),
        (store.run("users", "set", "ann", "--enable"), Exit.NOT_FOUND, "no user 'ann'"),
        (store.run("users", "remove", "ann"), Exit.NOT_FOUND, "no user 'ann'"),
        (store.run("tokens", "revoke", "0" * 20), Exit.NOT_FOUND, "no token"),
        (store.run("tokens", "revoke", "\u00e9 "), Exit.NOT_FOUND, "no token"),
        (store.run("tokens", "create", "ci", "--role", "viewer", "--for", "soon"), Exit.USAGE, "--for"),
        (store.run("sessions", "end", "0" * 20), Exit.NOT_FOUND, "no session"),
    ]
    for ran, code, text in refusals:
        assert ran.code == code, ran
        assert text in ran.err
        assert "short" not in ran.err.replace("--password-file", "")
    assert store.run("users", "--json").objects == []
    assert add(store).code == Exit.OK
    assert (add(store).code, store.run("users", "--json").objects[0]["name"]) == (Exit.REFUSED, "ann")


def test_no_command_takes_a_password_as_an_argument(store: Shell) -> None:
    """S80: arguments are in the shell's history and in the list of processes."""
    for words in (("users", "add", "ann", "--role", "viewer"), ("users", "set", "ann")):
        ran = store.run(*words, "--password", PASSWORD)
        assert ran.code == Exit.USAGE
        assert store.run("users", "--json").objects == []


def test_a_password_may_be_in_a_file(store: Shell, tmp_path: Path) -> None:
    """S80: its first line, without the end of the line."""
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\nand a remark\n", encoding="utf-8")
    words = ("users", "add", "ann", "--role", "viewer", "--password-file", str(file))
    assert store.run(*words).code == Exit.OK


@pytest.mark.parametrize("is_json", [False, True])
def test_a_token_is_shown_once_and_revoked(store: Shell, is_json: bool) -> None:
    """S80: its secret alone is on standard output, for scripts."""
    options = ("--json",) if is_json else ()
    made = store.run(
        "tokens", "create", "ci", "--role", "viewer", "--tenant", "acme", "--for", "90d", *options
    )
    secret = made.objects[0]["secret"] if is_json else made.out.strip()
    assert secret.startswith("fl_")
    (token,) = store.run("tokens", "--json").objects
    assert secret not in str(token)
    assert (token["name"], token["role"], token["tenant"]) == ("ci", "viewer", "acme")
    assert token["id"] in store.output_of("tokens")
    found = signing_in(store, lambda sign_in: sign_in.with_token(secret))
    assert found is not None
    assert (found.name, found.tenant) == ("token ci", "acme")
    assert store.output_of("tokens", "revoke", token["id"], "--note", "rotated") == (
        f"Token {token['id']} is revoked.\n"
    )
    assert store.output_of("tokens").startswith("There is no token yet")


def test_a_session_is_listed_and_ended(store: Shell) -> None:
    """S80: who is signed in, from where, and until when."""
    assert store.output_of("sessions") == "Nobody is signed in.\n"
    add(store)
    found = signing_in(store, lambda sign_in: sign_in.with_password("ann", PASSWORD, peer="192.0.2.1"))
    assert found is not None
    (session,) = store.run("sessions", "--json").objects
    assert session["id"] == found.principal.session
    assert (session["user"], session["peer"], session["role"]) == ("ann", "192.0.2.1", "operator")
    assert "192.0.2.1" in store.output_of("sessions")
    assert store.output_of("sessions", "end", session["id"]) == f"Session {session['id']} has ended.\n"
    assert signing_in(store, lambda sign_in: sign_in.with_session(found.secret)) is None
