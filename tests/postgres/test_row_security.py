"""Row-level security of the application's own tables knows the handler's tenant (catalogue 1.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from django.db import transaction  # type: ignore[import-untyped]
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from fairlane import Context, Fairlane
from fairlane.contrib.row_security import SETTING, aset_tenant, register_django, register_engine, set_tenant
from tests.postgres.own import django_connection
from tests.servers.postgres import shared_url
from tests.servers.schemas import url_of
from tests.worker.world import World

READ = f"SELECT coalesce(current_setting('{SETTING}', true), '')"


@pytest.fixture
async def workers(schema: str, tmp_path: Path) -> AsyncIterator[World]:
    """Workers on a schema of their own."""
    made = World(tmp_path)
    made.url = url_of(schema)
    yield made
    for app in made.apps:
        await app.aclose()


@pytest.fixture
def app() -> Fairlane:
    """An application that only says who is asking."""
    return Fairlane("sqlite:///unused.db")


@pytest.fixture
def notes(admin: psycopg.Connection, schema: str) -> Iterator[str]:
    """A table of which each tenant sees its own rows, for a role that row-level security holds for."""
    name = f"{schema}_notes"
    admin.execute(f"CREATE TABLE {name} (tenant text)")
    admin.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    admin.execute(f"CREATE POLICY own ON {name} USING (tenant = current_setting('{SETTING}', true))")
    admin.execute(f"INSERT INTO {name} VALUES ('acme'), ('globex')")  # noqa: S608 (its own table)
    admin.execute(f"CREATE ROLE {schema}_reader; GRANT SELECT ON {name} TO {schema}_reader")
    yield name
    admin.execute(f"DROP TABLE {name}; DROP ROLE {schema}_reader")


async def test_a_handler_sees_its_tenants_rows_and_no_others(workers: World, notes: str, schema: str) -> None:
    """Through an engine that was registered, without a word in the handler."""
    app = workers.app()
    engine = create_engine(shared_url().replace("://", "+psycopg://"), pool_size=1, max_overflow=0)
    register_engine(engine)
    seen: list[tuple[str, list[str]]] = []

    @app.task(name="read")
    def read(ctx: Context) -> None:
        with engine.begin() as connection:
            connection.execute(text(f"SET LOCAL ROLE {schema}_reader"))
            rows = connection.execute(text(f"SELECT tenant FROM {notes}"))  # noqa: S608 (its own table)
            seen.append((ctx.tenant, list(rows.scalars())))

    for tenant in ("acme", "globex", "initech"):
        await read.using(tenant=tenant).aenqueue()
    await workers.burst(app)
    assert sorted(seen) == [("acme", ["acme"]), ("globex", ["globex"]), ("initech", [])]
    with engine.begin() as connection:
        assert connection.execute(text(READ)).scalar() == ""  # nothing came back with the connection
    engine.dispose()


async def test_an_asynchronous_engine_is_registered_alike(app: Fairlane) -> None:
    """The tenant is that of the transaction, not of the connection."""
    engine = create_async_engine(shared_url().replace("://", "+asyncpg://"), pool_size=1, max_overflow=0)
    register_engine(engine)
    seen = []
    for tenant in ("acme", "globex"):
        with app.tenant(tenant):
            async with engine.begin() as connection:
                seen.append((await connection.execute(text(READ))).scalar())
    async with engine.begin() as connection:
        seen.append((await connection.execute(text(READ))).scalar())
    await engine.dispose()
    assert seen == ["acme", "globex", ""]


async def test_a_tenant_is_set_by_hand_on_any_connection(app: Fairlane) -> None:
    """Until the end of the transaction."""
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        with app.tenant("acme"), connection.transaction():
            set_tenant(connection)
            assert connection.execute(READ).fetchone() == ("acme",)
        assert connection.execute(READ).fetchone() == ("",)
    other = await asyncpg.connect(shared_url())
    with app.tenant("globex"):
        async with other.transaction():
            await aset_tenant(other)
            assert await other.fetchval(READ) == "globex"
    assert await other.fetchval(READ) == ""
    await other.close()


def test_where_there_is_no_tenant_none_can_be_set() -> None:
    """A policy lets nothing through then."""
    with psycopg.connect(shared_url()) as connection, pytest.raises(LookupError):
        set_tenant(connection)


def test_djangos_transactions_begin_with_their_tenant(app: Fairlane) -> None:
    """Inside `atomic`, also nested, and after a rollback to a savepoint."""
    register_django()
    register_django()  # twice is once
    seen: list[Any] = []

    def read() -> None:
        with connection.cursor() as cursor:
            cursor.execute(READ)
            seen.extend(cursor.fetchone())

    with django_connection() as connection, app.tenant("acme"):
        with transaction.atomic():
            read()
            with transaction.atomic():
                read()
                transaction.set_rollback(True)
            read()
        read()
        with app.tenant("acme"), transaction.atomic():
            read()
        assert len(connection.execute_wrappers) == 1
    assert seen == ["acme", "acme", "acme", "", "acme"]
