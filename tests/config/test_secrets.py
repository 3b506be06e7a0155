"""No secret is shown: not in errors, not in logs, not in `config show`."""

from __future__ import annotations

import logging
from typing import Final

import pytest

from fairlane import ConfigError
from fairlane.app.config.display import rows
from fairlane.app.config.value_kinds import safe_url
from tests.config.world import World

SECRET = "hunter2"

LEAKS = [
    ("[worker]\nlease = '${LEASE}'\n", "worker.lease", "the value of ${LEASE} is not allowed"),
    ("[queues.b]\nretry = { kind = '${LEASE}' }\n", "queues.b.retry", "the value of ${LEASE}"),
    ("[payload]\nrequire = ['${LEASE}']\n", "payload.require", "the value of ${LEASE}"),
    ("[app]\nurl = ['hunter2']\n", "app.url", "it is not text"),
    ("[app]\nurl = '${MISSING}'\n", "app.url", "environment variable MISSING is not set"),
    ("[app]\nurl = 'redis://x:hunter2@${MISSING}'\n", "app.url", "environment variable MISSING is not set"),
    ("[app]\nurl = '${}'\n", "app.url", "environment variable  is not set"),
    ("[worker]\nhunter = 'hunter2'\n", "worker.hunter", "no such key"),
    ("[audit]\nkey = 'hunter2'\n", "audit.key", "it has fewer than 16 characters"),
    ("[audit]\nkey = ['hunter2']\n", "audit.key", "it is not text"),
    ("[audit]\nkey = '${LEASE}'\n", "audit.key", "the value of ${LEASE} is not allowed"),
    ("[web]\nsecret = 'hunter2'\n", "web.secret", "it has fewer than 16 characters"),
    ("[web]\nsecret = ['hunter2']\n", "web.secret", "it is not text"),
    ("[web]\nreplica_url = 'mysql://x:hunter2@host'\n", "web.replica_url", "it is not a PostgreSQL URL"),
    ("[channels]\nops = 'hunter2'\n", "channels", "there is no such table"),
    ("queues = 'hunter2'\n", "queues", "it is not a table"),
]


@pytest.mark.parametrize(("text", "key", "words"), LEAKS, ids=[words for _, _, words in LEAKS])
def test_no_error_shows_a_secret(
    world: World, text: str, key: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What came out of the environment is named by its variable, the rest by its key."""
    world.environ = {"LEASE": SECRET}
    with caplog.at_level(logging.DEBUG, "fairlane"):
        error = world.error(text)
    assert error.key == key
    assert words in str(error)
    assert SECRET not in str(error) + caplog.text


def test_settings_do_not_show_their_url(world: World) -> None:
    """Whoever prints or logs them shows no password."""
    assert repr(world.settings(url=f"redis://:{SECRET}@host")) == "<Settings of fairlane>"


LONG: Final = "correct horse battery staple"


def test_the_key_of_the_audit_is_never_shown(world: World) -> None:
    """Neither from the file, nor from the environment, which needs no file to name it."""
    configuration = world.configuration(f"[audit]\nkey = '{LONG}'\n")
    assert {row.key: row.value for row in rows(configuration)}["audit.key"] == "(hidden)"
    assert configuration.settings.audit.key == LONG.encode()
    assert LONG not in repr(configuration.settings.audit)
    world.environ = {"FAIRLANE_AUDIT_KEY": LONG}
    configuration = world.configuration()
    shown = {row.key: (row.value, row.source) for row in rows(configuration)}
    assert shown["audit.key"] == ("(hidden)", "FAIRLANE_AUDIT_KEY")
    assert configuration.settings.audit.key == LONG.encode()


def test_secrets_of_the_web_are_never_shown(world: World) -> None:
    """The password of the replica, and the key of messages."""
    url = f"postgresql://ops:{SECRET}@replica/shop"
    configuration = world.configuration(f"[web]\nsecret = '{LONG}'\nreplica_url = '{url}'\n")
    shown = {row.key: row.value for row in rows(configuration)}
    assert shown["web.secret"] == "(hidden)"
    assert shown["web.replica_url"] == "postgresql://ops:***@replica/shop"
    web = configuration.settings.web
    assert (web.secret, web.replica_url) == (LONG, url)
    assert LONG not in repr(web)
    assert SECRET not in repr(web)


def test_the_key_of_the_audit_may_be_named_in_the_file(world: World) -> None:
    """As a variable, which is what is shown."""
    world.environ = {"AUDIT_KEY": LONG}
    configuration = world.configuration("[audit]\nkey = '${AUDIT_KEY}'\n")
    assert {row.key: row.value for row in rows(configuration)}["audit.key"] == "${AUDIT_KEY}"
    assert configuration.settings.audit.key == LONG.encode()


def test_an_unknown_variable_is_named_without_its_value(world: World) -> None:
    """It may be a misspelled secret."""
    world.environ = {"FAIRLANE_ULR": f"redis://:{SECRET}@host"}
    assert SECRET not in str(world.error())


URLS = [
    ("sqlite:///shop.db", "sqlite:///shop.db"),
    ("sqlite:///shop.db?synchronous=normal", "sqlite:///shop.db?synchronous=normal"),
    ("redis://:hunter2@host:6379/0", "redis://:***@host:6379/0"),
    ("postgresql://ops:hun@ter2@host/db", "postgresql://(hidden)"),
    ("redis://ops:hun/ter2@host/0", "redis://(hidden)"),
    ("redis://ops:hunter2", "redis://(hidden)"),
    ("postgresql://host/db?user=ops&password=hunter2", "postgresql://host/db?user=ops&password=***"),
    (
        "postgresql://host/db?sslpassword=hunter2&token=hunter2",
        "postgresql://host/db?sslpassword=***&token=***",
    ),
    ("hunter2", "(hidden)"),
    ("", "(hidden)"),
]


@pytest.mark.parametrize(("url", "shown"), URLS)
def test_a_url_is_shown_without_its_secrets(world: World, url: str, shown: str) -> None:
    """Whatever it came from."""
    assert safe_url(url) == shown
    if url:
        configuration = world.configuration(url=url)
        assert {row.key: row.value for row in rows(configuration)}["app.url"] == shown


def test_a_value_from_a_variable_is_shown_by_its_name(world: World) -> None:
    """Also where it is only a part."""
    world.environ = {"HOST": SECRET, "LEASE": "20s"}
    text = "[app]\nurl = 'redis://ops:pass@${HOST}/0'\n[worker]\nlease = '${LEASE}'\n"
    configuration = world.configuration(text)
    shown = {row.key: row.value for row in rows(configuration)}
    assert (shown["app.url"], shown["worker.lease"]) == ("redis://ops:***@${HOST}/0", "${LEASE}")
    assert configuration.settings.url == f"redis://ops:pass@{SECRET}/0"


def test_a_missing_variable_is_an_error_of_its_key(world: World) -> None:
    """It names the variable and the line."""
    with pytest.raises(ConfigError) as caught:
        _ = world.configuration("[worker]\nlease = '${LEASE}'\n").settings
    assert str(caught.value).startswith("worker.lease: environment variable LEASE is not set. (from ")
    assert caught.value.source.endswith("fairlane.toml:2")
