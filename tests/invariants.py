"""What must hold for any store at rest, read through the contract alone.

Shared by the suite, the property tests, the fault campaigns and the benches. `violations` lists what is
wrong in sentences; `check` raises them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from fairlane.model.job import MAX_STORED_ATTEMPTS, JobRecord
from fairlane.model.lifecycle.states import WAITING, State, home, is_finished
from fairlane.model.policy.overrides import Subject, SubjectKind, TaskRules
from fairlane.model.scheduling.priority import sort_key
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.dead import DeadCountRequest
from fairlane.store.contract.jobs import Count, CountRequest, FindRequest
from fairlane.store.contract.policies import ReadRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.upkeep import Census, CensusRequest

ALL = Scope.all()


async def check(store: Store, *, gates_are_stable: bool = False) -> None:
    """Raise an error with every violation, if any."""
    found = await violations(store, gates_are_stable=gates_are_stable)
    if found:
        message = "invariants broken:\n" + "\n".join(f"  {one}" for one in found)
        raise AssertionError(message)


async def violations(store: Store, *, gates_are_stable: bool = False) -> list[str]:
    """Return what is wrong with a store that nobody changes meanwhile.

    `gates_are_stable`: tasks did not change their gates while jobs ran, so that the gates' counters can be
    recounted from the running jobs.
    """
    jobs = await _read_all(store)
    found = [*of_each(jobs), *_together(jobs), *await _books(store, jobs)]
    if gates_are_stable:
        found += await _gates(store, jobs)
    return found


async def _read_all(store: Store) -> list[JobRecord]:
    jobs: list[JobRecord] = []
    cursor: str | None = None
    while True:
        page = await store.jobs.find(FindRequest(scope=ALL, limit=MAX_PAGE_SIZE, cursor=cursor))
        jobs += page.jobs
        if page.cursor is None:
            return jobs
        cursor = page.cursor


async def count_all(store: Store, scope: Scope = ALL, queue: str | None = None) -> list[Count]:
    """Return all pages of the counts."""
    counts: list[Count] = []
    cursor: str | None = None
    while True:
        page = await store.jobs.count(CountRequest(scope=scope, queue=queue, cursor=cursor))
        counts += page.counts
        if page.cursor is None:
            return counts
        cursor = page.cursor


async def count_letters(store: Store) -> int:
    """Return all pages of the dead letters' counts."""
    letters = 0
    cursor: str | None = None
    while True:
        page = await store.dead.count(DeadCountRequest(scope=ALL, cursor=cursor))
        letters += sum(one.letters for one in page.counts)
        if page.cursor is None:
            return letters
        cursor = page.cursor


async def read_books(store: Store) -> Census:
    """Return all pages of the counters as one."""
    whole = page = await store.upkeep.census(CensusRequest(scope=ALL))
    used: set[str | None] = {None}
    while page.cursor not in used:
        used.add(page.cursor)
        page = await store.upkeep.census(CensusRequest(scope=ALL, cursor=page.cursor))
        whole = msgspec.structs.replace(whole, tenants=whole.tenants + page.tenants)
    return msgspec.structs.replace(whole, cursor=None)


def of_each(jobs: Iterable[JobRecord]) -> Iterator[str]:
    """Return what is wrong with single jobs."""
    for job in jobs:
        for holds, sentence in _facts(job):
            if not holds:
                yield f"job {job.id} ({job.state.value}) {sentence}"


