"""Pause stops claims, close stops enqueues, and nothing else stops (S46). Purge stands elsewhere."""

from __future__ import annotations

import pytest

from fairlane.model.instants import MINUTE, SECOND
from fairlane.model.lifecycle.admission import RefusalKind
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.overrides import Hold, SubjectKind
from tests.contract.world import ENDINGS, MICRO, World, failed

SUBJECTS = {SubjectKind.QUEUE: "default", SubjectKind.TENANT: "acme", SubjectKind.TASK: "noop"}

of_every_kind = pytest.mark.parametrize(
    ("kind", "name"), SUBJECTS.items(), ids=[str(kind) for kind in SUBJECTS]
)

OTHERS = {
    SubjectKind.QUEUE: ("acme", "mail", "noop"),
    SubjectKind.TENANT: ("globex", "default", "noop"),
    SubjectKind.TASK: ("acme", "default", "other"),
}
"""For each kind a job that differs from (acme, default, noop) in nothing but that."""


async def _claimed(world: World) -> list[tuple[str, str, str]]:
    claims = await world.claim(9, queue_requests=[("default", 9), ("mail", 9)])
    return sorted((claim.job.tenant, claim.job.queue, claim.job.task) for claim in claims)


async def _send_two(world: World, kind: SubjectKind) -> tuple[str, str, str]:
    """Enqueue one job that a hold of this kind is about, and one that it is not; name the latter."""
    tenant, queue, task = OTHERS[kind]
    await world.enqueue()
    await world.enqueue(tenant, queue=queue, task=task)
    return OTHERS[kind]


# ── pause ────────────────────────────────────────────────────────────────────


@of_every_kind
async def test_a_pause_stops_claims_of_its_subject_alone(world: World, kind: SubjectKind, name: str) -> None:
    """S46: until it is resumed; then at once."""
    other = await _send_two(world, kind)
    await world.pause(kind, name)
    assert await _claimed(world) == [other]
    world.advance(3600)
    assert await _claimed(world) == []
    await world.resume(kind, name)
    assert await _claimed(world) == [("acme", "default", "noop")]


@of_every_kind
@pytest.mark.parametrize("is_met", [True, False], ids=["met by a claim", "not met by a claim"])
async def test_a_pause_with_an_end_ends_by_itself(
    world: World, kind: SubjectKind, name: str, *, is_met: bool
) -> None:
    """S46: not a microsecond early, whether a claim had parked anything or not."""
    await world.enqueue()
    await world.pause(kind, name, until=world.now + MINUTE)
    if is_met:
        assert await world.claim(9) == []
    world.advance(60 - MICRO)
    assert await world.claim(9) == []
    world.advance(MICRO)
    assert len(await world.claim(9)) == 1


@of_every_kind
async def test_under_a_pause_everything_else_goes_on(world: World, kind: SubjectKind, name: str) -> None:
    """S46: enqueue, due times, expiry, and the attempt that runs, up to its retry."""
    await world.enqueue()
    running = await world.claim_one()
    await world.pause(kind, name)
    due = await world.enqueue(delay=SECOND)
    expiring = await world.enqueue(expires_in=SECOND)
    assert (await world.counts())["acme", "default", State.READY] == 1
    world.advance(2)
    assert (await world.promote()).promoted == 1
    assert (await world.get(due.id)).state is State.READY
    assert await world.expire() == 1
    assert (await world.get(expiring.id)).state is State.CANCELLED
    assert (await world.renew(running)).stale == ()
    assert await world.settle(running, failed()) is State.DELAYED
    assert await world.claim(9) == []
    assert (await world.census()).tenants[0].waiting == 2


@of_every_kind
async def test_under_a_pause_jobs_can_be_steered(world: World, kind: SubjectKind, name: str) -> None:
    """S46: cancelled, condemned and made due; they do not start."""
    await world.pause(kind, name)
    first, second = await world.enqueue_many(2)
    later = await world.enqueue(delay=MINUTE)
    await world.cancel(first.id)
    await world.condemn(second.id)
    await world.run_now(later.id)
    states = [(await world.get(job.id)).state for job in (first, second, later)]
    assert states == [State.CANCELLED, State.DEAD, State.READY]
    assert await world.claim(9) == []


async def test_a_job_runs_only_when_nothing_that_it_belongs_to_is_paused(world: World) -> None:
    """S46: queue, tenant and task; each resume alone is not enough."""
    await world.enqueue()
    for kind, name in SUBJECTS.items():
        await world.pause(kind, name)
    for kind, name in SUBJECTS.items():
        assert await world.claim(9) == []
        await world.resume(kind, name)
    assert len(await world.claim(9)) == 1


@of_every_kind
async def test_a_later_pause_replaces_the_one_before(world: World, kind: SubjectKind, name: str) -> None:
    """S46: its end is the newer one, sooner or never."""
    start = world.now
    await world.enqueue_many(2)
    await world.pause(kind, name)
    await world.pause(kind, name, until=start + 5 * SECOND)
    assert (await world.claim_whole(9)).next_due_at == start + 5 * SECOND
    world.advance(5)
    assert len(await world.claim(1)) == 1
    await world.pause(kind, name, until=start + 6 * SECOND)
    await world.pause(kind, name)
    world.advance(60)
    assert await world.claim(9) == []


