"""Every state and every event, by the verbs that cause it (S23). The table is spelled out once more here."""

from __future__ import annotations

from itertools import product
from uuid import UUID

import pytest

from fairlane.model.failure import ErrorClass, Failure
from fairlane.model.instants import HOUR, MINUTE
from fairlane.model.job import AttemptOutcome, Settlement
from fairlane.model.lifecycle.states import ENDINGS, FINISHED, CancelReply, Event, State
from tests.contract.world import World

TABLE: dict[tuple[State, Event], tuple[State, str | None]] = {
    (State.DELAYED, Event.DUE): (State.READY, None),
    (State.DELAYED, Event.RUN_NOW): (State.READY, None),
    (State.DELAYED, Event.CANCEL): (State.CANCELLED, "asked: enough"),
    (State.DELAYED, Event.EXPIRE): (State.CANCELLED, "expired"),
    (State.DELAYED, Event.CONDEMN): (State.DEAD, "condemned: enough"),
    (State.READY, Event.CLAIM): (State.RUNNING, None),
    (State.READY, Event.CANCEL): (State.CANCELLED, "asked: enough"),
    (State.READY, Event.EXPIRE): (State.CANCELLED, "expired"),
    (State.READY, Event.CONDEMN): (State.DEAD, "condemned: enough"),
    (State.RUNNING, Event.SUCCEED): (State.SUCCEEDED, None),
    (State.RUNNING, Event.RETRY): (State.DELAYED, "retry: retryable: boom"),
    (State.RUNNING, Event.SNOOZE): (State.DELAYED, "snooze: not yet"),
    (State.RUNNING, Event.HAND_BACK): (State.READY, None),
    (State.RUNNING, Event.EXHAUST): (State.DEAD, "exhausted: boom"),
    (State.RUNNING, Event.FAIL): (State.DEAD, "failed: boom"),
    (State.RUNNING, Event.STUCK): (State.DEAD, "stuck: boom"),
    (State.RUNNING, Event.OBEY_CANCEL): (State.CANCELLED, "chosen: no use"),
    (State.RUNNING, Event.ASK_CANCEL): (State.RUNNING, "asked: enough"),
    (State.RUNNING, Event.LOSE): (State.READY, None),
}
"""Legal pairs: where they lead and what `because` says then. Every other pair changes nothing."""

ONE_VERB = {
    (State.DELAYED, Event.ASK_CANCEL): Event.CANCEL,
    (State.READY, Event.ASK_CANCEL): Event.CANCEL,
    (State.RUNNING, Event.CANCEL): Event.ASK_CANCEL,
}
"""`cancel` causes one event or the other by the job's state; so these pairs cannot be caused at all."""

ILLEGAL = [pair for pair in product(State, Event) if pair not in TABLE and pair not in ONE_VERB]

SAID: dict[Event, tuple[AttemptOutcome, str | None]] = {
    Event.SUCCEED: ("succeeded", None),
    Event.RETRY: ("failed", "retry: retryable: boom"),
    Event.SNOOZE: ("snoozed", "snooze: not yet"),
    Event.HAND_BACK: ("returned", None),
    Event.EXHAUST: ("failed", "exhausted: boom"),
    Event.FAIL: ("failed", "failed: boom"),
    Event.STUCK: ("failed", "stuck: boom"),
    Event.OBEY_CANCEL: ("cancelled", "chosen: no use"),
}
"""How a settlement carries each event that may end an attempt."""


def settlement(event: Event, id: UUID, fence: int) -> Settlement:
    """Say that an attempt ended so."""
    outcome, because = SAID[event]
    has_failed = outcome == "failed"
    return Settlement(
        id=id,
        fence=fence,
        event=event,
        outcome=outcome,
        because=because,
        delay=MINUTE if event in {Event.RETRY, Event.SNOOZE} else 0,
        failures=int(has_failed),
        failure=Failure(ErrorClass.RETRYABLE, "ValueError", "boom") if has_failed else None,
    )


async def cause(world: World, event: Event, id: UUID, fence: int) -> bool:
    """Try to cause an event by its verb; say whether the store says that it happened."""
    if event in ENDINGS:
        reply = await world.settle_reply(settlement(event, id, fence))
        assert (id in reply.stale) is not bool(reply.settled)
        return bool(reply.settled)
    if event in {Event.DUE, Event.CLAIM, Event.EXPIRE, Event.LOSE}:
        return await cause_by_pass(world, event, id)
    return await cause_by_person(world, event, id)


async def cause_by_pass(world: World, event: Event, id: UUID) -> bool:
    """Let time go by as far as it must, and make the pass that moves whatever it finds."""
    match event:
        case Event.DUE:
            world.advance(60)
            return (await world.promote()).promoted == 1
        case Event.CLAIM:
            return [claim.job.id for claim in await world.claim(1)] == [id]
        case Event.EXPIRE:
            world.advance(3600)
            return await world.expire() == 1
        case _:
            return [one.id for one in (await world.lose()).lost] == [id]


