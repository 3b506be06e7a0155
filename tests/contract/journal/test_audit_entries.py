"""What an operator changes is in the audit, by the step that changes it; what he does not, is not (S60)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec
import pytest

from fairlane.model.instants import HOUR, SECOND
from fairlane.model.journal.operations import Operation, created_entry, entry_of, job_entry
from fairlane.model.lifecycle.states import Because, State, because
from fairlane.model.policy.overrides import SubjectKind
from fairlane.model.review import ReviewAction
from fairlane.model.scope import Scope
from fairlane.store.contract.jobs import RunNowRequest, StopRequest
from fairlane.store.contract.mailbox import AskRequest
from tests.contract.dead.test_review import NOTE
from tests.contract.world import ALL, OPERATION, World, payload, ruined

Act: TypeAlias = Callable[[World, UUID, Scope, Operation | None], Awaitable[object]]


class Steering(NamedTuple):
    """A verb that changes a job: what the job is, what is done, and what of it differs then."""

    values: dict[str, Any]
    act: Act
    before: dict[str, Any]
    after: dict[str, Any]
    is_running: bool = False


async def cancel(world: World, id: UUID, scope: Scope, operation: Operation | None) -> object:
    """Cancel."""
    request = StopRequest(scope=scope, ids=(id,), reason="why", who="ann", operation=operation)
    return await world.store.jobs.cancel(request)


async def condemn(world: World, id: UUID, scope: Scope, operation: Operation | None) -> object:
    """Condemn."""
    request = StopRequest(scope=scope, ids=(id,), reason="why", who="ann", operation=operation)
    return await world.store.jobs.condemn(request)


async def run_now(world: World, id: UUID, scope: Scope, operation: Operation | None) -> object:
    """Make due."""
    return await world.store.jobs.run_now(RunNowRequest(scope=scope, ids=(id,), operation=operation))


def edit(**values: Any) -> Act:
    """Edit to these values."""
    return lambda world, id, scope, operation: world.edit(id, scope, operation=operation, **values)


def reviewing(action: ReviewAction) -> Act:
    """Do this about a dead letter."""
    return lambda world, id, scope, operation: world.review(
        action, id, scope=scope, who="bob", note=NOTE, operation=operation
    )


CONDEMNED: Final = because(Because.CONDEMNED, "why")
ASKED: Final = because(Because.ASKED, "why")

STEERED: Final[dict[str, Steering]] = {
    "edited": Steering(
        {},
        edit(priority=9, tags=("a", "b")),
        {"priority": 0, "tags": ()},
        {"priority": 9, "tags": ("a", "b")},
    ),
    "edited arguments": Steering(
        {},
        edit(payload=payload(secret="s"), checksum=5, version=2),
        {"version": 1, "checksum": 0},
        {"version": 2, "checksum": 5},
    ),
    "given an expiry": Steering({}, edit(expires_at=2**52), {"expires_at": None}, {"expires_at": 2**52}),
    "cancelled": Steering(
        {}, cancel, {"state": "ready", "because": None}, {"state": "cancelled", "because": ASKED}
    ),
    "cancelled before its time": Steering(
        {"delay": HOUR},
        cancel,
        {"state": "delayed", "because": "time"},
        {"state": "cancelled", "because": ASKED},
    ),
    "asked to stop": Steering({}, cancel, {"because": None}, {"because": ASKED}, is_running=True),
    "condemned": Steering(
        {}, condemn, {"state": "ready", "because": None}, {"state": "dead", "because": CONDEMNED}
    ),
}
"""Every verb that changes a job, but for the one whose times depend on the clock."""


@pytest.mark.parametrize("name", STEERED)
async def test_a_change_of_a_job_is_one_entry_with_what_differs(world: World, name: str) -> None:
    """S60: who, from where, why, before and after; its arguments are not copied."""
    values, act, before, after, is_running = STEERED[name]
    job = await world.enqueue(**values)
    if is_running:
        await world.claim_one()
    await act(world, job.id, ALL, OPERATION)
    (pending,) = (await world.pending("audit")).entries
    assert (pending.at, pending.entry) == (
        world.now,
        entry_of(OPERATION, str(job.id), "acme", before, after),
    )
    assert b"secret" not in pending.entry.body


@pytest.mark.parametrize("name", STEERED)
async def test_the_same_change_again_leaves_nothing(world: World, name: str) -> None:
    """S60: what has changed nothing leaves nothing, also for a job that has ended, or is not there."""
    values, act, *_, is_running = STEERED[name]
    job = await world.enqueue(**values)
    if is_running:
        await world.claim_one()
    await act(world, job.id, ALL, OPERATION)
    ended = (await world.bring_to(State.SUCCEEDED, queue="own")).job.id
    before = await world.sight()
    for id in (job.id, ended, world.new().id):
        await act(world, id, ALL, OPERATION)
    assert await world.sight() == before


@pytest.mark.parametrize("name", STEERED)
async def test_under_a_foreign_scope_nothing_changes_and_nothing_is_noted(world: World, name: str) -> None:
    """S9, S60: under its own it is, as the tenant's."""
    values, act, *_, is_running = STEERED[name]
    job = await world.enqueue(**values)
    if is_running:
        await world.claim_one()
    before = await world.sight()
    await act(world, job.id, Scope("globex"), OPERATION)
    assert await world.sight() == before
    await act(world, job.id, Scope("acme"), OPERATION)
    assert [entry.tenant for entry in await world.appended("audit")] == ["acme"]