def _facts(job: JobRecord) -> Iterator[tuple[bool, str]]:
    is_running = job.state is State.RUNNING
    claim = (job.worker, job.started_at, job.lease_until)
    yield (
        all(part is not None for part in claim)
        if is_running
        else not any(part is not None for part in claim),
        "has a live claim if and only if it is running",
    )
    yield (job.settled_at is not None) == is_finished(job.state), "is settled if and only if it is finished"
    yield (
        (job.because is not None) or job.state not in {State.DELAYED, State.DEAD, State.CANCELLED},
        "does not say why",
    )
    yield job.because is None or job.state is not State.READY, "is ready, yet says why it is not"
    yield job.result is None or job.state is State.SUCCEEDED, "has a result without success"
    yield job.failures <= job.attempt, "failed more often than it was attempted"
    yield job.crashes <= job.failures, "crashed more often than it failed"
    yield len(job.attempts) <= MAX_STORED_ATTEMPTS, "keeps too many attempts"
    ended = job.attempt - is_running
    yield len(job.attempts) == min(ended, MAX_STORED_ATTEMPTS), "does not have its attempts in its history"
    numbers = [attempt.number for attempt in job.attempts]
    yield numbers == list(range(ended - len(numbers) + 1, ended + 1)), "has attempts out of order"
    # The other way round it may have come back unstarted: its fence stays, its attempt's number does not.
    yield job.fence > 0 or not job.attempt, "has a fence if it was claimed"
    yield job.sort_key == sort_key(job.run_at, job.priority), "has a sort key that is not of its time"
    yield (
        job.failures < job.max_attempts or is_finished(job.state) or is_running,
        "lives on past its attempts",
    )


def _together(jobs: list[JobRecord]) -> Iterator[str]:
    ids = Counter(job.id for job in jobs)
    yield from (f"job {id} was read {number} times" for id, number in ids.items() if number > 1)
    order = [(job.enqueued_at, job.id.bytes) for job in jobs]
    if order != sorted(order, reverse=True):
        yield "jobs do not come newest enqueue first"
    # A dead job may have been replaced by another under its key.
    explicit = Counter(
        (job.tenant, job.idempotency_key)
        for job in jobs
        if job.idempotency_key != str(job.id) and job.state is not State.DEAD
    )
    yield from (f"idempotency key {key} has {n} jobs" for key, n in explicit.items() if n > 1)
    unfinished = Counter(
        (job.tenant, job.task, job.dedup_key)
        for job in jobs
        if job.dedup_key is not None and not is_finished(job.state) and job.dedup_until == "settled"
    )
    yield from (f"de-duplication key {key} has {n} unfinished jobs" for key, n in unfinished.items() if n > 1)


async def _books(store: Store, jobs: list[JobRecord]) -> list[str]:
    found = []
    recount = Counter((job.tenant, job.queue, job.state) for job in jobs)
    counts = {(one.tenant, one.queue, one.state): one.jobs for one in await count_all(store)}
    if counts != dict(recount):
        found.append(f"counts are {counts}, a recount gives {dict(recount)}")
    census = await read_books(store)
    homes = Counter(home(job.state) for job in jobs)
    if census.homes != dict(homes):
        found.append(f"the homes hold {census.homes}, a recount gives {dict(homes)}")
    waiting = Counter((job.queue, job.tenant) for job in jobs if job.state in WAITING)
    running = Counter((job.queue, job.tenant) for job in jobs if job.state is State.RUNNING)
    books = {(one.queue, one.tenant): (one.waiting, one.running) for one in census.tenants}
    recounted = {key: (waiting[key], running[key]) for key in {*waiting, *running}}
    if books != recounted:
        found.append(f"tenants' books are {books}, a recount gives {recounted}")
    dead = await count_letters(store)
    if dead != sum(job.state is State.DEAD for job in jobs):
        found.append(f"there are {dead} dead letters and other than that many dead jobs")
    held = sum(not is_finished(job.state) and job.dedup_key is not None for job in jobs)
    if census.dedup_keys > held:
        found.append(f"{census.dedup_keys} de-duplication keys are held by {held} jobs")
    return found


async def _gates(store: Store, jobs: list[JobRecord]) -> list[str]:
    running = [job for job in jobs if job.state is State.RUNNING]
    subjects = tuple({Subject(SubjectKind.TASK, job.task) for job in running})
    views = await store.policies.read(ReadRequest(scope=ALL, subjects=subjects))
    used: Counter[str] = Counter()
    for job in running:
        rules = views[Subject(SubjectKind.TASK, job.task)].effective
        assert isinstance(rules, TaskRules)
        if rules.gate is not None:
            used[rules.gate] += 1
    census = await read_books(store)
    books = {one.gate: one.used for one in census.gates}
    return [] if books == dict(used) else [f"gates count {books}, a recount gives {dict(used)}"]
