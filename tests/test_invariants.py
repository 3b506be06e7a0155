"""The invariants report every kind of damage, and find nothing wrong with a healthy, busy store."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import msgspec
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.instants import SECOND
from fairlane.model.job import AttemptRecord, JobRecord
from fairlane.model.journal.entries import NewEntry
from fairlane.model.lifecycle.states import Home, State
from fairlane.model.policy.overrides import GateRules, SubjectKind, TaskRules
from fairlane.model.retry.decision import AttemptResult
from fairlane.model.review import NewRun, ReviewNote
from fairlane.store.contract import FACETS, Store
from fairlane.store.contract.dead import DeadCount, DeadPage
from fairlane.store.contract.jobs import Count, FindReply
from fairlane.store.contract.upkeep import Census, GateCounter, TenantCounters
from tests.contract.world import CANCELLED, HANDED_BACK, SNOOZED, SUCCEEDED, World, failed, ruined
from tests.invariants import _facts, _facts_of_letter, _facts_of_run, check, violations
from tests.oracle.clock import DrivenClock
from tests.oracle.store import OracleStore


@pytest.fixture
def world() -> World:
    """Return a world around an oracle that this file may reach into."""
    clock = DrivenClock()
    return World(OracleStore(clock), clock)


def overwrite(world: World, id: UUID, **values: object) -> JobRecord:
    """Change a stored record behind the store's back."""
    store = cast("OracleStore", world.store)
    jobs = store.jobs._core.books.jobs
    jobs[id] = msgspec.structs.replace(jobs[id], **values)
    return jobs[id]


# ── each record ───────────────────────────────────────────────────────────────


def attempts(*numbers: int) -> tuple[AttemptRecord, ...]:
    """Write a history with these numbers."""
    return tuple(AttemptRecord(number, "w1", 1, 2, "returned") for number in numbers)


DAMAGE: Final[list[tuple[str, State, dict[str, Any]]]] = [
    ("has a live claim if and only if it is running", State.RUNNING, {"worker": None}),
    ("has a live claim if and only if it is running", State.RUNNING, {"lease_until": None}),
    ("has a live claim if and only if it is running", State.RUNNING, {"started_at": None}),
    ("has a live claim if and only if it is running", State.READY, {"worker": "w1"}),
    ("has a live claim if and only if it is running", State.DEAD, {"lease_until": 5}),
    ("is settled if and only if it is finished", State.SUCCEEDED, {"settled_at": None}),
    ("is settled if and only if it is finished", State.RUNNING, {"settled_at": 5}),
    ("does not say why", State.DELAYED, {"because": None}),
    ("does not say why", State.DEAD, {"because": None}),
    ("does not say why", State.CANCELLED, {"because": None}),
    ("is ready, yet says why it is not", State.READY, {"because": "time"}),
    ("has a result without success", State.CANCELLED, {"result": b"1"}),
    ("has a result without success", State.READY, {"result": b"1"}),
    ("failed more often than it was attempted", State.SUCCEEDED, {"failures": 2}),
    ("crashed more often than it was attempted", State.SUCCEEDED, {"crashes": 2}),
    ("crashed by itself more often than it failed", State.SUCCEEDED, {"crashes": 1, "crashes_alone": 1}),
    ("is a suspect without a crash", State.READY, {"is_suspect": True}),
    (
        "lives on past its crashes",
        State.RUNNING,
        {"attempt": 5, "attempts": attempts(1, 2, 3, 4), "crashes": 5},
    ),
    ("does not have its attempts in its history", State.SUCCEEDED, {"attempts": ()}),
    ("does not have its attempts in its history", State.READY, {"attempt": 2, "attempts": attempts(2)}),
    ("has attempts out of order", State.SUCCEEDED, {"attempts": attempts(2)}),
    ("has attempts out of order", State.READY, {"attempt": 2, "attempts": attempts(2, 1)}),
    ("has a fence if it was claimed", State.SUCCEEDED, {"fence": 0}),
    ("has a sort key that is not of its time", State.READY, {"priority": 1}),
    ("has a sort key that is not of its time", State.DELAYED, {"run_at": 1}),
    ("lives on past its attempts", State.READY, {"failures": 1, "max_attempts": 1}),
]
"""What is reported, the state of the job, and what was done to it: nothing else is wrong with it."""


@pytest.mark.parametrize(("sentence", "state", "values"), DAMAGE)
async def test_a_damaged_record_is_reported(
    world: World, sentence: str, state: State, values: dict[str, Any]
) -> None:
    """Exactly that damage is reported, with the job's id and state; other jobs are not."""
    await world.bring_to(State.SUCCEEDED)
    claim = await world.bring_to(state)
    assert await violations(world.store) == []
    overwrite(world, claim.job.id, **values)
    assert await violations(world.store) == [f"job {claim.job.id} ({state.value}) {sentence}"]


