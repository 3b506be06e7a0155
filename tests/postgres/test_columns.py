"""One list says which columns a job has; what is generated from it fits the model and the tables."""

from __future__ import annotations

import psycopg

from fairlane.model.job import JobRecord, NewJob
from fairlane.store.postgres.claims.end_jobs import JobEnd
from fairlane.store.postgres.columns import ENDS, JOB, RECORD, SENT
from tests.contract.world import World

_COLUMNS = (
    "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)


def test_a_record_is_read_from_exactly_the_columns_of_the_list() -> None:
    """In the order of its fields, by which it is made."""
    assert tuple(column.name for column in RECORD) == JobRecord.__struct_fields__


def test_a_new_job_sends_every_field_that_is_stored() -> None:
    """What is left says how keys are compared, and is not stored with the job."""
    sent = {column.name for column in SENT}
    assert set(NewJob.__struct_fields__) - sent == {"fingerprint", "on_duplicate"}
    assert sent <= set(NewJob.__struct_fields__)


def test_an_end_has_the_columns_that_are_written() -> None:
    """In the order in which `end_jobs` takes them."""
    assert JobEnd._fields == ("id", *(column.name for column in ENDS))


def test_every_table_has_the_columns_of_its_groups(schema: str, admin: psycopg.Connection) -> None:
    """Whatever migrations have added, in whatever place."""
    for table, missing in (("job", "end"), ("history", "claim"), ("dead", "claim")):
        found = {name for (name,) in admin.execute(_COLUMNS, (f"{schema}.{table}",)).fetchall()}
        assert {column.name for column in JOB if column.group != missing} <= found


async def test_who_asked_for_a_job_is_stored_and_found_in_every_home(world: World) -> None:
    """S22, S51: the field came with a migration, and with one line in the list."""
    mine = [await world.enqueue(created_by="ann") for _ in range(3)]
    await world.enqueue(created_by="bob")
    await world.run()
    await world.claim_one()
    found = await world.find_all(created_by="ann")
    assert {(job.id, job.created_by) for job in found} == {(job.id, "ann") for job in mine}
