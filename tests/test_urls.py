"""An error about a store's URL says what to do, and never shows any part of its password."""

from __future__ import annotations

import asyncio
import logging
import traceback
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Fairlane
from fairlane.app.config.display import rows
from fairlane.app.config.value_kinds import safe_url
from fairlane.cli.store_location import check_location
from fairlane.model.errors import ConfigError, FairlaneError
from fairlane.model.scope import Scope
from fairlane.store.contract.request import Request
from fairlane.store.opening import open_store

SERVERS = [
    "postgresql://ops:{}@127.0.0.1:1/db",
    "postgres://ops:{}@127.0.0.1:1,127.0.0.1:2/db?schema=jobs",
    "postgresql+asyncpg://ops:{}@127.0.0.1:1/db",
    "redis://ops:{}@127.0.0.1:1/0",
    "redis://:{}@127.0.0.1:1",
    "rediss://ops:{}@127.0.0.1:1/0?prefix=p",
    "redis+sentinel://ops:{}@127.0.0.1:1/jobs",
    "redis+sentinel://127.0.0.1:1/jobs?sentinel_password={}",
    "postgresql://127.0.0.1:1/db?password={}",
    "unix://ops:{}@/run/nowhere/at/all.sock",
    "mysql://ops:{}@127.0.0.1:1/db",
    "sqlite://ops:{}@127.0.0.1/x.db",
]
PIECES = ["s3cr3t", "PWxyz", "kQv7Zq"]
SIGNS = "#?@/:% []"


def pieces_in(text: str) -> list[str]:
    """Name the pieces of a password, three letters long, that a text has."""
    return [
        piece[at : at + 3] for piece in PIECES for at in range(len(piece) - 2) if piece[at : at + 3] in text
    ]


async def _ask(url: str) -> None:
    store = open_store(url)
    try:
        await store.registry.status(Request(scope=Scope.all()))
    finally:
        await store.upkeep.aclose()


def told(url: str) -> str:
    """Return all that anybody is told of a URL: the error with its traceback, what is shown and judged."""
    try:
        asyncio.run(_ask(url))
        raised = ""
    except FairlaneError as error:
        raised = "".join(traceback.format_exception(error))
    shown = [row.value for row in rows(Fairlane(url, config={}).configuration)]
    found = [f"{one.what} {one.advice}" for one in check_location(url)]
    return "\n".join([raised, *shown, *found, safe_url(url), repr(Fairlane(url).settings)])


@given(
    form=st.sampled_from(SERVERS),
    signs=st.tuples(st.sampled_from(SIGNS), st.sampled_from(SIGNS)),
    is_encoded=st.booleans(),
)
def test_no_text_has_a_piece_of_a_password(form: str, signs: tuple[str, str], is_encoded: bool) -> None:
    """Whatever characters it has, whichever store it is for: refused or not, nothing of it is seen."""
    password = f"{PIECES[0]}{signs[0]}{PIECES[1]}{signs[1]}{PIECES[2]}"
    assert pieces_in(told(form.format(quote(password, safe="") if is_encoded else password))) == []


@pytest.mark.parametrize("sign", "#?/@[")
@pytest.mark.parametrize("form", [form for form in SERVERS[:7] if "+asyncpg" not in form])
def test_a_password_that_shifts_the_parts_is_refused_with_what_to_write(form: str, sign: str) -> None:
    """Before anything is connected: a part of it would be looked up as the name of a host."""
    with pytest.raises(ConfigError, match=r"percent-encode .* # as %23, / as %2F") as caught:
        open_store(form.format(f"s3cr3t{sign}PWxyz"))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@given(sign=st.sampled_from(SIGNS), form=st.sampled_from(SERVERS[:9]))
def test_nothing_of_a_password_is_logged(sign: str, form: str) -> None:
    """On any level, by us or by a driver."""
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(logging.Formatter().format(record))  # type: ignore[method-assign]
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        told(form.format(f"s3cr3t{sign}PWxyz"))
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    assert pieces_in("\n".join(records)) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql+asyncpg://me@h/d", r"drop \+asyncpg: write postgresql://"),
        ("postgresql+psycopg://me@h/d", r"drop \+psycopg: write postgresql://"),
        ("postgres+psycopg2://me@h/d", r"drop \+psycopg2: write postgresql://"),
        ("sqlite+aiosqlite:///x.db", r"drop \+aiosqlite: write sqlite://"),
        ("redis-sentinel://h/jobs", r"write redis\+sentinel://"),
        ("redis+cluster://h", "write redis://"),
        ("valkey://h", "write redis://"),
        ("POSTGRESQL://h/d", "write postgresql://"),
        ("postgre://h/d", r"did you mean postgres(ql)?://\?"),
        ("fairlane.db", "it has no scheme, as in sqlite:///fairlane.db"),
        ("redis://h/jobs", r"number of a database.*redis\+sentinel://"),
        ("redis://h?sentinel_password=x", r"needs redis\+sentinel://; drop it"),
        ("redis://h?ssl_ca_certs=/x", "write rediss://"),
        ("redis+sentinel://h:1", "names its service"),
        ("redis://h:99999", "percent-encode"),
        ("redis://h?db=many", "db is a whole number"),
        ("redis://h?protocol=2", "there is no option 'protocol'"),
        ("redis://h?prefx=x", "no option 'prefx'; did you mean prefix?"),
        ("redis+sentinel://h/jobs?sentinel_pasword=x", "did you mean sentinel_password?"),
        ("postgresql://h/d?shema=x", "no option 'shema'; did you mean schema?"),
        ("postgresql://h/d?sslmod=require", "did you mean sslmode?"),
        ("postgresql://h/d?port=many", "port is not a port number"),
        ("postgresql://h/d?host=a:b", "host cannot be read"),
        ("sqlite:///x.db?gruop=www", "no option 'gruop'; did you mean group?"),
        ("sqlite:///x.db?synchronus=full", "did you mean synchronous?"),
        ("sqlite:///x.db?cache=shared", "there is no option 'cache'"),
        ("sqlite:///a#b.db", "write # as %23"),
        ("sqlite:///a%00b.db", "write # as %23"),
        ("sqlite://relative.db", "three slashes"),
        ("redis://h?password=ab&cde=fg", "it has an option that is not known"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(url: str, words: str) -> None:
    """The nearest word, or what to drop."""
    with pytest.raises(ConfigError, match=words):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///:memory:",
        "sqlite://:memory:",
        "sqlite:///%3Amemory%3A",
        "sqlite:///file::memory:?cache=shared",
        "sqlite:///x.db?mode=memory",
        "file::memory:",
        ":memory:",
    ],
)
def test_a_store_in_memory_is_refused_with_advice(url: str) -> None:
    """It would be a file of that name, or gone at once."""
    with pytest.raises(ConfigError, match=r"lost with its connection.*fairlane.testing.Trial"):
        open_store(url)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:////"])
def test_a_store_without_a_name_is_refused(url: str) -> None:
    """For SQLite itself that is a file which is gone at once."""
    with pytest.raises(ConfigError, match=r"names no file.*sqlite:///relative.db"):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@h/d?work_mem=8MB&application_name=shop&statement_timeout=0&search_path=x",
        "postgresql://me:a:b%23@h1:1,[::1]:2/d",
        "postgres://h",
        "redis://h1:1,h2:2?client_name=x",
        "sqlite:////home/me@corp/x.db",
        "unix:///run/redis.sock",
    ],
)
def test_what_can_be_read_is_accepted(url: str) -> None:
    """A server's own settings, an @ in a path, several hosts."""
    open_store(url)