@of_every_kind
async def test_a_pause_is_shown_with_who_why_since_when_and_until_when(
    world: World, kind: SubjectKind, name: str
) -> None:
    """S46: as long as it holds; a resume of what is not paused changes nothing."""
    until = world.now + MINUTE
    view = await world.pause(kind, name, until)
    hold = Hold(who="ops", reason="maintenance", set_at=world.now, until=until)
    assert (view.paused, view.closed) == (hold, None)
    assert await world.view(kind, name) == view
    world.advance(60)
    assert (await world.view(kind, name)).paused is None
    assert (await world.resume(kind, name)).paused is None


@pytest.mark.parametrize("verb", ["pause", "close"])
async def test_a_gate_can_be_neither_paused_nor_closed(world: World, verb: str) -> None:
    """S46: its limit can be overridden with 0 instead."""
    with pytest.raises(ValueError, match="gate"):
        await getattr(world, verb)(SubjectKind.GATE, "door")
    view = await world.view(SubjectKind.GATE, "door")
    assert (view.paused, view.closed) == (None, None)


# ── close ────────────────────────────────────────────────────────────────────


@of_every_kind
async def test_a_close_refuses_new_jobs_of_its_subject_alone(
    world: World, kind: SubjectKind, name: str
) -> None:
    """S46: it says what is closed and why; others come in; opened again, all do."""
    view = await world.close(kind, name)
    assert view.closed == Hold(who="ops", reason="maintenance", set_at=world.now, until=None)
    (refusal,) = (await world.send(world.new())).refused
    assert (refusal.kind, refusal.detail) == (RefusalKind.CLOSED, f"{kind.value} {name}: maintenance")
    tenant, queue, task = OTHERS[kind]
    await world.enqueue(tenant, queue=queue, task=task)
    assert (await world.reopen(kind, name)).closed is None
    await world.enqueue()
    assert (await world.states())[State.READY] == 2


@of_every_kind
async def test_a_close_with_an_end_ends_by_itself(world: World, kind: SubjectKind, name: str) -> None:
    """S46: not a microsecond early."""
    await world.close(kind, name, until=world.now + MINUTE)
    world.advance(60 - MICRO)
    assert (await world.send(world.new())).refused
    world.advance(MICRO)
    assert not (await world.send(world.new())).refused
    assert (await world.view(kind, name)).closed is None


@of_every_kind
@pytest.mark.parametrize("how", ["retried", "snoozed", "handed back", "lost"])
async def test_what_is_there_goes_on_under_a_close(
    world: World, kind: SubjectKind, name: str, how: str
) -> None:
    """S46: waiting jobs run, running ones end as they like, and come back to run again."""
    await world.enqueue()
    await world.close(kind, name)
    claim = await world.claim_one()
    if how == "lost":
        await world.lose()
    else:
        await world.settle(claim, ENDINGS[how])
    world.advance(60)
    again = await world.claim_one()
    assert (again.job.id, again.job.attempt) == (claim.job.id, 2)
    assert await world.settle(again) is State.SUCCEEDED


async def test_one_closed_item_refuses_the_whole_batch(world: World) -> None:
    """S12, S46: nothing of it is stored."""
    await world.close(SubjectKind.QUEUE, "mail")
    reply = await world.send(world.new(), world.new(queue="mail"), world.new())
    assert ([one.index for one in reply.refused], reply.enqueued) == ([1], ())
    assert (await world.states()).total() == 0


# ── drain ────────────────────────────────────────────────────────────────────


async def _running(world: World, queue: str) -> int:
    return sum(
        number
        for (_, _, state), number in (await world.counts(queue=queue)).items()
        if state is State.RUNNING
    )


@of_every_kind
async def test_a_drain_by_pause_is_done_when_the_last_attempt_has_ended(
    world: World, kind: SubjectKind, name: str
) -> None:
    """S46: the count of running jobs falls to zero and stays there; what waits, waits."""
    await world.enqueue_many(5)
    claims = await world.claim(3)
    await world.pause(kind, name)
    for left, claim in zip((2, 1, 0), claims, strict=True):
        await world.settle(claim)
        assert await world.claim(9) == []
        assert await _running(world, "default") == left
    assert (await world.states())[State.READY] == 2


@of_every_kind
async def test_a_drain_by_close_is_done_when_all_work_is_done(
    world: World, kind: SubjectKind, name: str
) -> None:
    """S46: nothing new comes in, everything that was there has run."""
    await world.enqueue_many(4)
    await world.close(kind, name)
    while claims := await world.claim(3):
        assert (await world.send(world.new())).refused
        await world.settle_reply(*(world.verdict(claim) for claim in claims))
    assert await _running(world, "default") == 0
    assert (await world.states()) == {State.SUCCEEDED: 4}
