"""Connections as applications have them, of every kind that can be joined, behind one set of words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Protocol

import asyncpg
import django  # type: ignore[import-untyped]
import psycopg
import pytest
from django import conf  # its settings, bound to a name here, would be opened by whoever looks for doctests
from django.db.utils import ConnectionHandler  # type: ignore[import-untyped]
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from tests.servers.postgres import shared_url


class Own(Protocol):
    """One connection with, at most, one open transaction."""

    connection: Any

    async def begin(self) -> None:
        """Open a transaction."""

    async def run(self, command: str) -> None:
        """Run a command in it."""

    async def commit(self) -> None:
        """Commit it."""

    async def rollback(self) -> None:
        """Roll it back."""


class _Plain:
    """A connection on which one may say BEGIN and COMMIT."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        await self.run("BEGIN")

    async def commit(self) -> None:
        await self.run("COMMIT")

    async def rollback(self) -> None:
        await self.run("ROLLBACK")

    async def run(self, command: str) -> None:
        self.connection.execute(command)


class _Awaited(_Plain):
    async def run(self, command: str) -> None:
        await self.connection.execute(command)


class _Alchemy:
    """A Connection or Session of SQLAlchemy, which begins by itself."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        self.connection.begin()

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def run(self, command: str) -> None:
        self.connection.execute(text(command))


class _AwaitedAlchemy(_Alchemy):
    async def begin(self) -> None:
        await self.connection.begin()

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def run(self, command: str) -> None:
        await self.connection.execute(text(command))


class _Django:
    """Django's connection: outside a transaction it commits every statement."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        self.connection.set_autocommit(False)

    async def commit(self) -> None:
        self.connection.commit()
        self.connection.set_autocommit(True)

    async def rollback(self) -> None:
        self.connection.rollback()
        self.connection.set_autocommit(True)

    async def run(self, command: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(command)


@asynccontextmanager
async def _psycopg() -> AsyncIterator[Own]:
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        yield _Plain(connection)


@asynccontextmanager
async def _psycopg_async() -> AsyncIterator[Own]:
    async with await psycopg.AsyncConnection.connect(shared_url(), autocommit=True) as connection:
        yield _Awaited(connection)


@asynccontextmanager
async def _asyncpg() -> AsyncIterator[Own]:
    connection = await asyncpg.connect(shared_url())
    yield _Awaited(connection)
    await connection.close()


@asynccontextmanager
async def _asyncpg_pool() -> AsyncIterator[Own]:
    async with (
        asyncpg.create_pool(shared_url(), min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
    ):
        yield _Awaited(connection)


def _url(driver: str) -> str:
    return shared_url().replace("postgresql://", f"postgresql+{driver}://")


def _engine() -> Engine:
    return create_engine(_url("psycopg"), poolclass=NullPool)


@asynccontextmanager
async def _alchemy_connection() -> AsyncIterator[Own]:
    with _engine().connect() as connection:
        yield _Alchemy(connection)


@asynccontextmanager
async def _alchemy_session() -> AsyncIterator[Own]:
    with Session(_engine()) as session:
        yield _Alchemy(session)


@asynccontextmanager
async def _alchemy_scoped_session() -> AsyncIterator[Own]:
    session = scoped_session(sessionmaker(_engine()))
    yield _Alchemy(session)
    session.remove()


def _alchemy_async_session(driver: str) -> Callable[[], AbstractAsyncContextManager[Own]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Own]:
        engine = create_async_engine(_url(driver), poolclass=NullPool)
        async with AsyncSession(engine) as session:
            yield _AwaitedAlchemy(session)

    return opened


def _alchemy_async_connection(driver: str) -> Callable[[], AbstractAsyncContextManager[Own]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Own]:
        engine = create_async_engine(_url(driver), poolclass=NullPool)
        async with engine.connect() as connection:
            yield _AwaitedAlchemy(connection)

    return opened


@contextmanager
def django_connection() -> Iterator[Any]:
    """Return Django's default connection, to the tests' database."""
    if not conf.settings.configured:
        conf.settings.configure(USE_TZ=True)
        django.setup()
    with psycopg.connect(shared_url()) as probe:
        info = probe.info
        place = {"NAME": info.dbname, "USER": info.user, "HOST": info.host, "PORT": info.port}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # tests have a loop; applications use a thread
        handler = ConnectionHandler({"default": {"ENGINE": "django.db.backends.postgresql", **place}})
        patch.setattr("django.db.transaction.get_connection", lambda using=None: handler[using or "default"])
        yield handler["default"]
        handler["default"].close()


@asynccontextmanager
async def _django() -> AsyncIterator[Own]:
    with django_connection() as connection:
        yield _Django(connection)


KINDS: dict[str, Callable[[], AbstractAsyncContextManager[Own]]] = {
    "psycopg": _psycopg,
    "psycopg_async": _psycopg_async,
    "asyncpg": _asyncpg,
    "asyncpg_pool": _asyncpg_pool,
    "sqlalchemy_connection": _alchemy_connection,
    "sqlalchemy_session": _alchemy_session,
    "sqlalchemy_scoped_session": _alchemy_scoped_session,
    "sqlalchemy_async_connection_asyncpg": _alchemy_async_connection("asyncpg"),
    "sqlalchemy_async_session_asyncpg": _alchemy_async_session("asyncpg"),
    "sqlalchemy_async_session_psycopg": _alchemy_async_session("psycopg"),
    "django": _django,
}

PLAIN = tuple(name for name in KINDS if "async" not in name)
"""The kinds on which nothing is awaited."""
