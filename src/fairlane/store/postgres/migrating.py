"""Bring a schema to this version. Forward only, safe twice, safe by several at once."""

from __future__ import annotations

import hashlib
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

# Functions may call each other, whatever their order is.
_SETTINGS: Final = (
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL check_function_bodies = off"
)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('fairlane migrate ' || $1, 0))"
_HAS_META: Final = "SELECT to_regclass($1) IS NOT NULL"
_HAS_SCHEMA: Final = "SELECT to_regnamespace($1) IS NOT NULL"
_READ: Final = "SELECT value FROM {s}.meta WHERE name = $1"
_WRITE: Final = """
INSERT INTO {s}.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


class Standing(msgspec.Struct, frozen=True):
    """How far a schema is: its number, and the digest of its functions."""

    version: int
    functions: str | None


async def migrate(connection: asyncpg.Connection, location: Location) -> MigrateReply:
    """Take the steps that are missing and install what functions have changed, all in one transaction."""
    schema = location.schema
    async with connection.transaction():
        await connection.execute(_SETTINGS)
        await connection.fetch(_LOCK, schema)  # whoever comes second waits here and finds nothing left to do
        before = await _standing(connection, schema)
        _refuse_newer(before.version, location)
        if not await connection.fetchval(_HAS_SCHEMA, quoted(schema)):
            # Only where it is missing: IF NOT EXISTS, too, asks for the right to make one.
            await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
        missing = STEPS[before.version :]
        for _, text in missing:
            await connection.execute(rendered(text, schema))
        if missing:
            await connection.fetch(rendered(_WRITE, schema), "schema", str(NEWEST))
        digest = functions_digest()
        if before.functions != digest:
            for _, text in FUNCTIONS:
                await connection.execute(rendered(text, schema))
            await connection.fetch(rendered(_WRITE, schema), "functions", digest)
    return MigrateReply(before.version, NEWEST, _names(before))


async def plan(connection: asyncpg.Connection, location: Location) -> MigrateReply:
    """Say which steps are missing."""
    async with connection.transaction():
        before = await _standing(connection, location.schema)
    _refuse_newer(before.version, location)
    return MigrateReply(before.version, NEWEST, _names(before))


async def verify(connection: asyncpg.Connection, location: Location) -> None:
    """Refuse a schema of another version, or none at all."""
    try:
        async with connection.transaction():
            found = await connection.fetchval(rendered(_READ, location.schema), "schema")
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        found = None
    version = int(found or 0)
    _refuse_newer(version, location)
    if version < NEWEST:
        held = f"has schema {version}, this version needs {NEWEST}" if version else "holds no Fairlane yet"
        message = f"{location.place} {held}: run `fairlane migrate`"
        raise SchemaTooOld(message)


def functions_digest() -> str:
    """Give what changes whenever the text of any function does."""
    return hashlib.sha256("\0".join(text for _, text in FUNCTIONS).encode()).hexdigest()


async def _standing(connection: asyncpg.Connection, schema: str) -> Standing:
    if not await connection.fetchval(_HAS_META, f"{quoted(schema)}.meta"):
        return Standing(0, None)
    version = await connection.fetchval(rendered(_READ, schema), "schema")
    functions = await connection.fetchval(rendered(_READ, schema), "functions")
    return Standing(int(version or 0), functions)


def _names(before: Standing) -> tuple[str, ...]:
    steps = tuple(name for name, _ in STEPS[before.version :])
    return steps if before.functions == functions_digest() else (*steps, "functions")


def _refuse_newer(version: int, location: Location) -> None:
    if version > NEWEST:
        message = f"{location.place} has schema {version}, newer than {NEWEST}: upgrade Fairlane"
        raise SchemaTooNew(message)
