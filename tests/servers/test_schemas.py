"""A schema that tests borrow comes back empty, whatever the last one left under way."""

from __future__ import annotations

import threading

import psycopg

from tests.servers.postgres import shared_url
from tests.servers.schemas import lent_schema

_PUT = "INSERT INTO {s}.applied_policy_change (queue, change_id) VALUES ('default', 1)"
_COUNT = "SELECT count(*) FROM {s}.applied_policy_change"
_WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def test_what_was_under_way_when_a_test_ended_is_not_in_the_next_one_s_schema() -> None:
    """A cut connection's statement is committed all the same, and the next test would see its row."""
    is_given_back = threading.Event()

    def commit_late(late: psycopg.Connection) -> None:
        with psycopg.connect(shared_url(), autocommit=True) as look:
            while not is_given_back.is_set() and look.execute(_WAITS).fetchone() == (0,):
                continue
        late.commit()

    with psycopg.connect(shared_url()) as late:
        async with lent_schema() as schema:
            late.execute(_PUT.replace("{s}", schema).encode())
            committing = threading.Thread(target=commit_late, args=(late,))
            committing.start()
        is_given_back.set()
        committing.join()
        assert late.execute(_COUNT.replace("{s}", schema).encode()).fetchone() == (0,)
