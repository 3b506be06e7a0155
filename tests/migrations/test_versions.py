"""A filled file of every version is migrated: nothing is lost or changed, and work goes on (S63, S67)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from fairlane.model.errors import SchemaTooOld
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, JobRecord
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.store.opening import open_store
from fairlane.store.sqlite.migrating import NEWEST, STEPS
from tests.contract.world import World, failed
from tests.migrations.filling import sight
from tests.oracle.clock import DrivenClock

VERSIONS = (1,)
"""Every version that a file may have; a new one adds its number and two files, written by `filling`."""

FOLDER = Path(__file__).parent


class Old:
    """An old file, migrated, and what the old version told about it."""

    def __init__(self, version: int, world: World) -> None:
        """Read what the old version told."""
        self.version = version
        self.world = world
        self.told: dict[str, Any] = json.loads((FOLDER / f"version_{version}.json").read_text("utf-8"))

    async def jobs(self, *states: State) -> list[JobRecord]:
        """Return the jobs that are in these states now."""
        return await self.world.find_all(states=frozenset(states))


def restore(version: int, file: Path) -> None:
    """Create a file of an old version from its dump."""
    db = apsw.Connection(str(file))
    db.execute((FOLDER / f"version_{version}.sql").read_text("utf-8"))
    db.close()


@pytest.fixture(params=VERSIONS)
async def old(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Old]:
    """A migrated file of each version; its counters must be exact at the end of every test."""
    file = tmp_path / "fairlane.db"
    restore(request.param, file)
    clock = DrivenClock()
    store = open_store(f"sqlite:///{file}", clock=clock)
    try:
        reply = await store.upkeep.migrate()
        assert (reply.before, reply.after) == (request.param, NEWEST)
        assert reply.steps == tuple(name for name, _ in STEPS[request.param :])
        found = Old(request.param, World(store, clock))
        clock.advance((found.told["now"] - clock.now()) / SECOND)
        yield found
        await found.world.check_invariants()
    finally:
        await store.upkeep.aclose()


def differences(told: Any, seen: Any, path: str = "") -> list[str]:
    """List what has changed; a newer version may tell more, but nothing else."""
    if isinstance(told, dict) and isinstance(seen, dict):
        return [line for key in told for line in differences(told[key], seen.get(key), f"{path}/{key}")]
    if isinstance(told, list) and isinstance(seen, list) and len(told) == len(seen):
        pairs = enumerate(zip(told, seen, strict=True))
        return [line for number, (a, b) in pairs for line in differences(a, b, f"{path}/{number}")]
    return [] if told == seen else [f"{path}: was {told!r}, is {seen!r}"]


async def test_everything_is_told_as_before(old: Old) -> None:
    """S63: jobs, counts, dead letters, counters and policies are what the old version told."""
    seen = await sight(old.world)
    assert differences(old.told, seen) == []
    assert seen["jobs"].keys() == old.told["jobs"].keys()
    assert {job["state"] for job in seen["jobs"].values()} == {state.value for state in State}


async def test_a_live_claim_is_settled_by_its_fence_alone(old: Old) -> None:
    """S36: the owner of a claim may still settle it, and nobody with another fence."""
    running = await old.jobs(State.RUNNING)
    assert running
    for job in running:
        right = Claim(job, job.fence, job.lease_until or 0)
        wrong = Claim(job, job.fence - 1, job.lease_until or 0)
        worker = str(job.worker)
        reply = await old.world.settle_reply(old.world.verdict(wrong), worker=worker)
        assert reply.stale == (job.id,)
        assert await old.world.get(job.id) == job
        reply = await old.world.settle_reply(old.world.verdict(right), worker=worker)
        assert [one.id for one in reply.settled] == [job.id]


async def test_keys_still_answer(old: Old) -> None:
    """S13, S14: a repeat finds the first job by either key, whatever its state."""
    for keys in ({"idempotency_key": "order-1", "fingerprint": b"f1"}, {"dedup_key": "d1"}):
        reply = await old.world.send(old.world.new("acme", **keys))
        assert not reply.enqueued[0].is_created
        assert str(reply.enqueued[0].job.id) in old.told["jobs"]


async def test_what_was_parked_wakes(old: Old) -> None:
    """S42: a pause, a cap, a gate and rates end as before, and every job is claimed once."""
    world = old.world
    await world.resume(SubjectKind.TENANT, "paused")
    await world.override(SubjectKind.TENANT, "capped", PolicyChange(queue_limits={}))
    for kind, name in (
        (SubjectKind.TENANT, "slow"),
        (SubjectKind.TASK, "rated"),
        (SubjectKind.GATE, "narrow"),
    ):
        await world.reset(kind, name)
    served: set[str] = set()
    for _ in range(200):
        world.advance(3_600)
        await world.promote()
        for queue in ("default", "timed", "quiet"):
            for claim in await world.claim(5, queue):
                served.add(str(claim.job.id))
                await world.settle(claim)
        await world.reclaim()
        if not await old.jobs(State.READY, State.DELAYED, State.RUNNING):
            break
    ended = {str(job.id): job.state for job in await world.find_all()}
    assert all(is_finished(state) for state in ended.values())
    waited = {id for id, job in old.told["jobs"].items() if job["state"] in {"ready", "delayed"}}
    assert waited - {id for id, state in ended.items() if state is State.CANCELLED} <= served


async def test_attempts_go_on_counting(old: Old) -> None:
    """S24, S36: the next claim of a job has the next attempt and a higher fence than any before."""
    world = old.world
    claims = await world.claim(3)
    assert claims
    for claim in claims:
        before = old.told["jobs"][str(claim.job.id)]
        assert claim.job.attempt == before["attempt"] + 1
        assert claim.fence > before["fence"]
        await world.settle(claim, failed())
        assert len((await world.get(claim.job.id)).attempts) == len(before["attempts"]) + 1


async def test_jobs_of_before_have_no_creator_and_new_ones_are_found_by_theirs(old: Old) -> None:
    """S51: schema 2 adds `created_by`, which is NULL for jobs of schema 1."""
    world = old.world
    assert {job.created_by for job in await world.find_all()} == {None}
    job = await world.enqueue("acme", created_by="ops")
    assert await world.find_all(created_by="ops") == [await world.get(job.id)]


async def test_an_older_file_is_refused_until_it_is_migrated(tmp_path: Path) -> None:
    """S67: opening a file never changes its schema; the message says what to do."""
    file = tmp_path / "fairlane.db"
    restore(VERSIONS[-1], file)
    db = apsw.Connection(str(file))
    db.pragma("user_version", NEWEST - 1)
    db.close()
    clock = DrivenClock()
    store = open_store(f"sqlite:///{file}", clock=clock)
    with pytest.raises(SchemaTooOld, match="migrate"):
        await World(store, clock).find_all()
    await store.upkeep.aclose()