async def test_a_history_that_is_too_long_is_reported(world: World) -> None:
    """Eleven attempts are one too many, and so not the last ten."""
    claim = await world.bring_to(State.READY)
    overwrite(world, claim.job.id, attempt=11, attempts=attempts(*range(1, 12)))
    assert await violations(world.store) == [
        f"job {claim.job.id} (ready) keeps too many attempts",
        f"job {claim.job.id} (ready) does not have its attempts in its history",
    ]


async def test_every_fact_about_a_record_can_be_reported(world: World) -> None:
    """A fact that is in no case above could not fail."""
    claim = await world.bring_to(State.READY)
    known = {sentence for _, sentence in _facts(claim.job)}
    assert known == {sentence for sentence, _, _ in DAMAGE} | {"keeps too many attempts"}


# ── records together ──────────────────────────────────────────────────────────


async def test_two_jobs_of_one_idempotency_key_are_reported(world: World) -> None:
    """Of one tenant; the same key of another tenant is another key."""
    await world.enqueue("acme", idempotency_key="k")
    await world.enqueue("globex", idempotency_key="k")
    assert await violations(world.store) == []
    second = await world.enqueue("acme")
    overwrite(world, second.id, idempotency_key="k")
    assert await violations(world.store) == ["idempotency key ('acme', 'k') has 2 jobs"]


async def test_two_unfinished_jobs_of_one_de_duplication_key_are_reported(world: World) -> None:
    """Finished ones and those whose key ended at the start do not count."""
    await world.enqueue(dedup_key="d")
    await world.run()
    await world.enqueue(dedup_key="d")
    other = await world.enqueue()
    overwrite(world, other.id, dedup_key="d", dedup_until="started")
    assert await violations(world.store) == []
    overwrite(world, other.id, dedup_until="settled")
    assert await violations(world.store) == ["de-duplication key ('acme', 'noop', 'd') has 2 unfinished jobs"]


# ── dead letters ──────────────────────────────────────────────────────────────

LETTER_DAMAGE: Final[list[tuple[str, dict[str, Any]]]] = [
    ("is decided if and only if somebody did", {"decided": None}),
    ("is decided, and nobody has seen it", {"acknowledged": None}),
    ("has a new job if and only if it runs again", {"new_run": None}),
    ("has a new job if and only if it runs again", {"review": "resolved"}),
    ("keeps too many notes", {"notes": (ReviewNote("ann", 1, "note", ""),) * 101}),
    ("has a new job that is not its own", {"new_run": NewRun(UUID(int=1))}),
    ("has a new job that is not its own", {"new_run": NewRun(UUID(int=2))}),
    ("says that its new job is gone", {"is_gone": True, "state": None}),
    ("tells another end of its new job", {"state": State.DEAD}),
    ("tells another end of its new job", {"settled_at": 1}),
]
"""What is reported, and what was done to the review, or to its new run, which has succeeded."""


@pytest.mark.parametrize(("sentence", "values"), LETTER_DAMAGE)
async def test_a_damaged_review_is_reported(world: World, sentence: str, values: dict[str, Any]) -> None:
    """Exactly that damage; a letter whose new job was removed meanwhile is not damaged."""
    dead = await world.die()
    await world.enqueue("globex", id=UUID(int=1), parent_id=dead.id, queue="own")
    await world.enqueue(id=UUID(int=2), queue="own")
    await world.rerun(dead)
    await world.run()
    await world.follow()
    assert await violations(world.store) == []
    reviews = cast("OracleStore", world.store).jobs._core.books.reviews
    record = reviews[dead.id]
    of_run = {name: value for name, value in values.items() if name in NewRun.__struct_fields__}
    run = msgspec.structs.replace(record.new_run, **of_run)  # type: ignore[type-var]
    of_record = {"new_run": run, **{name: value for name, value in values.items() if name not in of_run}}
    reviews[dead.id] = msgspec.structs.replace(record, **of_record)
    assert await violations(world.store) == [f"dead letter {dead.id} {sentence}"]


async def test_every_fact_about_a_letter_can_be_reported(world: World) -> None:
    """A fact that is in no case above could not fail; the cause is lied about below."""
    dead = await world.die()
    new = await world.rerun(dead)
    letter = await world.letter(dead.id)
    assert letter is not None
    facts = [*_facts_of_letter(letter), *_facts_of_run(letter, {new.id: new})]
    known = {sentence for _, sentence in facts}
    assert known == {sentence for sentence, _ in LETTER_DAMAGE} | {"has the cause of another failure"}


