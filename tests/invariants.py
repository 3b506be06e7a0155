"""What must hold for any store at rest, read through the contract alone.

Shared by the suite, the property tests, the fault campaigns and the benches. `violations` lists what is
wrong in sentences; `check` raises them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, get_args
from uuid import UUID

import msgspec

from fairlane.model.job import ATTEMPTS_KEPT, MAX_ATTEMPTS_KEPT, JobRecord
from fairlane.model.journal.entries import Entry, JournalName
from fairlane.model.journal.facts import last_failure
from fairlane.model.lifecycle.states import WAITING, State, home, is_finished
from fairlane.model.policy.overrides import Subject, SubjectKind, TaskRules
from fairlane.model.retry.decision import MAX_LOSSES
from fairlane.model.review import MAX_NOTES
from fairlane.model.scheduling.priority import sort_key
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.budgets import BudgetRepairRequest
from fairlane.store.contract.dead import DeadCountRequest, DeadLetter, DeadRequest
from fairlane.store.contract.jobs import Count, CountRequest, FindRequest
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, PendingRequest
from fairlane.store.contract.policies import ListRequest, ReadRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE
from fairlane.store.contract.upkeep import Census, CensusRequest

ALL = Scope.all()
JOURNALS: Final[tuple[JournalName, ...]] = get_args(JournalName)


async def check(
    store: Store, *, gates_are_stable: bool = False, attempts_kept: int | None = ATTEMPTS_KEPT
) -> None:
    """Raise an error with every violation, if any."""
    found = await violations(store, gates_are_stable=gates_are_stable, attempts_kept=attempts_kept)
    if found:
        message = "invariants broken:\n" + "\n".join(f"  {one}" for one in found)
        raise AssertionError(message)


async def violations(
    store: Store, *, gates_are_stable: bool = False, attempts_kept: int | None = ATTEMPTS_KEPT
) -> list[str]:
    """Return what is wrong with a store that nobody changes meanwhile.

    `gates_are_stable`: tasks did not change their gates while jobs ran, so that the gates' counters can be
    recounted from the running jobs. `attempts_kept`: of how many each job has a record; None if that changed.
    """
    jobs = await _read_all(store)
    found = [*of_each(jobs, attempts_kept), *_together(jobs), *await _books(store, jobs)]
    found += _reviews(await _read_letters(store), jobs)
    for journal in JOURNALS:
        found += await _journal(store, journal)
    if gates_are_stable:
        found += await _gates(store, jobs)
    return [*found, *await _budgets(store)]


async def _budgets(store: Store) -> list[str]:
    """Compare the accounts of all budgets with the claims that run under them (S125)."""
    views = await store.policies.list(ListRequest(scope=ALL, kind=SubjectKind.BUDGET))
    found = []
    for name in (view.subject.name for view in views):
        reply = await store.budgets.repair(BudgetRepairRequest(scope=ALL, budget=name))
        found += [f"the account of budget {name} does not fit: {flaw}" for flaw in reply.flaws]
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


def of_each(jobs: Iterable[JobRecord], attempts_kept: int | None = ATTEMPTS_KEPT) -> Iterator[str]:
    """Return what is wrong with single jobs."""
    for job in jobs:
        for holds, sentence in _facts(job, attempts_kept):
            if not holds:
                yield f"job {job.id} ({job.state.value}) {sentence}"


def _facts(job: JobRecord, attempts_kept: int | None = ATTEMPTS_KEPT) -> Iterator[tuple[bool, str]]:
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
    yield job.crashes <= job.attempt, "crashed more often than it was attempted"
    yield job.crashes_alone <= min(job.crashes, job.failures), "crashed by itself more often than it failed"
    yield job.crashes > 0 or not job.is_suspect, "is a suspect without a crash"
    yield job.crashes < MAX_LOSSES or is_finished(job.state), "lives on past its crashes"
    kept = MAX_ATTEMPTS_KEPT if attempts_kept is None else attempts_kept
    yield len(job.attempts) <= kept, "keeps too many attempts"
    ended = job.attempt - is_running
    is_whole = len(job.attempts) == min(ended, kept) or (attempts_kept is None and bool(job.attempts))
    yield is_whole, "does not have its attempts in its history"
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


async def _read_letters(store: Store) -> list[DeadLetter]:
    page = await store.dead.find(DeadRequest(scope=ALL, limit=MAX_PAGE_SIZE))
    letters = list(page.letters)
    while page.cursor is not None:
        page = await store.dead.find(DeadRequest(scope=ALL, limit=MAX_PAGE_SIZE, cursor=page.cursor))
        letters += page.letters
    return letters


def _reviews(letters: list[DeadLetter], jobs: list[JobRecord]) -> Iterator[str]:
    """Return what is wrong with dead letters and the jobs that run in their place."""
    by_id = {job.id: job for job in jobs}
    dead = sorted(job.id for job in jobs if job.state is State.DEAD)
    if sorted(letter.job.id for letter in letters) != dead:
        yield "the dead letters are not those of the dead jobs"
    for letter in letters:
        for holds, sentence in (*_facts_of_letter(letter), *_facts_of_run(letter, by_id)):
            if not holds:
                yield f"dead letter {letter.job.id} {sentence}"


def _facts_of_letter(letter: DeadLetter) -> Iterator[tuple[bool, str]]:
    record, failure = letter.review, last_failure(letter.job)
    cause = (None, "") if failure is None else (failure.error_class, failure.fingerprint)
    yield (letter.error_class, letter.fingerprint) == cause, "has the cause of another failure"
    yield (record.review == "pending") == (record.decided is None), "is decided if and only if somebody did"
    yield record.decided is None or record.acknowledged is not None, "is decided, and nobody has seen it"
    is_again = record.review == "reprocessed"
    yield is_again == (record.new_run is not None), "has a new job if and only if it runs again"
    yield len(record.notes) <= MAX_NOTES, "keeps too many notes"


def _facts_of_run(letter: DeadLetter, jobs: dict[UUID, JobRecord]) -> Iterator[tuple[bool, str]]:
    run = letter.review.new_run
    new = None if run is None else jobs.get(run.job)
    if run is None or new is None:
        return  # there is none, or it was removed at the end of its time
    link = (new.parent_id, new.tenant)
    yield link == (letter.job.id, letter.job.tenant), "has a new job that is not its own"
    yield not run.is_gone, "says that its new job is gone"
    ended = (new.state, new.settled_at)
    yield run.state is None or (run.state, run.settled_at) == ended, "tells another end of its new job"


async def _journal(store: Store, name: JournalName) -> list[str]:
    """Return what is wrong with the numbers of a journal, and with the places of what waits for one."""
    reply = await store.journal.pending(PendingRequest(scope=ALL, journal=name))
    request = EntriesRequest(scope=ALL, journal=name, limit=MAX_ENTRIES)
    entries: list[Entry] = []
    while True:
        page = await store.journal.entries(request)
        entries += page.entries
        if page.after in {None, request.after}:
            break
        request = msgspec.structs.replace(request, after=page.after)
    first, last = reply.end.first, reply.end.last
    expected = list(range(first, last + 1)) if first else []
    found = []
    if [entry.number for entry in entries] != expected:
        found.append(f"the numbers of the {name} do not run from {first} to {last}")
    places = [one.place for one in reply.entries]
    if places != sorted(set(places)):
        found.append(f"what waits in the {name} is out of order")
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
