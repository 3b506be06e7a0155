"""What happens appends events in the step in which it happens (S76)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import HOUR, MINUTE, SECOND
from fairlane.model.job import Claim, JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.facts import (
    deaths,
    fingerprint_of,
    over_limit,
    reprocess_requested,
    reviewed,
    stuck,
)
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, SubjectKind
from fairlane.model.review import ReviewAction
from fairlane.model.scope import Scope
from tests.contract.dead.test_dead import ROADS
from tests.contract.world import ALL, ENDINGS, SUCCEEDED, World, failed, payload, ruined

Sum: TypeAlias = tuple[str, str | None, str]
"""Kind, tenant and subject: what the counts of entries are summed by."""


def summed(entries: Iterable[NewEntry]) -> Counter[Sum]:
    """Say how often each thing happened: a store may make several steps of one call."""
    found: Counter[Sum] = Counter()
    for entry in entries:
        assert entry.count > 0
        found[entry.kind, entry.tenant, entry.subject] += entry.count
    return found


async def events(world: World) -> list[NewEntry]:
    """Return the events so far."""
    return await world.appended("events")


async def told(world: World) -> list[NewEntry]:
    """Return the events that are new since the last look."""
    return [one.entry for one in await world.number("events")]


# ── deaths ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("road", ROADS)
async def test_every_road_to_death_is_an_event(world: World, road: str) -> None:
    """S25, S31, S40, S64, S76: one, with the job, its place, why, its class and who asked for it."""
    values, befall, *_ = ROADS[road]
    sent = await world.enqueue(created_by="zoë", **values)
    await befall(world, sent.id)
    dead = await world.get(sent.id)
    (pending,) = (await world.pending("events")).entries
    assert (pending.at, dead.state) == (world.now, State.DEAD)
    assert pending.entry == deaths([dead])[0]
    assert pending.entry.tenant == "acme"
    about = msgspec.json.decode(pending.entry.body)
    assert (about["job"], about["created_by"]) == (str(sent.id), "zoë")


@pytest.mark.parametrize("ending", [name for name in ENDINGS if name not in {"exhausted", "ruined"}])
async def test_an_attempt_that_ends_otherwise_is_no_event(world: World, ending: str) -> None:
    """S76: nobody is told of work that goes well, or goes on."""
    await world.enqueue()
    job = await world.run(ENDINGS[ending])
    assert job.state is not State.DEAD
    assert await events(world) == []


Deed: TypeAlias = Callable[[World, JobRecord], Awaitable[object]]

QUIET: Final[dict[str, tuple[dict[str, Any], Deed]]] = {
    "enqueued": ({}, lambda w, _: w.claim(0)),
    "claimed": ({}, lambda w, _: w.claim_one()),
    "cancelled": ({}, lambda w, job: w.cancel(job.id)),
    "made due": ({"delay": HOUR}, lambda w, job: w.run_now(job.id)),
    "edited": ({}, lambda w, job: w.edit(job.id, priority=5)),
    "purged": ({}, lambda w, _: w.purge()),
    "forgotten": ({}, lambda w, _: w.forget()),
}
"""What befalls a waiting job without anybody's being told."""


@pytest.mark.parametrize("name", QUIET)
async def test_what_befalls_a_waiting_job_is_no_event(world: World, name: str) -> None:
    """S76: only its death would be."""
    values, deed = QUIET[name]
    await deed(world, await world.enqueue(**values))
    assert await events(world) == []


async def test_expired_lost_and_promoted_jobs_are_no_event(world: World) -> None:
    """S76: an expiry is no death, and a loss is one only when the job may not run again."""
    await world.enqueue(expires_in=SECOND)
    await world.enqueue(delay=SECOND)
    world.advance(1)
    await world.promote()
    await world.expire()
    await world.claim_one()
    await world.lose()
    assert (await world.states())[State.CANCELLED] == 1
    assert await events(world) == []


async def test_a_settlement_that_comes_too_late_is_no_event(world: World) -> None:
    """S36, S76: nothing has happened."""
    await world.enqueue()
    claim = await world.claim_one()
    await world.lose()
    assert (await world.settle_reply(world.verdict(claim, ruined()))).stale
    assert await events(world) == []


async def test_removing_the_dead_is_no_event(world: World) -> None:
    """S52, S76: neither by age nor with their tenant."""
    await world.die()
    await world.die("globex")
    await told(world)
    world.advance(1)
    await world.forget("globex")
    await world.prune(dead=0)
    assert await events(world) == []