async def cause_by_person(world: World, event: Event, id: UUID) -> bool:
    """Name the job in a verb of its own."""
    match event:
        case Event.ENQUEUE:
            return not (await world.send(world.new(id=id))).refused
        case Event.RUN_NOW:
            return await world.run_now(id) == (id,)
        case Event.CONDEMN:
            return await world.condemn(id, reason="enough") == (id,)
        case _:
            wanted = {Event.CANCEL: CancelReply.CANCELLED, Event.ASK_CANCEL: CancelReply.REQUESTED}[event]
            return (await world.cancel(id, reason="enough")).get(id) is wanted


@pytest.mark.parametrize(("state", "event"), list(TABLE))
async def test_a_legal_event_moves_the_job(world: World, state: State, event: Event) -> None:
    """S23: to the state and with the reason of the table, and the store says so."""
    target, because = TABLE[state, event]
    claim = await world.bring_to(state, expires_in=HOUR)
    assert await cause(world, event, claim.job.id, claim.fence)
    job = await world.get(claim.job.id)
    assert (job.state, job.because) == (target, because)
    assert job.settled_at == (world.now if target in FINISHED else None)
    assert job.is_cancel_asked is (event is Event.ASK_CANCEL)
    assert await world.counts() == {("acme", "default", target): 1}
    assert (await world.letter(job.id) is not None) is (target is State.DEAD)


@pytest.mark.parametrize(("state", "event"), ILLEGAL)
async def test_an_illegal_event_changes_nothing(world: World, state: State, event: Event) -> None:
    """S23: the verb is refused or passes the job by; not one field of it differs afterwards."""
    claim = await world.bring_to(state, expires_in=HOUR)
    before = await world.get(claim.job.id)
    assert not await cause(world, event, before.id, claim.fence)
    assert await world.find_all() == [before]


@pytest.mark.parametrize(("state", "event"), list(ONE_VERB))
async def test_cancel_ends_what_waits_and_asks_what_runs(world: World, state: State, event: Event) -> None:
    """S23, S30: a waiting job is never merely asked, a running one never taken from its worker."""
    claim = await world.bring_to(state)
    assert not await cause(world, event, claim.job.id, claim.fence)
    job = await world.get(claim.job.id)
    target, because = TABLE[state, ONE_VERB[state, event]]
    assert (job.state, job.because) == (target, because)


@pytest.mark.parametrize("event", [event for event in Event if event is not Event.ENQUEUE])
async def test_nothing_happens_to_a_job_that_is_not_there(world: World, event: Event) -> None:
    """S23: before its enqueue a job has no state, and no verb gives it one."""
    assert not await cause(world, event, UUID(int=7), world.now)
    assert await world.find_all() == []


@pytest.mark.parametrize(
    ("delay", "state", "because"), [(0, State.READY, None), (HOUR, State.DELAYED, "time")]
)
async def test_an_enqueue_makes_a_job_ready_or_delayed(
    world: World, delay: int, state: State, because: str | None
) -> None:
    """S23: delayed because of `time`."""
    job = await world.enqueue(delay=delay)
    assert (job.state, job.because) == (state, because)
    assert await world.get(job.id) == job


@pytest.mark.parametrize(
    ("is_asked", "once", "state", "because"),
    [
        (False, False, State.READY, None),
        (True, False, State.CANCELLED, "asked: enough"),
        (True, True, State.CANCELLED, "asked: enough"),
        (False, True, State.DEAD, "lost: the task runs at most once"),
    ],
)
async def test_a_lost_job_is_ready_cancelled_or_dead(
    world: World, is_asked: bool, once: bool, state: State, because: str | None
) -> None:
    """S23, S30, S63: again, or cancelled if it was asked to stop, or dead if it may not run again."""
    job = await world.enqueue(at_most_once=once)
    await world.claim_one()
    if is_asked:
        await world.cancel(job.id, reason="enough")
    (lost,) = (await world.lose()).lost
    after = await world.get(job.id)
    assert (lost.id, lost.state, after.state, after.because) == (job.id, state, state, because)


@pytest.mark.parametrize(
    ("state", "event"),
    [pair for pair, (target, _) in TABLE.items() if target in {State.DELAYED, State.DEAD, State.CANCELLED}],
)
async def test_explain_says_why(world: World, state: State, event: Event) -> None:
    """S23: what is stored as `because` of a delayed, dead or cancelled job."""
    claim = await world.bring_to(state, expires_in=HOUR)
    await cause(world, event, claim.job.id, claim.fence)
    job = await world.get(claim.job.id)
    why = await world.explain(job.id)
    assert why.subject == job.because
    assert why.until == (job.run_at if job.state is State.DELAYED else None)
