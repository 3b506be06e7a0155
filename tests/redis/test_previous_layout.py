"""What an earlier version has written is still read, claimed and searched.

`data/schema-1.json` has the keys of a store that commit 36eefca had filled (jobs in every state, keys,
parked work, rates, a tenant with twenty tasks), and what that version read of it.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis import Redis

from fairlane.model.lifecycle.states import State
from fairlane.store.redis.records.job import JobBody, to_body
from tests.contract.world import World

DATA = Path(__file__).parent / "data" / "schema-1.json"
ADDED_SINCE = {"stuck_after": None, "on_stuck": "dead"}
"""Fields that jobs did not have then, as they are read now."""

FAILURE_ADDED_SINCE = {"fingerprint": ""}
"""The same, of a failure."""


@pytest.fixture
def stored(client: Redis, world: World) -> Any:
    """Restore the keys, and go to the instant at which they were written."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    for key, (kind, value) in data["keys"].items():
        name = b64decode(key)
        if kind == "hash":
            client.hset(name, mapping={b64decode(field): b64decode(one) for field, one in value.items()})
        elif kind == "zset":
            client.zadd(name, {b64decode(member): score for member, score in value.items()})
        else:
            client.set(name, b64decode(value))
    world.advance((data["now"] - world.now) / 1e6)
    return data


def as_now(job: dict[str, Any]) -> dict[str, Any]:
    """Return what that version read, with the fields that were added since."""
    attempts = [
        attempt | {"failure": attempt["failure"] and attempt["failure"] | FAILURE_ADDED_SINCE}
        for attempt in job["attempts"]
    ]
    return job | ADDED_SINCE | {"attempts": attempts}


async def test_jobs_of_the_layout_before_are_read_as_they_were(world: World, stored: Any) -> None:
    """Every field of every job, the counts, and the order of the next ones."""
    jobs = await world.find_all()
    before = {id: as_now(job) for id, job in stored["jobs"].items()}
    assert {str(job.id): json.loads(msgspec.json.encode(job)) for job in jobs} == before
    counts = await world.counts()
    assert sorted([*key[:2], key[2].value, number] for key, number in counts.items()) == stored["counts"]
    assert [str(job.id) for job in await world.peek(50)] == stored["next"]


async def test_jobs_of_the_layout_before_are_found_by_who_created_them(world: World, stored: Any) -> None:
    """The field was stored before anybody could search for it."""
    expected = {id for id, job in stored["jobs"].items() if job["created_by"] == "ana"}
    assert {str(job.id) for job in await world.find_all(created_by="ana")} == expected
    assert len(expected) > 2


async def test_jobs_of_the_layout_before_run_to_their_end(world: World, stored: Any) -> None:
    """Prefetched jobs, parked work, rates and gates go on; the invariants hold at the end."""
    served = []
    for _ in range(60):
        claims = await world.claim(20, queue_requests=[("default", 20), ("rated", 20), ("gates", 20)])
        for claim in claims:
            assert await world.settle(claim) is State.SUCCEEDED
            served.append(str(claim.job.id))
        world.advance(1)
    assert [id for id in served if id in set(stored["next"])] == stored["next"]


async def test_jobs_of_the_layout_before_are_claimed_ahead(world: World, stored: Any) -> None:
    """S67, S68: no index lists those that may not be: records and policies say so, old ones as well."""
    assert stored
    reply = await world.claim_whole(20, ahead=20)
    assert (len(reply.claims), reply.is_ahead_cut) == (20, False)
    world.advance(60)  # until the rate allows a start
    reply = await world.claim_whole(1, "rated", ahead=1)
    assert (len(reply.claims), reply.is_ahead_cut) == (0, True)


async def test_a_body_that_lacks_the_last_fields_is_read_with_their_defaults(world: World) -> None:
    """So a new field of a job needs no migration: it goes to the end of the list."""
    body = msgspec.msgpack.decode(to_body(world.new(created_by="ana", tags=("a",))))
    for fields in range(5, len(JobBody.__struct_fields__) + 1):
        read = msgspec.msgpack.decode(msgspec.msgpack.encode(body[:fields]), type=JobBody)
        assert read.created_by == ("ana" if fields > 7 else None)