async def test_many_deaths_of_one_cause_are_counted(world: World) -> None:
    """S76: by tenant, task and fingerprint; a message that differs in numbers is the same cause."""
    for tenant in ("acme", "globex"):
        for queue in ("default", "bulk"):
            await world.enqueue_many(4, tenant, queue=queue)
    await world.enqueue_many(3, task="sort")
    claims = await world.claim(20, queue_requests=[("default", 20), ("bulk", 20)])
    assert len(claims) == 19
    verdicts = [world.verdict(claim, ruined(message=f"no user {n}")) for n, claim in enumerate(claims)]
    verdicts[0] = world.verdict(claims[0], ruined(ErrorClass.BUDGET))
    verdicts[1] = world.verdict(claims[1], SUCCEEDED)
    await world.settle_reply(*verdicts)
    died = await world.find_all(states=frozenset({State.DEAD}))
    assert len(died) == 18
    assert summed(await events(world)) == summed(deaths(died))
    assert len(summed(await events(world))) == 4


async def test_each_entry_of_a_storm_names_a_job_that_died_of_it(world: World) -> None:
    """S76: of the right tenant, queue and cause, however a store divides its steps."""
    for tenant in ("acme", "globex"):
        await world.enqueue_many(5, tenant)
    claims = await world.claim(10)
    await world.settle_reply(*(world.verdict(claim, ruined(message=f"no {claim.fence}")) for claim in claims))
    died = {str(job.id): job for job in await world.find_all(states=frozenset({State.DEAD}))}
    for entry in await events(world):
        job = died[msgspec.json.decode(entry.body)["job"]]
        assert msgspec.structs.replace(entry, count=1) == deaths([job])[0]


async def test_deaths_that_a_settlement_with_a_claim_makes_are_told(world: World) -> None:
    """S35, S76: whether or not more work is asked for in the same call."""
    await world.enqueue_many(3)
    claims = await world.claim(2)
    verdicts = [world.verdict(claim, ruined()) for claim in claims]
    await world.settle_reply(*verdicts, claim=world.claim_request(5))
    assert [entry.count for entry in deaths(await world.find_all(states=frozenset({State.DEAD})))] == [2]
    assert sum(summed(await events(world)).values()) == 2


async def test_lost_and_condemned_jobs_are_counted_too(world: World) -> None:
    """S63, S64, S76: those that never failed by their task, the others by their last failure."""
    await world.enqueue_many(3, at_most_once=True)
    await world.enqueue_many(2, "globex", at_most_once=True)
    await world.claim(5)
    await world.lose()
    never_ran = await world.enqueue_many(4)
    await world.enqueue()
    await world.condemn(*(job.id for job in never_ran[:3]))
    world.advance(1)
    retried = await world.run(failed())
    await world.condemn(retried.id)
    died = await world.find_all(states=frozenset({State.DEAD}))
    assert summed(await events(world)) == summed(deaths(died))
    assert summed(await events(world))["dead_letter", "acme", "noop"] == 3


# ── stuck claims ─────────────────────────────────────────────────────────────


async def hold(world: World, **values: Any) -> Claim:
    """Claim a job and keep its lease until it is stuck."""
    await world.enqueue(timeout=MINUTE, created_by="zoë", **values)
    claim = await world.claim_one()
    world.advance(60)
    await world.renew(claim, lease=10 * MINUTE)
    world.advance(60)
    return claim


async def test_a_stuck_claim_is_an_event_and_so_is_the_death_of_its_job(world: World) -> None:
    """S31, S76: one names the worker, the other one the dead letter."""
    claim = await hold(world)
    await world.take_stuck()
    dead = await world.get(claim.job.id)
    assert sorted(await events(world), key=repr) == sorted(
        [stuck(claim.job, State.DEAD), *deaths([dead])], key=repr
    )


@pytest.mark.parametrize("is_cancel_asked", [False, True])
async def test_a_stuck_job_that_lives_on_or_is_cancelled_is_an_event(
    world: World, is_cancel_asked: bool
) -> None:
    """S30, S31, S76: with the state that it has now; nothing has died."""
    claim = await hold(world, on_stuck="requeue")
    if is_cancel_asked:
        await world.cancel(claim.job.id)
    await world.take_stuck()
    state = State.CANCELLED if is_cancel_asked else State.DELAYED
    assert await events(world) == [stuck(claim.job, state)]


async def test_each_stuck_claim_of_a_pass_is_told(world: World) -> None:
    """S31, S76: by tenant and task."""
    tenants = ("acme", "globex", "acme")
    for tenant in tenants:
        await world.enqueue(tenant, timeout=MINUTE, on_stuck="requeue")
    claims = await world.claim(3, lease=600 * SECOND)
    world.advance(120)
    assert len((await world.take_stuck()).stuck) == 3
    assert summed(await events(world)) == summed(stuck(claim.job, State.DELAYED) for claim in claims)


