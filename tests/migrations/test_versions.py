"""A filled file of every version is migrated: nothing is lost or changed, and work goes on (S63, S67)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import pytest

from fairlane.model.access import Role
from fairlane.model.access_records import UserRecord
from fairlane.model.errors import SchemaTooOld
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim, JobRecord
from fairlane.model.lifecycle.states import State, is_finished
from fairlane.model.policy.overrides import PolicyChange, SubjectKind
from fairlane.model.review import ReviewRecord
from fairlane.model.schedule.records import NewSlot, ScheduleRecord
from fairlane.model.scope import Scope
from fairlane.store.contract.access import (
    AccessChange,
    AccessFindRequest,
    AccessListRequest,
    AccessWriteRequest,
    AttemptRequest,
)
from fairlane.store.contract.journal import JournalEnd
from fairlane.store.contract.mailbox import AskRequest, UnansweredRequest
from fairlane.store.contract.schedules import (
    DueRequest,
    ScheduleChange,
    SchedulesListRequest,
    SchedulesWriteRequest,
)
from fairlane.store.opening import open_store
from fairlane.store.sqlite.migrating import NEWEST, STEPS
from tests.contract.world import ALL, World, failed
from tests.migrations.filling import JOURNALS, sight
from tests.oracle.clock import DrivenClock

VERSIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
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
    if old.version == 1:
        assert {job.created_by for job in await world.find_all()} == {None}
    job = await world.enqueue("acme", created_by="migrator")
    assert await world.find_all(created_by="migrator") == [await world.get(job.id)]


async def test_jobs_of_before_are_stuck_at_twice_their_timeout(old: Old) -> None:
    """S31: schema 3 adds `stuck_after` and `on_stuck`; jobs of before have neither, and end as dead."""
    world = old.world
    if old.version < 3:
        assert {(job.stuck_after, job.on_stuck) for job in await world.find_all()} == {(None, "dead")}
    job = await world.enqueue("acme", timeout=SECOND, stuck_after=7 * SECOND, on_stuck="requeue")
    found = await world.get(job.id)
    assert (found.stuck_after, found.on_stuck) == (7 * SECOND, "requeue")


async def test_a_worker_of_before_can_be_asked(old: Old) -> None:
    """S70: schema 4 adds the mailbox, which is empty."""
    mailbox, id = old.world.store.mailbox, uuid4()
    unanswered = UnansweredRequest(scope=ALL, worker="w1")
    assert await mailbox.unanswered(unanswered) == ()
    assert await mailbox.ask(AskRequest(scope=ALL, id=id, worker="w1", kind="status", valid_for=SECOND))
    assert [one.id for one in await mailbox.unanswered(unanswered)] == [id]


async def test_dead_letters_of_before_await_a_review(old: Old) -> None:
    """S75: schema 5 adds reviews; letters of before are found by every filter and may be decided about."""
    world = old.world
    letters = await world.letters(review="pending")
    if old.version < 5:
        assert letters == await world.letters()
        assert {(one.fingerprint, one.review) for one in letters} == {("", ReviewRecord())}
    for one in letters:
        job = one.job
        mine = await world.letters(
            scope=Scope(job.tenant),
            queue=job.queue,
            task=job.task,
            error_class=one.error_class,
            fingerprint=one.fingerprint,
            review="pending",
        )
        assert job.id in {other.job.id for other in mine}
    resolved, rerun = letters[0].job, letters[1].job
    assert [one.answer for one in await world.review("resolve", resolved.id, note="known")] == ["done"]
    assert (await world.rerun(rerun)).parent_id == rerun.id
    assert resolved.id in {one.job.id for one in await world.letters(review="resolved")}


async def test_journals_are_kept_on_or_from_now_on(old: Old) -> None:
    """S60, S76: schema 5 adds the journals."""
    world = old.world
    if old.version < 5:
        for journal in JOURNALS:
            assert await world.journal(journal) == ((), JournalEnd(), ())
    doomed = await world.enqueue("acme")
    before = await world.pending("events")
    await world.condemn(doomed.id)
    assert [one.kind for one in await world.appended("events")][len(before.entries) :] == ["dead_letter"]
    numbers = [one.number for one in await world.number("events")]
    assert numbers == [before.end.last + 1 + number for number in range(len(before.entries) + 1)]


async def test_nobody_may_sign_in_yet_and_users_can_be_added(old: Old) -> None:
    """S79: schema 6 adds access, closed by default."""
    access = old.world.store.access
    assert (await access.list(AccessListRequest(scope=ALL, kind="user"))).rows == ()
    ann = UserRecord(name="ann", role=Role.ADMIN, password_hash="1", created_by="root")
    added = AccessChange(key=ann.key, record=ann)
    assert await access.write(AccessWriteRequest(scope=ALL, changes=(added,)))
    found = await access.find(AccessFindRequest(scope=ALL, keys=(ann.key,)))
    assert [row.record for row in found.rows] == [ann]
    attempt = AttemptRequest(scope=ALL, most={"ann": 1}, within=SECOND)
    assert [await access.attempt(attempt) for _ in range(2)] == [0, SECOND]


async def test_there_are_no_schedules_yet_and_some_can_be_added(old: Old) -> None:
    """S57: schema 7 adds schedules and their slots."""
    schedules, world = old.world.store.schedules, old.world
    assert (await schedules.list(SchedulesListRequest(scope=ALL))).rows == ()
    made = ScheduleRecord(name="nightly", next_at=world.now)
    slot = NewSlot(at=world.now, tenant="acme")
    change = ScheduleChange(name="nightly", record=made, slots=(slot,))
    request = SchedulesWriteRequest(scope=ALL, changes=(change,))
    assert (await schedules.write(request)).is_made == (True,)
    reply = await schedules.due(DueRequest(scope=ALL))
    assert ([row.record for row in reply.rows], [one.at for one in reply.pending]) == ([made], [slot.at])


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