@pytest.mark.parametrize("name", STEERED)
async def test_what_no_operator_does_is_not_in_the_audit(world: World, name: str) -> None:
    """S60: without an operation the same change leaves no entry."""
    values, act, *_, is_running = STEERED[name]
    job = await world.enqueue(**values)
    if is_running:
        await world.claim_one()
    await act(world, job.id, ALL, None)
    assert await world.get(job.id) != job
    assert await world.appended("audit") == []


@pytest.mark.parametrize("act", [run_now, edit(run_at=1)], ids=["run now", "edit"])
async def test_a_job_that_is_made_ready_is_noted_with_its_times(world: World, act: Act) -> None:
    """S53, S60: state, because and run_at, before and after; once it is ready nothing changes."""
    job = await world.enqueue(delay=HOUR)
    world.advance(5)
    await act(world, job.id, ALL, OPERATION)
    after = await world.get(job.id)
    assert (after.state, after.run_at) == (State.READY, world.now)
    assert await world.appended("audit") == [job_entry(OPERATION, job, after)]
    await act(world, job.id, ALL, OPERATION)
    assert len(await world.appended("audit")) == 1


async def test_an_entry_says_all_that_the_operation_says(world: World) -> None:
    """S60: in one JSON object with sorted keys, byte for byte the same on every store."""
    job = await world.enqueue()
    operation = Operation(
        action="jobs.condemn", actor="zoë", origin="cli host7", note=NOTE, details={"filter": {"queue": "q"}}
    )
    await condemn(world, job.id, ALL, operation)
    (entry,) = await world.appended("audit")
    assert (entry.kind, entry.tenant, entry.subject, entry.count) == ("jobs.condemn", "acme", str(job.id), 1)
    assert msgspec.json.decode(entry.body) == {
        "actor": "zoë",
        "origin": "cli host7",
        "note": NOTE,
        "details": {"filter": {"queue": "q"}},
        "before": {"state": "ready", "because": None},
        "after": {"state": "dead", "because": CONDEMNED},
    }
    assert entry.body == msgspec.json.encode(msgspec.json.decode(entry.body), order="sorted")