# ── waiting limits ───────────────────────────────────────────────────────────


async def warn(world: World, waiting: int, on_full: Any = "warn", queue: str = "default") -> None:
    """Let each tenant have so many waiting in a queue, and be warned of more."""
    await world.declare(SubjectKind.QUEUE, queue, QueueRules(limits=Limits(waiting=waiting, on_full=on_full)))


async def test_a_job_above_its_tenants_limit_is_an_event(world: World) -> None:
    """S17, S76: the first over it, with how many wait and who asked; those below are none."""
    await warn(world, 2)
    await world.enqueue_many(2)
    assert await events(world) == []
    await world.enqueue(created_by="zoë")
    await world.enqueue()
    assert await events(world) == [
        over_limit("acme", "default", 3, 2, 1, "zoë"),
        over_limit("acme", "default", 4, 2, 1, None),
    ]


async def test_a_batch_is_one_event_for_each_tenant_and_queue(world: World) -> None:
    """S17, S76: with the most that wait, how many of its jobs are over, and who sent the last of them."""
    await warn(world, 1)
    await warn(world, 0, queue="bulk")
    await world.send(
        *(world.new(created_by=f"u{n}") for n in range(4)),
        world.new("globex"),
        world.new("globex", queue="bulk", created_by="last"),
        world.new("globex", queue="free"),
    )
    assert sorted(await events(world), key=lambda entry: str(entry.tenant)) == [
        over_limit("acme", "default", 4, 1, 3, "u3"),
        over_limit("globex", "bulk", 1, 0, 1, "last"),
    ]


async def test_a_repeat_is_not_over_the_limit(world: World) -> None:
    """S15, S76: it stores nothing; neither does a batch that is refused."""
    await warn(world, 1)
    await world.enqueue(dedup_key="d")
    await world.send(world.new(dedup_key="d"))
    await world.close(SubjectKind.TASK, "closed")
    assert (await world.send(world.new(), world.new(task="closed"))).refused
    assert await events(world) == []


async def test_a_limit_that_refuses_tells_nobody_in_this_step(world: World) -> None:
    """S17, S18, S76: nothing is stored, so nothing is appended."""
    await warn(world, 0, "reject")
    assert (await world.send(world.new())).refused
    assert await events(world) == []


# ── reviews ──────────────────────────────────────────────────────────────────


async def test_a_review_that_changes_is_an_event(world: World) -> None:
    """S75, S76: what was decided; acknowledgements, notes and the same decision again are none."""
    dead = await world.die(created_by="zoë")
    await told(world)
    actions: tuple[ReviewAction, ...] = (
        "acknowledge",
        "note",
        "resolve",
        "resolve",
        "note",
        "ignore",
        "discard",
    )
    for action in actions:
        await world.review(action, dead.id)
    assert await events(world) == [
        reviewed(dead, fingerprint_of(dead), word) for word in ("resolved", "ignored", "discarded")
    ]
    await world.review("resolve", dead.id)
    assert len(await events(world)) == 3


async def test_a_deleted_letter_is_an_event_whatever_its_review(world: World) -> None:
    """S75, S76: one for each that is gone."""
    dead = [await world.die() for _ in range(3)]
    await world.review("discard", dead[0].id)
    await told(world)
    await world.delete(*(job.id for job in dead), world.new().id)
    assert sorted(await events(world), key=lambda entry: entry.body) == [
        reviewed(job, fingerprint_of(job), "deleted") for job in sorted(dead, key=lambda job: job.id)
    ]


async def test_a_new_run_is_an_event_and_a_refused_one_is_none(world: World) -> None:
    """S75, S76: it names both jobs; being told of an earlier run is none, either."""
    dead = await world.die(created_by="zoë")
    await told(world)
    await world.close(SubjectKind.QUEUE, "default")
    await world.reprocess(world.again(dead))
    assert await events(world) == []
    await world.reopen(SubjectKind.QUEUE, "default")
    new = await world.rerun(dead)
    await world.reprocess(world.again(dead))
    assert await events(world) == [reprocess_requested(dead, fingerprint_of(dead), new.id)]


async def test_an_event_is_its_tenants(world: World) -> None:
    """S9, S76: each sees what befell its own jobs."""
    for tenant in ("acme", "globex"):
        await world.die(tenant, payload=payload(secret="s"))
    for tenant in ("acme", "globex"):
        (entry,) = await world.appended("events", Scope(tenant))
        assert entry.tenant == tenant
        assert b"secret" not in entry.body
    assert len(await world.appended("events", ALL)) == 2
