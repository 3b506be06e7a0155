"""What keeps a dead letter from running again, and that nothing has changed then (S53, S75)."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind, TaskRules
from fairlane.model.review import Review
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import MAX_REPROCESSED, Reprocessing, ReprocessReply
from tests.contract.world import World


async def is_refused(world: World, item: Reprocessing) -> Refusal:
    """Ask in vain, and return why; nothing at all may have changed."""
    before = await world.sight()
    (reply,) = await world.reprocess(item)
    assert (reply.id, reply.answer, reply.job, reply.review) == (item.id, "refused", None, "pending")
    assert reply.refusal is not None
    assert await world.sight() == before
    return reply.refusal


# ── what refuses it ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [SubjectKind.QUEUE, SubjectKind.TENANT, SubjectKind.TASK])
async def test_a_closed_queue_tenant_or_task_refuses_it(world: World, kind: SubjectKind) -> None:
    """S46, S75: with the reason; the letter stays pending, and runs again once it is open."""
    dead = await world.die()
    name = {SubjectKind.QUEUE: "default", SubjectKind.TENANT: "acme", SubjectKind.TASK: "noop"}[kind]
    await world.close(kind, name)
    refusal = await is_refused(world, world.again(dead))
    detail = f"{kind.value} {name}: maintenance"
    assert refusal == Refusal(0, RefusalKind.CLOSED, "acme", "default", detail=detail)
    await world.reopen(kind, name)
    await world.rerun(dead)


async def test_the_queue_that_counts_is_the_new_jobs(world: World) -> None:
    """S46, S75: a way round a closed queue is another one; a paused one refuses nothing."""
    dead = await world.die()
    await world.close(SubjectKind.QUEUE, "default")
    await world.pause(SubjectKind.QUEUE, "mail")
    assert (await world.rerun(dead, queue="mail")).state is State.READY


@pytest.mark.parametrize(
    "rules",
    [
        QueueRules(limits=Limits(waiting=1, on_full="reject")),
        QueueRules(limits=Limits(waiting=0, on_full="reject")),
        QueueRules(limits=Limits(waiting=1, on_full="warn")),
        QueueRules(max_waiting=1),
    ],
    ids=["tenant", "none at all", "warned", "queue"],
)
async def test_waiting_limits_do_not_count(world: World, rules: QueueRules) -> None:
    """S16, S18, S75: it was accepted once; it counts for those who come after it, and warns nobody."""
    dead = await world.die()
    await world.enqueue()
    await world.declare(SubjectKind.QUEUE, "default", rules)
    told = len(await world.appended("events"))
    await world.rerun(dead)
    kinds = [entry.kind for entry in (await world.appended("events"))[told:]]
    assert kinds == ["job_dlq_reprocess_requested"]
    refused = (await world.send(world.new())).refused
    assert bool(refused) is (rules.limits.on_full == "reject" or rules.max_waiting is not None)
    assert [one.waiting for one in refused] in ([], [2])


async def test_a_de_duplication_key_that_a_living_job_holds_refuses_it(world: World) -> None:
    """S14, S75: the reason names that job; once it has ended the letter may run again."""
    dead = await world.die(dedup_key="d")
    living = await world.enqueue(dedup_key="d")
    refusal = await is_refused(world, world.again(dead))
    assert refusal == Refusal(0, RefusalKind.DUPLICATE, "acme", "default", existing=living.id)
    await world.run()
    assert (await world.rerun(dead)).dedup_key == "d"
    assert (await world.census()).dedup_keys == 1


async def test_a_new_run_holds_its_de_duplication_key(world: World) -> None:
    """S14, S75: an enqueue with the key is a repeat of it."""
    new = await world.rerun(await world.die(dedup_key="d"))
    (again,) = (await world.send(world.new(dedup_key="d"))).enqueued
    assert (again.job.id, again.is_created) == (new.id, False)


@pytest.mark.parametrize("is_gone", [False, True], ids=["stored", "gone"])
async def test_an_idempotency_key_that_is_taken_refuses_it(world: World, is_gone: bool) -> None:
    """S13, S75: whatever became of the job that has it, the reason names it."""
    dead = await world.die()
    (holder,) = (await world.send(world.new(idempotency_key="k", fingerprint=b"f"))).enqueued
    if is_gone:
        await world.run()
        await world.prune(succeeded=0)
    same = await is_refused(world, world.again(dead, idempotency_key="k", fingerprint=b"f"))
    assert same == Refusal(0, RefusalKind.DUPLICATE, "acme", "default", existing=holder.job.id)
    other = await is_refused(world, world.again(dead, idempotency_key="k", fingerprint=b"other"))
    assert (other.kind, other.existing) == (RefusalKind.IDEMPOTENCY_MISMATCH, holder.job.id)
    raised = world.again(dead, idempotency_key="k", fingerprint=b"f", on_duplicate="raise")
    assert (await is_refused(world, raised)).kind is RefusalKind.DUPLICATE


async def test_another_tenants_key_is_in_nobodys_way(world: World) -> None:
    """S9, S13, S14: keys are a tenant's own."""
    dead = await world.die(dedup_key="d")
    await world.enqueue("globex", idempotency_key=f"{dead.id}#r1", dedup_key="d")
    await world.rerun(dead)


