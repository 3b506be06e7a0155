"""Bring a schema to this version. Forward only, safe twice, safe by several at once."""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import version
from typing import Final

import asyncpg
import msgspec

from fairlane.model.errors import SchemaTooNew, SchemaTooOld
from fairlane.store.contract.upkeep import MigrateReply
from fairlane.store.postgres.location import Location
from fairlane.store.postgres.statements import quoted, rendered, texts

STEPS: Final = texts("migrations")
NEWEST: Final = len(STEPS)
FUNCTIONS: Final = texts("functions")
SERVES: Final = 1
"""The lowest number of a schema whose workers can work on this one, too (S67). A step that takes away what
they need, or a function that answers them otherwise, raises it."""

# Functions may call each other, whatever their order is.
_SETTINGS: Final = (
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL check_function_bodies = off"
)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('fairlane migrate ' || $1, 0))"
_HAS_META: Final = "SELECT to_regclass($1) IS NOT NULL"
_HAS_SCHEMA: Final = "SELECT to_regnamespace($1) IS NOT NULL"
_READ: Final = "SELECT name, value FROM {s}.meta WHERE name = ANY ($1)"
_WRITE: Final = """
INSERT INTO {s}.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


class Standing(msgspec.Struct, frozen=True):
    """How far a schema is: its number, the lowest it serves, its functions' digest, and whose they are."""

    schema: int = 0
    serves: int = 0
    functions: str = ""
    release: str = "0"


_NOTES: Final = Standing.__struct_fields__


async def migrate(connection: asyncpg.Connection, location: Location) -> MigrateReply:
    """Take the steps that are missing and install what functions have changed, all in one transaction."""
    schema = location.schema
    async with connection.transaction():
        await connection.execute(_SETTINGS)
        await connection.fetch(_LOCK, schema)  # whoever comes second waits here and finds nothing left to do
        before = await _standing(connection, schema)
        _refuse_newer(before, location)
        if not await connection.fetchval(_HAS_SCHEMA, quoted(schema)):
            # Only where it is missing: IF NOT EXISTS, too, asks for the right to make one.
            await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
        missing = STEPS[before.schema :]
        for _, text in missing:
            await connection.execute(rendered(text, schema))
        after = Standing(NEWEST, SERVES, functions_digest(), version("fairlane"))
        if before.functions != after.functions:
            for _, text in FUNCTIONS:
                await connection.execute(rendered(text, schema))
        for name, value in msgspec.structs.asdict(after).items():
            await connection.fetch(rendered(_WRITE, schema), name, str(value))
    return MigrateReply(before.schema, NEWEST, _names(before))


async def plan(connection: asyncpg.Connection, location: Location) -> MigrateReply:
    """Say which steps are missing."""
    async with connection.transaction():
        before = await _standing(connection, location.schema)
    _refuse_newer(before, location)
    return MigrateReply(before.schema, NEWEST, _names(before))


async def verify(connection: asyncpg.Connection, location: Location) -> None:
    """Refuse no schema, an older one or its functions, and a newer one that does not serve us (S67)."""
    try:
        async with connection.transaction():
            found = await _read(connection, location.schema)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        found = Standing()
    if (found.serves or found.schema) > NEWEST:
        _refuse_newer(found, location)
    if found.schema < NEWEST:
        is_any = found.schema > 0
        held = (
            f"has schema {found.schema}, this version needs {NEWEST}" if is_any else "holds no Fairlane yet"
        )
        message = f"{location.place} {held}: run `fairlane migrate`"
        raise SchemaTooOld(message)
    if found.functions != functions_digest() and _numbers(found.release) < _numbers(version("fairlane")):
        held = f"has the functions of Fairlane {found.release}, older than {version('fairlane')}"
        message = f"{location.place} {held}: run `fairlane migrate`"
        raise SchemaTooOld(message)


def functions_digest() -> str:
    """Give what changes whenever the text of any function does."""
    return hashlib.sha256("\0".join(text for _, text in FUNCTIONS).encode()).hexdigest()


async def _standing(connection: asyncpg.Connection, schema: str) -> Standing:
    if not await connection.fetchval(_HAS_META, f"{quoted(schema)}.meta"):
        return Standing()
    return await _read(connection, schema)


async def _read(connection: asyncpg.Connection, schema: str) -> Standing:
    rows = await connection.fetch(rendered(_READ, schema), list(_NOTES))
    return msgspec.convert(dict(rows), Standing, strict=False)


def _names(before: Standing) -> tuple[str, ...]:
    steps = tuple(name for name, _ in STEPS[before.schema :])
    return steps if before.functions == functions_digest() else (*steps, "functions")


def _refuse_newer(found: Standing, location: Location) -> None:
    """Do nothing to what a newer release has made: its workers need its functions."""
    own = version("fairlane")
    if found.schema > NEWEST:
        message = f"{location.place} has schema {found.schema}, newer than {NEWEST}: upgrade Fairlane"
        raise SchemaTooNew(message)
    if found.functions != functions_digest() and _numbers(found.release) > _numbers(own):
        held = f"has the functions of Fairlane {found.release}, newer than {own}"
        message = f"{location.place} {held}: upgrade Fairlane"
        raise SchemaTooNew(message)


def _numbers(release: str) -> tuple[int, ...]:
    """Give the numbers of a release, to compare it with another.

    >>> _numbers("1.10.2.dev0") > _numbers("1.9")
    True
    """
    return tuple(map(int, re.findall(r"\d+", release)))