# ── answers ───────────────────────────────────────────────────────────────────

Change: TypeAlias = Callable[[Any], Any]


def lying(store: Store, verb: str, change: Change) -> Store:
    """Return a store one of whose verbs does not answer the truth."""
    facet, name = verb.split(".")
    honest = getattr(store, facet)

    async def answer(request: object) -> Any:
        return change(await getattr(honest, name)(request))

    verbs = {one: getattr(honest, one) for one in dir(honest) if not one.startswith("_")}
    facets = {one: getattr(store, one) for one in FACETS}
    return cast("Store", SimpleNamespace(**{**facets, facet: SimpleNamespace(**{**verbs, name: answer})}))


def with_books(**values: object) -> Change:
    """Cook the books."""

    def change(census: Census) -> Census:
        return msgspec.structs.replace(census, **values)

    return change


def with_counts(change: Change) -> Change:
    """Change the counts of a page."""
    return lambda page: msgspec.structs.replace(page, counts=change(page.counts))


def with_entries(change: Change) -> Change:
    """Change the entries of a page, or those that wait for a number."""
    return lambda page: msgspec.structs.replace(page, entries=change(page.entries))


def with_letter(**values: object) -> Change:
    """Change the one letter of a page."""
    return lambda page: msgspec.structs.replace(
        page, letters=tuple(msgspec.structs.replace(one, **values) for one in page.letters)
    )


def turned(page: FindReply) -> FindReply:
    """Turn a page round."""
    return FindReply(page.jobs[::-1], page.cursor)


LIES: Final[list[tuple[str, Change, str]]] = [
    ("jobs.find", turned, "jobs do not come newest enqueue first"),
    ("jobs.count", with_counts(lambda counts: counts[1:]), "counts are"),
    ("jobs.count", with_counts(lambda counts: (*counts, Count("x", "y", State.DEAD, 1))), "counts are"),
    (
        "jobs.count",
        with_counts(lambda counts: tuple(msgspec.structs.replace(one, jobs=9) for one in counts)),
        "counts are",
    ),
    ("upkeep.census", with_books(homes={Home.HOT: 1}), "the homes hold"),
    ("upkeep.census", with_books(homes={}), "the homes hold"),
    ("upkeep.census", with_books(tenants=()), "tenants' books are"),
    (
        "upkeep.census",
        with_books(tenants=(TenantCounters("default", "acme", 1, 2),)),
        "tenants' books are",
    ),
    ("dead.count", with_counts(lambda _: ()), "there are 0 dead letters"),
    (
        "dead.count",
        with_counts(lambda _: (DeadCount("acme", "default", "pending", 2),)),
        "there are 2 dead letters",
    ),
    ("dead.find", lambda _: DeadPage((), None), "the dead letters are not those of the dead jobs"),
    ("dead.find", with_letter(fingerprint="0" * 16), "dead letter"),
    ("dead.find", with_letter(error_class=ErrorClass.BUDGET), "dead letter"),
    ("journal.entries", with_entries(lambda entries: entries[1:]), "the numbers of the events do not"),
    ("journal.entries", with_entries(lambda entries: entries[:1] + entries[2:]), "the numbers of the"),
    ("journal.entries", with_entries(lambda entries: entries * 2), "the numbers of the events do not"),
    ("journal.pending", with_entries(lambda entries: entries[::-1]), "what waits in the events is out of"),
    ("journal.pending", with_entries(lambda entries: entries * 2), "what waits in the events is out of"),
    ("upkeep.census", with_books(dedup_keys=2), "2 de-duplication keys are held by 1 jobs"),
]


@pytest.mark.parametrize(("verb", "change", "sentence"), LIES)
async def test_an_answer_that_does_not_fit_the_jobs_is_reported(
    world: World, verb: str, change: Change, sentence: str
) -> None:
    """Exactly that: counts, homes, limits' books, dead letters, keys and the order of reading."""
    for state in (State.DEAD, State.SUCCEEDED, State.RUNNING):
        await world.bring_to(state)
    await world.enqueue(dedup_key="d")
    await world.append("events", *(NewEntry(kind="k") for _ in range(4)))
    await world.number("events", 3)
    assert await violations(world.store) == []
    (found,) = await violations(lying(world.store, verb, change))
    assert found.startswith(sentence)