async def test_each_job_of_a_request_that_changed_is_an_entry(world: World) -> None:
    """S60: the others are none, and a job that is named twice is one."""
    jobs = await world.enqueue_many(3)
    claim = await world.claim_one()
    other = await world.enqueue("globex")
    await world.cancel(jobs[1].id)
    ids = (jobs[2].id, claim.job.id, jobs[1].id, world.new().id, other.id, jobs[2].id)
    request = StopRequest(scope=Scope("acme"), ids=ids, operation=OPERATION)
    await world.store.jobs.cancel(request)
    assert sorted(entry.subject for entry in await world.appended("audit")) == sorted(
        [str(jobs[2].id), str(claim.job.id)]
    )
    await world.store.jobs.condemn(msgspec.structs.replace(request, ids=(other.id,), scope=ALL))
    assert (await world.appended("audit"))[-1].tenant == "globex"


# ── enqueue ──────────────────────────────────────────────────────────────────


async def test_a_job_that_an_operator_makes_is_an_entry(world: World) -> None:
    """S60: each of a batch, with its state, queue, task and parent."""
    parent = world.new().id
    jobs = [world.new(parent_id=parent), world.new("globex", queue="bulk", delay=HOUR)]
    reply = await world.send(*jobs, operation=OPERATION)
    assert await world.appended("audit") == [created_entry(OPERATION, one.job) for one in reply.enqueued]
    after = {"state": "ready", "queue": "default", "task": "noop", "parent": str(parent)}
    assert (await world.appended("audit"))[0] == entry_of(OPERATION, str(jobs[0].id), "acme", None, after)


async def test_a_repeat_makes_no_job_and_no_entry(world: World) -> None:
    """S13, S14, S15, S60: by key or by id, in the same batch or later, or of a job that is gone."""
    first = world.new(idempotency_key="k", dedup_key="d")
    await world.send(first, world.new(dedup_key="d"), operation=OPERATION)
    assert [entry.subject for entry in await world.appended("audit")] == [str(first.id)]
    repeats = [world.new(idempotency_key="k"), world.new(dedup_key="d")]
    await world.send(*repeats, operation=OPERATION)
    await world.send(first, operation=OPERATION, is_repeated=True)
    await world.run()
    await world.prune(succeeded=0)
    await world.send(world.new(idempotency_key="k"), operation=OPERATION)
    assert len(await world.appended("audit")) == 1


async def test_a_batch_that_is_refused_leaves_no_entry(world: World) -> None:
    """S12, S60: no job, no entry; without an operation there is none either."""
    taken = await world.enqueue()
    reply = await world.send(world.new(), world.new(id=taken.id), operation=OPERATION)
    assert reply.refused
    await world.send(world.new())
    assert await world.appended("audit") == []


# ── dead letters ─────────────────────────────────────────────────────────────

REVIEWED: Final[dict[ReviewAction, tuple[dict[str, Any], dict[str, Any]]]] = {
    "acknowledge": ({"notes": 0}, {"acknowledged": "bob", "notes": 1}),
    "note": ({"notes": 0}, {"notes": 1}),
    "resolve": (
        {"review": "pending", "notes": 0},
        {"review": "resolved", "acknowledged": "bob", "notes": 1},
    ),
    "ignore": ({"review": "pending", "notes": 0}, {"review": "ignored", "acknowledged": "bob", "notes": 1}),
    "discard": (
        {"review": "pending", "notes": 0},
        {"review": "discarded", "acknowledged": "bob", "notes": 1},
    ),
}
"""Each action on a new letter, and what differs then."""


@pytest.mark.parametrize("action", REVIEWED)
async def test_a_review_is_an_entry_with_what_differs(world: World, action: ReviewAction) -> None:
    """S60, S75: the text of the note stays in the letter."""
    dead = await world.die()
    act = reviewing(action)
    before = await world.sight()
    await act(world, dead.id, Scope("globex"), OPERATION)
    await act(world, world.new().id, ALL, OPERATION)
    assert await world.sight() == before
    await act(world, dead.id, Scope("acme"), OPERATION)
    assert await world.appended("audit") == [entry_of(OPERATION, str(dead.id), "acme", *REVIEWED[action])]
    await act(world, (await world.die()).id, ALL, None)
    assert len(await world.appended("audit")) == 1