async def test_an_id_that_is_taken_refuses_it(world: World) -> None:
    """S15, S75: no job is written over."""
    dead = await world.die()
    mine, other = await world.enqueue(), await world.enqueue("globex")
    assert await is_refused(world, world.again(dead, id=mine.id)) == Refusal(
        0, RefusalKind.ID_TAKEN, "acme", "default", existing=mine.id
    )
    assert await is_refused(world, world.again(dead, id=other.id)) == Refusal(
        0, RefusalKind.ID_TAKEN, "acme", "default"
    )


async def test_a_refused_item_leaves_the_others_alone(world: World) -> None:
    """S75: each is a step of its own; a refusal has the index of its item."""
    dead = [await world.die(queue=queue) for queue in ("a", "b", "c")]
    await world.close(SubjectKind.QUEUE, "b")
    replies = await world.reprocess(*map(world.again, dead))
    assert [reply.answer for reply in replies] == ["reprocessed", "refused", "reprocessed"]
    assert replies[1].refusal is not None
    assert replies[1].refusal.index == 1
    assert [letter.job.id for letter in await world.letters(review="pending")] == [dead[1].id]


# ── what is not there to run again ───────────────────────────────────────────


@pytest.mark.parametrize("review", ["pending", "resolved", "ignored", "discarded"])
async def test_whatever_may_be_decided_otherwise_may_run_again(world: World, review: Review) -> None:
    """S75: a discarded letter may not, and keeps its decision."""
    dead = await world.die()
    if review == "discarded":
        await world.review("discard", dead.id)
        before = await world.sight()
        assert await world.reprocess(world.again(dead)) == (
            ReprocessReply(dead.id, "not_allowed", review="discarded"),
        )
        assert await world.sight() == before
        return
    if review != "pending":
        await world.review("resolve" if review == "resolved" else "ignore", dead.id)
    await world.rerun(dead)


async def test_what_was_forgotten_in_between_does_not_run_again(world: World) -> None:
    """S52, S75: its arguments are gone; nothing of what the caller read comes back."""
    dead = await world.die()
    item = world.again(dead)
    await world.forget()
    before = await world.sight()
    assert await world.reprocess(item) == (ReprocessReply(dead.id, "changed", review="pending"),)
    assert await world.sight() == before


async def test_what_is_no_dead_letter_is_not_found(world: World) -> None:
    """S53, S75: unknown ids, and jobs that live or ended otherwise."""
    jobs = [(await world.bring_to(state, queue=state.value)).job for state in State if state != "dead"]
    items = [world.again(job) for job in jobs]
    never = world.new()
    items.append(Reprocessing(never.id, 0, world.new(parent_id=never.id)))
    before = await world.sight()
    assert await world.reprocess(*items) == tuple(ReprocessReply(item.id, "not_found") for item in items)
    assert await world.sight() == before


async def test_a_deleted_letter_does_not_run_again(world: World) -> None:
    """S75: it answers like an id that never was."""
    dead = await world.die()
    await world.delete(dead.id)
    assert await world.reprocess(world.again(dead)) == (ReprocessReply(dead.id, "not_found"),)
    assert await world.find_all() == []


async def test_another_tenants_letter_is_not_there(world: World) -> None:
    """S9, S75: neither under the other's scope nor for a job of another tenant, and nothing changes."""
    dead = await world.die()
    item = world.again(dead)
    theirs = Reprocessing(dead.id, dead.checksum, msgspec.structs.replace(item.job, tenant="globex"))
    nothing = (ReprocessReply(dead.id, "not_found"),)
    before = await world.sight()
    assert await world.reprocess(item, scope=Scope("globex")) == nothing
    assert await world.reprocess(theirs, scope=Scope("globex")) == nothing
    assert await world.reprocess(theirs) == nothing
    assert await world.reprocess(theirs, scope=Scope("acme")) == nothing
    assert await world.sight() == before
    (reply,) = await world.reprocess(item, scope=Scope("acme"))
    assert reply.answer == "reprocessed"


# ── bad requests ─────────────────────────────────────────────────────────────


async def test_a_request_takes_so_many_letters_and_no_more(world: World) -> None:
    """S75: one more is refused, and nothing has changed."""
    jobs = await world.enqueue_many(MAX_REPROCESSED + 1, checksum=7)
    await world.condemn(*(job.id for job in jobs))
    items = [world.again(job) for job in jobs]
    before = await world.counts()
    with pytest.raises(ValueError, match="at most 200 dead letters, not 201"):
        await world.reprocess(*items)
    assert await world.counts() == before
    replies = await world.reprocess(*items[1:])
    assert [reply.job for reply in replies] == [item.job.id for item in items[1:]]
    assert [one.job.id for one in await world.letters(review="pending")] == [jobs[0].id]


async def test_a_new_job_with_another_parent_is_refused(world: World) -> None:
    """S22, S75: a link that leads elsewhere would be found by nobody; nothing of the request is done."""
    one, other = await world.die(), await world.die()
    for parent in (None, one.id):
        with pytest.raises(ValueError, match="has the parent"):
            await world.reprocess(world.again(one), world.again(other, parent_id=parent))
    assert len(await world.letters(review="pending")) == 2


async def test_nothing_asked_is_nothing_answered(world: World) -> None:
    """S75: no items, no replies."""
    assert await world.reprocess() == ()


async def test_the_tasks_gate_and_pause_hold_for_it_as_for_any_job(world: World) -> None:
    """S43, S46, S75: it is stored, and waits."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    dead = await world.die()
    await world.pause(SubjectKind.TASK, "noop")
    new = await world.rerun(dead)
    assert await world.claim() == []
    await world.resume(SubjectKind.TASK, "noop")
    assert (await world.claim_one()).job.id == new.id