async def test_a_job_in_two_homes_is_reported(world: World) -> None:
    """It is read twice, and no count fits it."""
    job = await world.enqueue()
    doubled = lying(world.store, "jobs.find", lambda page: FindReply(page.jobs * 2, page.cursor))
    assert f"job {job.id} was read 2 times" in await violations(doubled)


async def test_a_lost_job_is_reported(world: World) -> None:
    """What was counted and cannot be read is missed by every book."""
    await world.enqueue()
    lost = await violations(lying(world.store, "jobs.find", lambda _: FindReply((), None)))
    assert [one.split(" ")[0] for one in lost] == ["counts", "the", "tenants'"]


async def test_a_job_is_missed_on_any_page(world: World) -> None:
    """Reading goes on to the last page."""
    await world.enqueue_many(1_000)
    await world.enqueue_many(1)
    assert await violations(world.store) == []

    def short(page: FindReply) -> FindReply:
        return page if page.cursor is not None else FindReply(page.jobs[:-1], None)

    assert len(await violations(lying(world.store, "jobs.find", short))) == 3


async def test_a_gate_that_counts_wrong_is_reported_if_gates_are_stable(world: World) -> None:
    """Otherwise running jobs may have come through another gate than their task has now."""
    await world.declare(SubjectKind.TASK, "noop", TaskRules(gate="door"))
    await world.bring_to(State.RUNNING)
    assert await violations(world.store, gates_are_stable=True) == []
    for gates in ((), (GateCounter("door", 2),), (GateCounter("door", 1), GateCounter("gate", 1))):
        liar = lying(world.store, "upkeep.census", with_books(gates=gates))
        (found,) = await violations(liar, gates_are_stable=True)
        assert found.startswith("gates count")
        assert await violations(liar) == []


# ── healthy ───────────────────────────────────────────────────────────────────


async def test_check_raises_with_every_violation_and_only_then(world: World) -> None:
    """One line each."""
    claims = [await world.bring_to(State.DEAD) for _ in range(2)]
    await check(world.store)
    for claim in claims:
        overwrite(world, claim.job.id, because=None)
    with pytest.raises(AssertionError) as raised:
        await check(world.store)
    assert str(raised.value).count("\n") == 2
    assert all(str(claim.job.id) in str(raised.value) for claim in claims)


async def test_an_empty_store_is_healthy(world: World) -> None:
    """There is nothing to be wrong."""
    await check(world.store, gates_are_stable=True)


ENDINGS: Final[list[AttemptResult]] = [SUCCEEDED, failed(), ruined(), SNOOZED, HANDED_BACK, CANCELLED]


async def live(world: World, draw: random.Random) -> None:
    """Let something happen."""
    tenant, task = draw.choice(("acme", "globex")), draw.choice(("noop", "gated"))
    ids = [job.id for job in (await world.find_all())[:20]] or [UUID(int=0)]
    match draw.randrange(12):
        case 0 | 1 | 2:
            key = draw.choice((None, "k", "l"))
            await world.send(
                world.new(
                    tenant,
                    task=task,
                    dedup_key=key,
                    dedup_until=draw.choice(("started", "settled")),
                    delay=draw.choice((0, 2 * SECOND)),
                    expires_in=draw.choice((None, 9 * SECOND)),
                    max_attempts=2,
                    priority=draw.randint(-9, 9),
                )
            )
        case 3 | 4 | 5:
            for claim in await world.claim(draw.randint(1, 3)):
                if draw.random() < 0.8:
                    await world.settle(claim, draw.choice(ENDINGS))
        case 6:
            await world.reclaim()
        case 7:
            await world.promote()
            await world.expire()
        case 8:
            await world.cancel(draw.choice(ids))
        case 9:
            await world.condemn(draw.choice(ids))
            await world.run_now(draw.choice(ids))
        case 10:
            await world.edit(draw.choice(ids), priority=draw.randint(-9, 9))
            await world.prune(succeeded=30 * SECOND, cancelled=30 * SECOND, dead=60 * SECOND)
        case _:
            world.advance(draw.choice((1, 3, 13)))


@pytest.mark.parametrize("seed", range(4))
async def test_a_healthy_busy_store_is_not_accused(world: World, seed: int) -> None:
    """Four hundred moves of every kind, looked at again and again."""
    draw = random.Random(seed)
    await world.declare(SubjectKind.TASK, "gated", TaskRules(gate="door"))
    await world.declare(SubjectKind.GATE, "door", GateRules(limit=2))
    seen: set[State] = set()
    for step in range(400):
        await live(world, draw)
        seen |= set(await world.states())
        if step % 10 == 0:
            await check(world.store, gates_are_stable=True)
    assert seen == set(State)
