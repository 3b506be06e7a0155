"""Where a store is, by its URL; an error about a URL never shows its password."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fairlane.model.errors import ConfigError
from fairlane.store.opening import open_store
from fairlane.store.postgres.location import Location

URL = "postgresql://me:secret@db.example:6543/shop"


def test_a_plain_url_has_defaults() -> None:
    """The schema is named after us, the pool is as large as needed, and the driver gets the rest."""
    location = Location(URL)
    assert (location.schema, location.pool, location.is_pooled) == ("fairlane", None, False)
    assert location.dsn == URL


def test_own_options_are_taken_out_and_others_left_to_the_driver() -> None:
    """TLS and the choice of a host are libpq's words, which the driver knows."""
    options = "schema=jobs&sslmode=verify-full&pool=7&target_session_attrs=read-write&pgbouncer=transaction"
    location = Location(f"{URL}?{options}")
    assert (location.schema, location.pool, location.is_pooled) == ("jobs", 7, True)
    assert location.dsn == f"{URL}?sslmode=verify-full&target_session_attrs=read-write"


def test_the_short_scheme_is_the_same() -> None:
    """Many hosts hand out URLs that begin with postgres://."""
    assert Location("postgres://me@h/d?schema=s").dsn == "postgresql://me@h/d"


def test_a_place_is_named_without_user_and_password() -> None:
    """Errors and logs show it; a socket's folder stands in for a host."""
    assert Location(URL).place == 'PostgreSQL at db.example:6543, schema "fairlane"'
    socket = Location("postgresql:///d?host=/run/pg&schema=odd%20one")
    assert socket.place == 'PostgreSQL at /run/pg, schema "odd one"'


@pytest.mark.parametrize(
    "options",
    [
        "schema=",
        "schema=pg_mine",
        "schema=" + "x" * 64,
        "schema=a%00b",
        "pool=0",
        "pool=many",
        "pool=-1",
        "pool=1001",
        "pgbouncer=statement",
    ],
)
def test_an_option_that_cannot_be_is_refused(options: str) -> None:
    """At once, with what is allowed, and without the password."""
    with pytest.raises(ConfigError, match="Allowed: ") as caught:
        open_store(f"{URL}?{options}")
    assert "secret" not in str(caught.value)


def test_without_its_driver_the_store_says_what_to_install() -> None:
    """The plain install runs on SQLite; the driver is an extra."""
    program = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from fairlane.store.opening import open_store\n"
        "open_store(sys.argv[1])\n"  # a newer Python shows the lines of a program in its tracebacks
    )
    words = [sys.executable, "-c", program, "postgresql://me:secret@h/d"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("postgresql:// needs asyncpg; install it with: pip install 'fairlane[postgres]'")
    assert "secret" not in done.stderr