async def test_a_second_review_is_an_entry_of_its_own(world: World) -> None:
    """S60, S75: whoever acknowledged first stays; what may not follow leaves nothing."""
    dead = await world.die()
    await world.review("resolve", dead.id)
    await reviewing("discard")(world, dead.id, ALL, OPERATION)
    await reviewing("ignore")(world, dead.id, ALL, OPERATION)
    after = {"review": "discarded", "notes": 2}
    assert await world.appended("audit") == [
        entry_of(OPERATION, str(dead.id), "acme", {"review": "resolved", "notes": 1}, after)
    ]


async def test_a_new_run_is_an_entry_that_names_it(world: World) -> None:
    """S60, S75: one for each letter that runs again; what does not, leaves nothing."""
    first, second = await world.die(), await world.die(queue="closed")
    await world.close(SubjectKind.QUEUE, "closed")
    items = [world.again(first), world.again(second), world.again(first)]
    await world.reprocess(*items, scope=Scope("globex"), operation=OPERATION)
    await world.reprocess(*items, operation=OPERATION)
    after = {"review": "reprocessed", "new_job": str(items[0].job.id)}
    assert await world.appended("audit") == [entry_of(OPERATION, str(first.id), "acme", None, after)]
    await world.rerun(await world.die(queue="own"))
    assert len(await world.appended("audit")) == 1


async def test_a_deleted_letter_is_an_entry_with_its_last_review(world: World) -> None:
    """S60, S75: one for each that is gone by this call."""
    dead = [await world.die() for _ in range(2)]
    await world.review("ignore", dead[1].id)
    ids = [job.id for job in dead]
    await world.delete(*ids, scope=Scope("globex"), operation=OPERATION)
    assert await world.appended("audit") == []
    for _ in range(2):
        await world.delete(*ids, world.new().id, operation=OPERATION)
    assert sorted(await world.appended("audit"), key=lambda entry: entry.subject) == [
        entry_of(OPERATION, str(id), "acme", {"review": review})
        for id, review in sorted(zip(ids, ("pending", "ignored"), strict=True))
    ]
    await world.delete((await world.die()).id)
    assert len(await world.appended("audit")) == 2


# ── questions ────────────────────────────────────────────────────────────────


async def test_a_question_to_a_worker_is_an_entry(world: World) -> None:
    """S60, S70: once; one that nobody is there to answer is none."""
    await world.register("w1")
    for id, worker in ((1, "w1"), (1, "w1"), (2, "gone")):
        request = AskRequest(
            scope=ALL, id=UUID(int=id), worker=worker, kind="stop", valid_for=SECOND, operation=OPERATION
        )
        await world.store.mailbox.ask(request)
    assert await world.appended("audit") == [entry_of(OPERATION, "worker w1", None)]
    await world.store.mailbox.ask(
        msgspec.structs.replace(request, id=UUID(int=3), worker="w1", operation=None)
    )
    assert len(await world.appended("audit")) == 1


async def test_what_workers_and_duties_do_is_in_no_audit(world: World) -> None:
    """S60: a life of a job, to its death, and everything that cleans up after it."""
    await world.register()
    await world.enqueue(max_attempts=2)
    await world.claim_one()
    await world.lose()
    dead = await world.run(ruined())
    await world.rerun(dead)
    await world.promote()
    await world.expire()
    await world.take_stuck()
    await world.purge()
    await world.prune(dead=0)
    await world.forget()
    assert await world.appended("audit") == []


def test_the_table_has_no_entry_that_cannot_be_told_from_another() -> None:
    """S60: each case notes something else, so that none passes for another."""
    made = [entry_of(OPERATION, "x", None, case.before, case.after) for case in STEERED.values()]
    assert len(set(made)) == len(made)
