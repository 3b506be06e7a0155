"""Migrate a schema to this version. Forward only, safe to repeat, safe by several at once."""

from __future__ import annotations

import hashlib
import re
from functools import cache
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
"""The lowest schema number whose workers can work on this schema, too (S67). A step that removes what they
need, or a function that answers them differently, raises it."""

# Functions may call each other, whatever their order is.
_SETTINGS: Final = (
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL check_function_bodies = off"
)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('fairlane migrate ' || $1, 0))"
_HAS_META: Final = "SELECT to_regclass($1) IS NOT NULL"
_HAS_SCHEMA: Final = "SELECT to_regnamespace($1) IS NOT NULL"
_READ: Final = "SELECT name, value FROM {schema}.meta WHERE name = ANY ($1)"
_WRITE: Final = """
INSERT INTO {schema}.meta (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


class SchemaStatus(msgspec.Struct, frozen=True):
    """The number of a schema, the lowest it serves, and the digest and release of its functions."""

    schema: int = 0
    serves: int = 0
    functions: str = ""
    release: str = "0"


_NAMES: Final = SchemaStatus.__struct_fields__


async def migrate(connection: asyncpg.Connection, location: Location) -> MigrateReply:
    """Run the missing steps and install the functions if any has changed, all in one transaction."""
    schema = location.schema
    async with connection.transaction():
        await connection.execute(_SETTINGS)
        await connection.fetch(_LOCK, schema)  # the second one waits here and finds nothing left to do
        before = await _schema_status(connection, schema)
        _refuse_newer(before, location)
        if not await connection.fetchval(_HAS_SCHEMA, quoted(schema)):
            # Only where it is missing: even IF NOT EXISTS needs the right to create one.
            await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
        missing = STEPS[before.schema :]
        for _, text in missing:
            await connection.execute(rendered(text, schema))
        after = SchemaStatus(NEWEST, SERVES, functions_digest(), version("fairlane"))
        if before.functions != after.functions:
            for _, text in FUNCTIONS:
                await connection.execute(rendered(text, schema))
        for name, value in msgspec.structs.asdict(after).items():
            await connection.fetch(rendered(_WRITE, schema), name, str(value))
    return MigrateReply(before.schema, NEWEST, _names(before))


async def plan(connection: asyncpg.Connection, location: Location) -> MigrateReply:
    """Return which steps are missing."""
    async with connection.transaction():
        before = await _schema_status(connection, location.schema)
    _refuse_newer(before, location)
    return MigrateReply(before.schema, NEWEST, _names(before))


async def verify(connection: asyncpg.Connection, location: Location) -> None:
    """Refuse a missing or older schema, older functions, and a newer schema that does not serve us (S67)."""
    try:
        async with connection.transaction():
            found = await _read(connection, location.schema)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        found = SchemaStatus()
    if (found.serves or found.schema) > NEWEST:
        _refuse_newer(found, location)
    if found.schema < NEWEST:
        is_any = found.schema > 0
        state = (
            f"has schema {found.schema}, this version needs {NEWEST}" if is_any else "holds no Fairlane yet"
        )
        message = f"{location.place} {state}: run `fairlane migrate`"
        raise SchemaTooOld(message)
    if found.functions != functions_digest() and _numbers(found.release) < _numbers(version("fairlane")):
        state = f"has the functions of Fairlane {found.release}, older than {version('fairlane')}"
        message = f"{location.place} {state}: run `fairlane migrate`"
        raise SchemaTooOld(message)


@cache
def functions_digest() -> str:
    """Return what changes whenever the text of any function does, with the lists that are written into it."""
    return hashlib.sha256("\0".join(rendered(text, "") for _, text in FUNCTIONS).encode()).hexdigest()


async def _schema_status(connection: asyncpg.Connection, schema: str) -> SchemaStatus:
    if not await connection.fetchval(_HAS_META, f"{quoted(schema)}.meta"):
        return SchemaStatus()
    return await _read(connection, schema)


async def _read(connection: asyncpg.Connection, schema: str) -> SchemaStatus:
    rows = await connection.fetch(rendered(_READ, schema), list(_NAMES))
    return msgspec.convert(dict(rows), SchemaStatus, strict=False)


def _names(before: SchemaStatus) -> tuple[str, ...]:
    steps = tuple(name for name, _ in STEPS[before.schema :])
    return steps if before.functions == functions_digest() else (*steps, "functions")


def _refuse_newer(found: SchemaStatus, location: Location) -> None:
    """Refuse what a newer release has made: its workers need its functions."""
    own = version("fairlane")
    if found.schema > NEWEST:
        message = f"{location.place} has schema {found.schema}, newer than {NEWEST}: upgrade Fairlane"
        raise SchemaTooNew(message)
    if found.functions != functions_digest() and _numbers(found.release) > _numbers(own):
        state = f"has the functions of Fairlane {found.release}, newer than {own}"
        message = f"{location.place} {state}: upgrade Fairlane"
        raise SchemaTooNew(message)


def _numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, to compare it with another.

    >>> _numbers("1.10.2.dev0") > _numbers("1.9")
    True
    """
    return tuple(map(int, re.findall(r"\d+", release)))
